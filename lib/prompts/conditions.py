"""Parse the conditions of a prompt: the inserted text, its position, and its layers.

    parse_condition("mless:25@end").length  # 25 slashes after the problem

A condition is written as NAME[:LENGTH][@POSITION][+arm[:SETTINGS]]. Length (in tokens)
and position are given only if they differ from the filler's.

    none                       the prompt without an insertion
    mless, mless:25            55 slashes, 25 slashes (Fig. 8)
    mless@end                  slashes after the problem (Table 4)
    question                   question marks (Table 5)
    mless+arm, arm:c=0.1       ARM with and without slashes; it changes the model only
    gap, layer-1-only          slashes that no layer, or only layer 1, can attend to
    mless-last-5               slashes of which later tokens see only the last five
    example, repeat, hint      another prompt: an example, the problem twice, a hint

Conditions that hide the insertion from some layers, or that start the answer, are only
for log-likelihoods, because no text can be generated under them.

Several spellings of a condition, such as mless:055 and mless:55, are one condition with
one text.
"""

import functools
import random
import re
import reprlib
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    PositiveInt,
    model_validator,
)

from lib.arm.settings import Arm, parse_arm
from lib.errors import InputError, Settings, unknown, validated

Repeated = Literal[
    "none", "mless", "mful", "random", "question", "letters", "dots", "pause"
]
Separator = Literal["space", "newline", "blank-line", "comma", "heading"]
Name = Repeated | Separator
# Before the instruction, between it and the problem, after both, or between two words
# that are drawn at random.
Position = Literal["before", "between", "end", "random"]
CONDITIONS = get_args(Repeated)
POSITIONS = get_args(Position)
# Filler texts of related papers (Pfau et al. 2024, arXiv 2404.15758; Goyal et al. 2023,
# arXiv 2310.02226).
RELATED_FILLERS = {"dots": ".", "pause": "pause"}
# Texts that only separate the instruction from the problem, inserted as they are. The
# authors' formats have nothing there, so that a filler is also a separator.
SEPARATOR_TEXTS: dict[Separator, str] = {
    "space": " ",
    "newline": "\n",
    "blank-line": "\n\n",
    "comma": ",",
    "heading": "Problem: ",
}
RANDOM_SENTENCE = (
    "The harbour master walked along the wet pier before sunrise, counting fishing"
    " boats, while his sister painted the kitchen window green, boiled two eggs for"
    " breakfast, and wrote a long letter to an old friend about the garden, the"
    " weather, a lost umbrella, her neighbour's violin, and the slow train that carried"
    " oranges over the mountains every second winter until the bridge was closed for"
    " repairs."
)
_draw = random.Random(0)
RANDOM_LETTERS = " ".join(
    "".join(_draw.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(40)
)


class Filler(Settings):
    """The texts that conditions insert, with their length in tokens and position.

    A text of your own takes the place of another: `Filler(mless="ok ")` with the
    condition mless, or in a profile `filler: {mless: "ok "}`.

    A text is repeated until it has `length` tokens.
    """

    length: PositiveInt = Field(
        55,
        description="how many tokens are inserted; in the authors' formats, how often a"
        " word is",
    )
    position: Position = Field(
        "between",
        description="before or between instruction and problem, at the end, or random",
    )
    mless: str = Field("/", description="the text that mless repeats")
    mful: str = Field("he", description="the text that mful repeats")
    random: str = Field(RANDOM_SENTENCE, description="the text that random repeats")
    question: str = Field("?", description="the text that question repeats")
    letters: str = Field(RANDOM_LETTERS, description="the text that letters repeats")

    def text(self, name: Name) -> str:
        """Return the text that a condition of this name repeats, or the separator that
        it inserts.
        """
        if name in SEPARATOR_TEXTS:
            return SEPARATOR_TEXTS[name]
        if name in RELATED_FILLERS:
            return RELATED_FILLERS[name]
        return getattr(self, name)


INSTRUCTION = r"Please reason step by step and put your final answer within \boxed{}."
# The authors' source doubles the braces, as a Python format string would need, but uses
# no format string, so that their prompt has both.
AUTHORS_INSTRUCTION = INSTRUCTION.replace("{}", "{{}}")
# plain and chat have spaces between instruction, insertion and problem; the authors'
# formats have none (see lib.prompts.building).
Format = Literal["plain", "chat", "authors", "authors-chat"]
FORMATS = get_args(Format)
AUTHORS_FORMATS = ("authors", "authors-chat")


def without_chat(format: str) -> str:
    """Return the format that replaces a requested one if the tokenizer has no chat
    template: plain instead of chat, authors instead of authors-chat.
    """
    return {"chat": "plain", "authors-chat": "authors"}.get(format, format)


def is_chat(format: str) -> bool:
    """Return whether a format uses the model's chat template.

    Raises InputError for an unknown format.
    """
    if format not in FORMATS:
        raise unknown("prompt format", format, FORMATS)
    return format in ("chat", "authors-chat")


# As in mless:25@end+arm:c=0.1:p1=95; lib.arm.settings parses the settings.
GRAMMAR = re.compile(
    r"(?P<name>[a-z][a-z0-9-]*)"
    r"(:(?P<length>\d+))?"
    r"(@(?P<position>[a-z]+))?"
    r"(\+(?P<arm>arm)(:(?P<settings>.*))?)?"
)


class Example(Settings):
    """A worked example in LaTeX that precedes the problem; its solution ends in a
    box.
    """

    problem: str
    solution: str


# The worked example of the condition `example`.
WORKED_EXAMPLE = Example(
    problem=(
        "The perimeter of a rectangle is $34$, and it is $5$ longer than it is wide."
        " What is its area?"
    ),
    solution=(
        "Let $w$ be the width. The length is $w + 5$ and the perimeter $2w + 2(w + 5) ="
        " 4w + 10$. From $4w + 10 = 34$ we get $w = 6$, so the length is $11$ and the"
        " area is $6 \\cdot 11 = \\boxed{66}$."
    ),
)


class View(NamedTuple):
    """The layers (from 1) in which later tokens can attend to the inserted ones."""

    first: int
    last: int | None  # None: the last layer of the model
    silent: bool = False  # visible as keys, but with values of zero

    def shown(self, layers: int) -> range:
        """Return the layers in which the inserted tokens are visible, in a model with
        so many layers.
        """
        last = layers if self.last is None else min(self.last, layers)
        return range(self.first, last + 1)

    def hidden(self, layers: int) -> list[int]:
        """Return the layers in which they are hidden."""
        shown = self.shown(layers)
        return [layer for layer in range(1, layers + 1) if layer not in shown]


EVERY_LAYER = View(1, None)
NO_LAYER = View(1, 0)
LAYER_1_SILENT = View(1, 1, silent=True)
# mless visible only to the first layers, or only to the layers after them.
LAYERS_PATTERN = re.compile(
    r"layers?-1(?:-to-(?P<shown>[1-9]\d*))?-only"
    r"|(?P<hides>hidden)-from-layers?-1(?:-to-(?P<hidden>[1-9]\d*))?"
)
# A filler with spaces around it, as in mless-spaced, or of which only some tokens are
# visible to later ones, as in mless-last-5.
FILLER_PATTERN = re.compile(
    rf"(?P<filler>{'|'.join(CONDITIONS[1:])})"
    r"-(?:spaced|(?P<end>first|middle|last)-(?P<tokens>[1-9]\d*))"
)


class Visible(NamedTuple):
    """The inserted tokens that later tokens can attend to in every layer: so many at
    the start, in the middle or at the end of the insertion.
    """

    end: str  # first, middle or last
    tokens: int

    def within(self, inserted: slice) -> slice:
        """Return the positions of the visible tokens, given those of all inserted
        ones.
        """
        spare = inserted.stop - inserted.start - self.tokens
        skipped = {"first": 0, "middle": spare // 2, "last": spare}[self.end]
        start = inserted.start + skipped
        return slice(start, start + self.tokens)


class Condition(Settings):
    """A parsed condition: its changes to the prompt, the attention mask and the model.

    `str` returns its text, which is the same for all spellings of the condition, and
    its name in keys, settings and tables.
    """

    text: str
    inserted: Name  # which text of the filler is inserted
    length: PositiveInt | None = None  # in tokens; None: that of the filler
    position: Position | None = None  # None: that of the filler
    spaced: bool = False  # with spaces around the insertion, in the authors' formats
    arm: Arm | None = None  # the settings that the text names; None: without ARM
    view: View = EVERY_LAYER  # the layers in which the insertion is visible
    visible: Visible | None = None  # the inserted tokens that are visible in all layers
    example: bool = False  # whether a worked example precedes the problem
    instructed: bool = True  # whether the prompt has the instruction
    # "twice" repeats the problem (arXiv 2512.14982); "hinted" appends the first
    # sentence of its reference solution.
    posed: Literal["twice", "hinted"] | None = None
    # Text before the answer: the reference solution, or as many dots as it has tokens.
    thought: Literal["solution", "dots"] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def for_likelihood(self) -> bool:
        """Whether only likelihoods of given texts can be computed under the condition,
        and no answers generated.
        """
        return self.view != EVERY_LAYER or bool(self.thought)

    @property
    def deepest(self) -> int:
        """The deepest layer that the condition names; 1 if it names none."""
        in_arm = self.arm.layer if self.arm else 1
        return max(in_arm, self.view.first - 1, self.view.last or 1)

    @property
    def is_for_authors_formats(self) -> bool:
        """Whether the condition is for the authors' formats only, because the others
        have spaces between instruction, insertion and problem anyway.
        """
        return self.spaced or self.inserted in SEPARATOR_TEXTS

    @model_validator(mode="after")
    def _check_fields(self):
        if not (self.length or self.position):
            return self
        if self.inserted == "none":
            raise ValueError(
                "none inserts nothing, so it has no length and no position"
            )
        if self.inserted in SEPARATOR_TEXTS:
            raise ValueError(
                f"{self.inserted} is inserted once between instruction and problem, so"
                " it has no length and no position"
            )
        return self

    def arm_over(self, base: Arm) -> Arm | None:
        """Return the settings of ARM: those that the text names over the `base` of a
        model. None if the condition is without ARM.
        """
        return self.arm.over(base) if self.arm else None

    def filler(self, base: Filler) -> Filler:
        """Return the `base` filler with the condition's length and position.

        Raises InputError if more tokens would be visible than are inserted.
        """
        changes = self.model_dump(include={"length", "position"}, exclude_none=True)
        filler = base.model_copy(update=changes)
        if self.visible and self.visible.tokens > filler.length:
            raise InputError(
                f"{self}: {self.visible.tokens} tokens cannot be visible of"
                f" {filler.length} that are inserted"
            )
        return filler


# Conditions with a special prompt or mask, in addition to those of LAYERS_PATTERN.
SPECIAL = (
    # The insertion only increases the positions of the problem's tokens.
    Condition(text="gap", inserted="mless", view=NO_LAYER),
    # The inserted tokens only enlarge the softmax's denominator in layer 1.
    Condition(text="dilution", inserted="mless", view=LAYER_1_SILENT),
    Condition(text="example", inserted="none", example=True),
    Condition(text="bare", inserted="none", instructed=False),
    Condition(text="repeat", inserted="none", posed="twice"),
    Condition(text="hint", inserted="none", posed="hinted"),
    Condition(text="thought", inserted="none", thought="solution"),
    Condition(text="dots-for-thought", inserted="none", thought="dots"),
)
NAMED = {
    name: Condition(text=name, inserted=name)
    for name in (*CONDITIONS, *SEPARATOR_TEXTS)
} | {condition.text: condition for condition in SPECIAL}


def known_conditions(answered: bool) -> list[str]:
    """Return the names of conditions, with an example of those of a pattern: all, or
    those under which answers are generated.
    """
    of_patterns = ["layer-1-only", "hidden-from-layer-1", "mless-last-5"]
    names = [*NAMED, "arm", "mless+arm", *of_patterns]
    if not answered:
        return names
    return [name for name in names if not parse_condition(name).for_likelihood]


def parse_condition(condition: str | Condition, *, answered: bool = False) -> Condition:
    """Return the condition that a text names; a parsed condition is returned unchanged.

    answered: whether answers are generated under it; then an error message suggests no
    conditions that are only for log-likelihoods. Raises InputError for an unknown name,
    length, position or setting.
    """
    if isinstance(condition, Condition):
        return condition
    # ARM without an insertion does not change the prompt.
    is_arm_alone = condition.split(":")[0] == "arm"
    match = GRAMMAR.fullmatch(f"none+{condition}" if is_arm_alone else condition)
    named = match and _named(match["name"])
    if not match or not named:
        raise unknown("condition", condition, known_conditions(answered))
    given = {
        "length": int(match["length"]) if match["length"] else None,
        "position": match["position"],
        "arm": parse_arm(match["settings"] or "") if match["arm"] else None,
    }
    given["text"] = _text(named.text, **given)
    return validated(Condition, dict(named) | given, f"condition {condition!r}")


def _text(name: str, length: int | None, position: str | None, arm: Arm | None) -> str:
    """Return the text of a condition, which all of its spellings share."""
    text = name
    if length is not None:
        text += f":{length}"
    if position:
        text += f"@{position}"
    if not arm:
        return text
    in_arm = f"arm:{arm}" if str(arm) else "arm"
    return in_arm if text == "none" else f"{text}+{in_arm}"


def _named(name: str) -> Condition | None:
    """Return the condition of a name, or None."""
    return NAMED.get(name) or _of_layers(name) or _of_filler(name)


def _of_filler(name: str) -> Condition | None:
    """Return the condition of a name such as mless-spaced or mless-last-5, or None."""
    match = FILLER_PATTERN.fullmatch(name)
    if not match:
        return None
    changes: dict[str, object] = {"text": name, "spaced": True}
    if match["end"]:
        visible = Visible(match["end"], int(match["tokens"]))
        changes = {"text": name, "view": NO_LAYER, "visible": visible}
    return NAMED[match["filler"]].model_copy(update=changes)


def _of_layers(name: str) -> Condition | None:
    """Return the condition of a name such as layers-1-to-4-only or hidden-from-layer-1,
    or None.
    """
    match = LAYERS_PATTERN.fullmatch(name)
    if not match:
        return None
    last = int(match["shown"] or match["hidden"] or 1)
    layers = "layer-1" if last == 1 else f"layers-1-to-{last}"
    if match["hides"]:
        name, view = f"hidden-from-{layers}", View(last + 1, None)
    else:
        name, view = f"{layers}-only", View(1, last)
    return Condition(text=name, inserted="mless", view=view)


def _parsed(value: object, answered: bool = False) -> Condition:
    if not isinstance(value, str | Condition):
        raise ValueError(f"must be a text, not {reprlib.repr(value)}")
    return parse_condition(value, answered=answered)


# Fields of settings that are read and written as the text of a condition: of any
# condition, and of one under which answers are generated (see `answered` above).
ConditionField = Annotated[Condition, PlainValidator(_parsed), PlainSerializer(str)]
AnsweredField = Annotated[
    Condition,
    PlainValidator(functools.partial(_parsed, answered=True)),
    PlainSerializer(str),
]
