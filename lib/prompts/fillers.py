"""Define the texts that conditions insert, with their length and position."""

import random
from typing import Literal, get_args

from pydantic import Field, PositiveInt

from lib.errors import Settings

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
SEPARATORS: dict[Separator, str] = {
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

    A text is repeated until it has `length` tokens.
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
        """Return the text that a condition of this name repeats, or the separator that
        it inserts.
        """
        if name in SEPARATORS:
            return SEPARATORS[name]
        if name in RELATED_FILLERS:
            return RELATED_FILLERS[name]
        return getattr(self, name)
