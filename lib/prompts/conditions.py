"""What is inserted where: the conditions that a prompt may have, and the texts they insert.

A condition is a name of CONDITIONS, with a length or a place of its own where it differs from the filler's:
`mless:25` are 25 slashes (Fig. 8), `mless@end` 55 slashes after the problem (Table 4), `question` question marks
(Table 5). ARM changes the model and not the prompt: `arm`, `mless+arm` and `arm:c=0.1:p1=95` have the prompts of none
and mless.
"""

import functools
import random
import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, PositiveInt, model_validator

from lib.arm.settings import Arm, parse_arm
from lib.errors import Settings, unknown, valid, whole

INSTRUCTION = r"Please reason step by step and put your final answer within \boxed{}."
Name = Literal["none", "mless", "mful", "random", "question", "letters"]
Position = Literal["before", "between", "end", "random"]  # of the instruction; and the problem; of both; any place
Format = Literal["plain", "chat"]
CONDITIONS, POSITIONS, FORMATS = get_args(Name), get_args(Position), get_args(Format)
# As in mless:25@end+arm:c=0.1:p1=95; the settings are lib.arm.settings' own.
CONDITION = re.compile(
    r"(?P<name>[a-z]+)(:(?P<length>\d+))?(@(?P<position>[a-z]+))?(\+(?P<arm>arm)(:(?P<settings>.*))?)?"
)
RANDOM_SENTENCE = (
    "The harbour master walked along the wet pier before sunrise, counting fishing boats, while his sister "
    "painted the kitchen window green, boiled two eggs for breakfast, and wrote a long letter to an old "
    "friend about the garden, the weather, a lost umbrella, her neighbour's violin, and the slow train that "
    "carried oranges over the mountains every second winter until the bridge was closed for repairs."
)
_draw = random.Random(0)
RANDOM_LETTERS = " ".join("".join(_draw.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(40))


class Example(Settings):
    """A worked problem in LaTeX that a model is shown first, its solution ending in a box."""

    problem: str
    solution: str

    def turns(self, instruction: str) -> list[dict[str, str]]:
        """Return it as a question and an answer of a chat."""
        asked = {"role": "user", "content": f"{instruction} {self.problem}"}
        return [asked, {"role": "assistant", "content": self.solution}]


class Filler(Settings):
    """What the conditions insert, and where: `length` tokens cut from a text that is repeated as often as needed."""

    length: PositiveInt = 55
    position: Position = "between"
    mless: str = "/"
    mful: str = "he"
    random: str = RANDOM_SENTENCE
    question: str = "?"
    letters: str = RANDOM_LETTERS


class Condition(Settings):
    """A condition's parts; length and position None: the filler's. `arm` holds the settings that were named."""

    name: Name
    length: PositiveInt | None = None
    position: Position | None = None
    arm: Arm | None = None

    @model_validator(mode="after")
    def _agrees(self):
        if self.name == "none" and (self.length or self.position):
            raise ValueError("none inserts nothing, so it has no length and no position")
        return self

    def filler(self, base: Filler) -> Filler:
        """Return the filler with the condition's own length and position."""
        own = self.model_dump(include={"length", "position"}, exclude_none=True)
        return base.model_copy(update=own)


@functools.cache
def parse_condition(text: str) -> Condition:
    """Return what a condition asks for; raises InputError for a name, length, position or setting that does not exist.

    The prompt of `arm` is that of none.
    """
    match = CONDITION.fullmatch(f"none+{text}" if text.split(":")[0] == "arm" else text)
    if not match or match["name"] not in CONDITIONS:
        raise unknown("condition", text, [*CONDITIONS, "arm", "mless+arm"])
    parts = {
        "name": match["name"],
        "length": whole(match["length"]) if match["length"] else None,
        "position": match["position"],
        "arm": parse_arm(match["settings"] or "") if match["arm"] else None,
    }
    return valid(Condition, parts, f"condition {text!r}")


def _known(text: str) -> str:
    parse_condition(text)
    return text


ConditionText = Annotated[str, AfterValidator(_known)]
