"""The one exception that a person, not a programmer, is meant to read, and what is
given from outside, checked.
"""

import difflib
import re
import reprlib
from collections.abc import Collection
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

LARGEST, SMALLEST = (
    10**15,
    1e-9,
)  # what a number of a setting may be, but for 0: beyond them floats stop to compute
# What a person is told for a pydantic error, by its type or by what the type begins
# with; else its message, reworded.
WORDS = {
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must be of letters, digits, _, . and -, 80 at most",
    "too": "must not be empty",
    "string": "must be a text",
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "list": "must be a list",
    "dict": "must be fields with values",
    "model": "must be fields with values",
}


class InputError(ValueError):
    """Something given from outside cannot be used: says what, where, and what to do, in
    one line; exit code 2.
    """

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows, by IPython's own convention: the line, without
        the calls that led to it.
        """
        return [f"error: {self}"]


class PartlyDone(InputError):
    """Everything that can be done is done and kept, but not all that was asked for:
    exit code 1.
    """


class Settings(BaseModel):
    """Base of what is given from outside: no unknown fields, no silent conversion ("8"
    for 8), no empty text.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, str_min_length=1, allow_inf_nan=False
    )

    @field_validator("*")
    @classmethod
    def _in_reach(cls, value):
        if (
            isinstance(value, int | float)
            and value
            and not SMALLEST <= abs(value) <= LARGEST
        ):
            raise ValueError(f"must be 0 or between {SMALLEST:g} and {LARGEST:g}")
        return value


def did_you_mean(given: str, known: Collection[str]) -> str:
    """Return what is said after an unknown name of the one that was probably meant, if
    any.
    """
    folded = {name.lower(): name for name in known}
    return "".join(
        f" (did you mean {folded[name]}?)"
        for name in difflib.get_close_matches(given.lower(), folded, n=1)
    )


def unknown(
    kind: str, given: str, known: Collection[str], advice: str = "choose from {}"
) -> InputError:
    """Return the error of a name that is not known."""
    return InputError(
        f"unknown {kind} {given!r}{did_you_mean(given, known)}:"
        f" {advice.format(', '.join(known))}"
    )


Kind = TypeVar("Kind", bound=BaseModel)


def validated(kind: type[Kind], content: object, origin: str, **how: Any) -> Kind:
    """Return the content as a model of this kind; the InputError names every field that
    is missing or wrong.

    `how`: what else pydantic's `model_validate` takes, such as strict=False, where
    numbers may be given as texts.
    """
    try:
        return kind.model_validate(content, **how)
    except ValidationError as error:
        schema, reasons = kind.model_json_schema(), []
        fields = {
            name
            for part in (schema, *schema.get("$defs", {}).values())
            for name in part.get("properties", ())
        }
        for one in error.errors():
            place, name = (
                ".".join(str(part) for part in one["loc"] if part != "[key]"),
                one["type"],
            )
            said = (
                WORDS.get(name)
                or WORDS.get(name.split("_")[0])
                or re.sub(r"^\w+ should ", "must ", one["msg"])
            )
            special = {
                "missing": "missing field",
                "extra_forbidden": (
                    f"unknown field{did_you_mean(place.rpartition('.')[2], fields)}"
                ),
                "value_error": str(one.get("ctx", {}).get("error")),
            }
            said = special.get(name, f"{said}, not {reprlib.repr(one['input'])}")
            reasons.append(": ".join(filter(None, [place, said])))
        raise InputError(f"{origin}: {'; '.join(reasons)}") from error
