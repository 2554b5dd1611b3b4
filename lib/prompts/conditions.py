"""What is inserted where: the conditions that a prompt may have, and the texts they
insert.

A condition is a name of CONDITIONS, with a length or a place of its own where it
differs from the filler's: `mless:25` are 25 slashes (Fig. 8), `mless@end` 55 slashes
after the problem (Table 4), `question` question marks (Table 5). ARM changes the model
and not the prompt: `arm`, `mless+arm` and `arm:c=0.1:p1=95` have the prompts of none
and mless. Those of SPECIAL and LAYERS are for likelihoods alone.
"""

import functools
import random
import re
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from lib.arm.settings import Arm, parse_arm
from lib.errors import Settings, unknown, validated

INSTRUCTION = r"Please reason step by step and put your final answer within \boxed{}."
Name = Literal[
    "none", "mless", "mful", "random", "question", "letters", "dots", "pause"
]
Position = Literal[
    "before", "between", "end", "random"
]  # of the instruction; and the problem; of both; any place
Format = Literal["plain", "chat"]
CONDITIONS, POSITIONS, FORMATS = get_args(Name), get_args(Position), get_args(Format)
# As in mless:25@end+arm:c=0.1:p1=95; the settings are lib.arm.settings' own.
CONDITION = re.compile(
    r"(?P<name>[a-z][a-z0-9-]*)(:(?P<length>\d+))?(@(?P<position>[a-z]+))?(\+(?P<arm>arm)(:(?P<settings>.*))?)?"
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
        return (
            sorted({*range(1, layers + 1)} - {*self.hidden(layers)})
            if self.silent
            else []
        )


# What mless inserts is shown to the first layers alone, or to those behind them alone.
LAYERS = re.compile(r"layers?-1(?:-to-(\d+))?-only|hidden-from-layers?-1(?:-to-(\d+))?")
# Likelihood's other conditions.
SPECIAL = {
    "gap": {
        "name": "mless",
        "view": View(1, 0),
    },  # to none: the problem only moves on by so many positions
    "dilution": {
        "name": "mless",
        "view": View(1, 1, silent=True),
    },  # to layer 1, as a larger denominator alone
    "example": {"name": "none", "example": True},  # a worked problem stands first
    "bare": {"name": "none", "instructed": False},  # without the instruction
    "thought": {
        "name": "none",
        "thought": "solution",
    },  # the gold solution stands before the answer
    "dots-for-thought": {"name": "none", "thought": "dots"},  # or as many dots
}


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
        return OF_NEIGHBOURS[name] if name in OF_NEIGHBOURS else getattr(self, name)


class Condition(Settings):
    """A condition's parts; length and position None: the filler's. `arm` holds the
    settings that were named.
    """

    name: Name
    length: PositiveInt | None = None
    position: Position | None = None
    arm: Arm | None = None
    view: View | None = None  # None: every layer shows what was inserted
    example: bool = False
    instructed: bool = True
    thought: Literal["", "solution", "dots"] = ""

    @property
    def for_likelihood(self) -> bool:
        """Whether only the likelihood of a given text is asked for under it, and no
        answer.
        """
        return bool(self.view or self.example or not self.instructed or self.thought)

    @model_validator(mode="after")
    def _check_fields(self):
        if self.name == "none" and (self.length or self.position):
            raise ValueError(
                "none inserts nothing, so it has no length and no position"
            )
        return self

    def filler(self, base: Filler) -> Filler:
        """Return the filler with the condition's own length and position."""
        return base.model_copy(
            update=self.model_dump(include={"length", "position"}, exclude_none=True)
        )


@functools.cache
def parse_condition(text: str) -> Condition:
    """Return what a condition asks for; raises InputError for a name, length, place or
    setting that is none.
    """
    match = CONDITION.fullmatch(f"none+{text}" if text.split(":")[0] == "arm" else text)
    layers = match and LAYERS.fullmatch(match["name"])
    if not match or not (
        layers or match["name"] in CONDITIONS or match["name"] in SPECIAL
    ):
        raise unknown("condition", text, [*CONDITIONS, "arm", "mless+arm", *SPECIAL])
    asked = SPECIAL.get(match["name"], {"name": match["name"]})
    if layers:
        last = int(layers[1] or layers[2] or "1")
        asked = {
            "name": "mless",
            "view": (
                View(last + 1, None) if text.startswith("hidden") else View(1, last)
            ),
        }
    own = {
        "length": int(match["length"]) if match["length"] else None,
        "position": match["position"],
        "arm": parse_arm(match["settings"] or "") if match["arm"] else None,
    }
    return validated(Condition, asked | own, f"condition {text!r}")


ConditionText = Annotated[
    str, AfterValidator(lambda text: parse_condition(text) and text)
]
