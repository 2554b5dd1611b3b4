"""What is inserted where: the conditions that a prompt may have, and the texts they
insert.

A condition is a name of NAMED, with a length or a place of its own where it differs
from the filler's: `mless:25` are 25 slashes (Fig. 8), `mless@end` 55 slashes after the
problem (Table 4), `question` question marks (Table 5). ARM changes the model and not
the prompt: `arm`, `mless+arm` and `arm:c=0.1:p1=95` have the prompts of none and mless.
Those that show what was inserted to some layers only, or change the prompt in another
way, are for likelihoods alone.
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

INSTRUCTION = r"Please reason step by step and put your final answer within \boxed{}."
Name = Literal[
    "none", "mless", "mful", "random", "question", "letters", "dots", "pause"
]
# Before the instruction, between it and the problem, behind both, or anywhere in them.
Position = Literal["before", "between", "end", "random"]
Format = Literal["plain", "chat"]
CONDITIONS = get_args(Name)
POSITIONS = get_args(Position)
FORMATS = get_args(Format)
# As in mless:25@end+arm:c=0.1:p1=95; the settings are lib.arm.settings' own.
GRAMMAR = re.compile(
    r"(?P<name>[a-z][a-z0-9-]*)"
    r"(:(?P<length>\d+))?"
    r"(@(?P<position>[a-z]+))?"
    r"(\+(?P<arm>arm)(:(?P<settings>.*))?)?"
)
# What neighbouring papers insert (Pfau et al. 2024, arXiv 2404.15758; Goyal et al.
# 2023, arXiv 2310.02226).
OF_NEIGHBOURS = {"dots": ".", "pause": "pause"}
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


class Example(Settings):
    """A worked problem in LaTeX that a model is shown first, its solution ending in a
    box.
    """

    problem: str
    solution: str


# What `example` shows first.
WORKED = Example(
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
    """The layers, counted from 1, that show inserted tokens to later ones; `last` None:
    to the deepest.
    """

    first: int
    last: int | None
    silent: bool = False  # their values count as zero there

    def hidden(self, layers: int) -> list[int]:
        """Return which of so many layers hide the inserted tokens."""
        last = layers if self.last is None else self.last
        return [
            layer for layer in range(1, layers + 1) if not self.first <= layer <= last
        ]

    def silenced(self, layers: int) -> list[int]:
        """Return in which of so many layers the inserted tokens are seen without
        values.
        """
        if not self.silent:
            return []
        hidden = self.hidden(layers)
        return [layer for layer in range(1, layers + 1) if layer not in hidden]


EVERY_LAYER = View(1, None)
NO_LAYER = View(1, 0)
LAYER_1_SILENT = View(1, 1, silent=True)
# mless shown to the first layers alone, or to those behind them alone.
OF_LAYERS = re.compile(
    r"layers?-1(?:-to-(?P<shown>[1-9]\d*))?-only"
    r"|(?P<hides>hidden)-from-layers?-1(?:-to-(?P<hidden>[1-9]\d*))?"
)
# A filler of which later tokens see only some tokens, as in mless-last-5.
OF_TOKENS = re.compile(
    r"(?P<filler>[a-z]+)-(?P<end>first|middle|last)-(?P<tokens>[1-9]\d*)"
)


class Visible(NamedTuple):
    """Which inserted tokens later tokens see in every layer: so many at the beginning,
    in the middle or at the end of the insertion.
    """

    end: str
    tokens: int

    def within(self, inserted: slice) -> slice:
        """Return the positions of the visible tokens, given those of all inserted
        ones.
        """
        spare = inserted.stop - inserted.start - self.tokens
        skipped = {"first": 0, "middle": spare // 2, "last": spare}[self.end]
        start = inserted.start + skipped
        return slice(start, start + self.tokens)


class Filler(Settings):
    """What the conditions insert, and where: `length` tokens cut from a text that is
    repeated as often as needed.
    """

    length: PositiveInt = Field(55, description="how many tokens are inserted")
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
        """Return what a condition of this name repeats."""
        if name in OF_NEIGHBOURS:
            return OF_NEIGHBOURS[name]
        return getattr(self, name)


class Condition(Settings):
    """What a condition does to the prompt and to the model; `str` gives its text.

    `length` and `position` None are the filler's. `arm` holds the settings that were
    named.
    """

    text: str  # as it was given: keys, settings and tables call it so
    inserted: Name
    length: PositiveInt | None = None
    position: Position | None = None
    arm: Arm | None = None
    view: View = EVERY_LAYER  # which layers show what was inserted
    visible: Visible | None = None  # what all layers show of an insertion they hide
    example: bool = False  # whether a worked problem stands first
    instructed: bool = True
    # How the problem is put: twice (arXiv 2512.14982), or with the first sentence of
    # its worked solution behind it.
    posed: Literal["twice", "hinted"] | None = None
    # Before the answer: the gold solution, or as many dots as it has tokens.
    thought: Literal["solution", "dots"] | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def for_likelihood(self) -> bool:
        """Whether only the likelihood of a given text is asked for under it, and no
        answer.
        """
        return self.view != EVERY_LAYER or bool(self.thought)

    @property
    def deepest(self) -> int:
        """The deepest layer that it speaks of."""
        in_arm = self.arm.layer if self.arm else 1
        return max(in_arm, self.view.first - 1, self.view.last or 1)

    @model_validator(mode="after")
    def _check_fields(self):
        if self.inserted == "none" and (self.length or self.position):
            raise ValueError(
                "none inserts nothing, so it has no length and no position"
            )
        return self

    def filler(self, base: Filler) -> Filler:
        """Return the filler with the condition's own length and position.

        Raises InputError if the condition shows more tokens than it inserts.
        """
        own = self.model_dump(include={"length", "position"}, exclude_none=True)
        filler = base.model_copy(update=own)
        if self.visible and self.visible.tokens > filler.length:
            raise InputError(
                f"{self}: {self.visible.tokens} tokens cannot be visible of"
                f" {filler.length} that are inserted"
            )
        return filler


# Conditions with a prompt, or a mask, of their own, beside those of OF_LAYERS.
SPECIAL = (
    # The problem only moves on by so many positions.
    Condition(text="gap", inserted="mless", view=NO_LAYER),
    # The inserted tokens are a larger denominator in layer 1, and nothing else.
    Condition(text="dilution", inserted="mless", view=LAYER_1_SILENT),
    Condition(text="example", inserted="none", example=True),
    Condition(text="bare", inserted="none", instructed=False),
    Condition(text="repeat", inserted="none", posed="twice"),
    Condition(text="hint", inserted="none", posed="hinted"),
    Condition(text="thought", inserted="none", thought="solution"),
    Condition(text="dots-for-thought", inserted="none", thought="dots"),
)
NAMED = {name: Condition(text=name, inserted=name) for name in CONDITIONS} | {
    condition.text: condition for condition in SPECIAL
}


def parse_condition(condition: str | Condition, *, answered: bool = False) -> Condition:
    """Return the condition of a text, or one that is parsed already as it is.

    Raises InputError for a name, length, place or setting that is none, which suggests
    conditions for likelihoods alone unless answers are wanted.
    """
    if isinstance(condition, Condition):
        return condition
    # ARM alone changes nothing in the prompt.
    alone = condition.split(":")[0] == "arm"
    match = GRAMMAR.fullmatch(f"none+{condition}" if alone else condition)
    named = match and _named(match["name"])
    if not match or not named:
        special = [
            other for other in SPECIAL if not (answered and other.for_likelihood)
        ]
        known = [*CONDITIONS, "arm", "mless+arm", *map(str, special)]
        raise unknown("condition", condition, known)
    own = {
        "text": condition,
        "length": int(match["length"]) if match["length"] else None,
        "position": match["position"],
        "arm": parse_arm(match["settings"] or "") if match["arm"] else None,
    }
    return validated(Condition, dict(named) | own, f"condition {condition!r}")


def _named(name: str) -> Condition | None:
    """Return the condition of a name, if it is one."""
    return NAMED.get(name) or _of_layers(name) or _of_tokens(name)


def _of_tokens(name: str) -> Condition | None:
    """Return the condition of a name such as mless-last-5, if it is one."""
    match = OF_TOKENS.fullmatch(name)
    if not match or match["filler"] not in CONDITIONS or match["filler"] == "none":
        return None
    visible = Visible(match["end"], int(match["tokens"]))
    shown = {"view": NO_LAYER, "visible": visible}
    return NAMED[match["filler"]].model_copy(update={"text": name} | shown)


def _of_layers(name: str) -> Condition | None:
    """Return the condition of a name such as layers-1-to-4-only or hidden-from-layer-1,
    if it is one.
    """
    match = OF_LAYERS.fullmatch(name)
    if not match:
        return None
    last = int(match["shown"] or match["hidden"] or 1)
    view = View(last + 1, None) if match["hides"] else View(1, last)
    return Condition(text=name, inserted="mless", view=view)


def _parsed(value: object, answered: bool = False) -> Condition:
    if not isinstance(value, str | Condition):
        raise ValueError(f"must be a text, not {reprlib.repr(value)}")
    return parse_condition(value, answered=answered)


# Fields of settings that are given, and written down, as the condition's text: of what
# texts are scored under, and answers asked for.
ConditionField = Annotated[Condition, PlainValidator(_parsed), PlainSerializer(str)]
AnsweredField = Annotated[
    Condition,
    PlainValidator(functools.partial(_parsed, answered=True)),
    PlainSerializer(str),
]
