"""A problem with its gold answer: a line of a JSONL file in the schema of MATH."""

import json
import math
import re
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, NonNegativeInt

from lib.errors import InputError, Settings
from lib.files.jsonl import plain_digits
from lib.prompts.conditions import Condition

# The end of a sentence in a reference solution.
SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def _level_number(level: object) -> object:
    """Return a level as an integer: 3 for "Level 3", "3" and 3.0, and 0 for MATH's
    "Level ?". Other values are returned unchanged.
    """
    if isinstance(level, float) and level.is_integer():
        return int(level)
    if level == "Level ?":
        return 0
    if isinstance(level, str) and re.fullmatch(r"(Level )?\d{1,9}", level):
        return int(level.removeprefix("Level "))
    return level


def _text_of_number(value: object) -> object:
    """Return a number as text, and other values unchanged; raise ValueError for true,
    false and Infinity.
    """
    if not isinstance(value, int | float):
        return value
    # An integer may be too large to be converted to the float that isfinite needs.
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if isinstance(value, bool) or is_infinite:
        raise ValueError(f"must be text or a number, not {json.dumps(value)}")
    return plain_digits(value)


def _not_blank(value: object) -> object:
    """Return a value unchanged; raise ValueError if it is null, NaN or blank."""
    if is_nothing(value):
        raise ValueError(f"must not be empty, not {json.dumps(value)}")
    return value


# A text that may be a number in the file: 7 is read as "7".
Text = Annotated[str, BeforeValidator(_text_of_number)]
# Fields without which a line is no problem.
REQUIRED = ("problem", "answer")


class Problem(Settings):
    """A problem in LaTeX with its gold answer.

    An unknown solution or subject is "", an unknown level 0.
    """

    model_config = ConfigDict(extra="ignore", str_min_length=0)
    id: Text = Field(alias="unique_id")
    problem: Annotated[str, BeforeValidator(_not_blank)]
    answer: Annotated[Text, BeforeValidator(_not_blank)]
    solution: str = ""
    subject: str = ""
    level: Annotated[NonNegativeInt, BeforeValidator(_level_number)] = 0


def posed(problem: Problem, condition: Condition) -> str:
    """Return the text of a problem as a condition poses it: twice, with a hint (the
    first sentence of its reference solution), or unchanged.

    Raises InputError if the condition gives a hint and the problem has no reference
    solution.
    """
    if condition.posed == "twice":
        return f"{problem.problem}\n\n{problem.problem}"
    if condition.posed == "hinted":
        solution = problem.solution.strip()
        if not solution:
            raise InputError(
                f"problem {problem.id} has no solution, of which {condition} gives the"
                " first sentence"
            )
        return f"{problem.problem}\n\n{SENTENCE_END.split(solution, 1)[0]}"
    return problem.problem


def is_nothing(value: object) -> bool:
    """Return whether a value is null, blank or NaN, which pandas writes for null."""
    return value is None or value != value or not str(value).strip()
