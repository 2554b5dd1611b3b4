"""What is inserted where: the conditions that a prompt may have, and the texts they insert.

A condition is a name of CONDITIONS, with a length or a place of its own where it differs from the filler's:
`mless:25` are 25 slashes (Fig. 8), `mless@end` 55 slashes after the problem (Table 4), `question` question marks
(Table 5). ARM changes the model and not the prompt: `arm`, `mless+arm` and `arm:c=0.1:p1=95` have the prompts of none
and mless; `lib.arm.settings` reads the settings.
"""

import random
import re
from dataclasses import dataclass, replace

from lib.arm.settings import without_arm
from lib.errors import InputError

INSTRUCTION = r"Please reason step by step and put your final answer within \boxed{}."
CONDITIONS = ("none", "mless", "mful", "random", "question", "letters")
POSITIONS = ("before", "between", "end", "random")  # of the instruction; and the problem; of both; any place
FORMATS = ("plain", "chat")
CONDITION = re.compile(r"(?P<name>[a-z]+)(:(?P<length>\d+))?(@(?P<position>[a-z]+))?")
RANDOM_SENTENCE = (
    "The harbour master walked along the wet pier before sunrise, counting fishing boats, while his sister "
    "painted the kitchen window green, boiled two eggs for breakfast, and wrote a long letter to an old "
    "friend about the garden, the weather, a lost umbrella, her neighbour's violin, and the slow train that "
    "carried oranges over the mountains every second winter until the bridge was closed for repairs."
)
_draw = random.Random(0)
RANDOM_LETTERS = " ".join("".join(_draw.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(40))


@dataclass(frozen=True)
class Filler:
    """What the conditions insert, and where: `length` tokens cut from a text that is repeated as often as needed."""

    length: int = 55
    position: str = "between"
    mless: str = "/"
    mful: str = "he"
    random: str = RANDOM_SENTENCE
    question: str = "?"
    letters: str = RANDOM_LETTERS


def parse_condition(condition: str, filler: Filler | None = None) -> tuple[str, Filler]:
    """Return a condition's name, and the filler with the condition's own length and position.

    With ARM it is that of the prompt: none for `arm`. Raises InputError for a name, length or position that
    does not exist.
    """
    condition = without_arm(condition)
    filler, match = filler or Filler(), CONDITION.fullmatch(condition)
    name = match["name"] if match else condition
    if name not in CONDITIONS:
        raise InputError(f"unknown condition {condition!r}: choose from {', '.join(CONDITIONS)}, arm, mless+arm")
    if match["length"]:
        filler = replace(filler, length=int(match["length"]))
    filler = replace(filler, position=match["position"] or filler.position)
    if filler.position not in POSITIONS:
        raise InputError(f"unknown position {filler.position!r}: choose from {', '.join(POSITIONS)}")
    if name == "none" and condition != "none":
        raise InputError(f"condition {condition!r}: none inserts nothing, so it has no length and no position")
    return name, filler
