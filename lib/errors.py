"""The one exception that a person, not a programmer, is meant to read, and what is given from outside, checked."""

import difflib
import re
import reprlib
from collections.abc import Collection, Iterator
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

LARGEST, SMALLEST = 10**15, 1e-9  # what a number of a setting may be, but for 0: beyond them floats stop to compute
# What a person is told for the type of a pydantic error; other messages begin with "Input should be".
WORDS = {
    "missing": "missing field",
    "string_too_short": "must not be empty",
    "string_type": "must be a text",
    "string_unicode": "must be a text of whole characters",
    "string_pattern_mismatch": "must be of letters, digits, _, . and -, 80 at most",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "list_type": "must be a list",
    "dict_type": "must be fields with values",
    "model_type": "must be fields with values",
    "too_short": "must not be empty",
}


class InputError(ValueError):
    """Something given from outside cannot be used: says what, where, and what to do, in one line; exit code 2."""

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows, by IPython's own convention: the line, without the calls that led to it."""
        return [f"error: {self}"]


class PartlyDone(InputError):
    """Everything that can be done is done and kept, but not all that was asked for: exit code 1."""


class Settings(BaseModel):
    """Base of what is given from outside: no unknown fields, no silent conversion ("8" for 8), no empty text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, str_min_length=1, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _in_reach(cls, value):
        if isinstance(value, int | float) and value and not SMALLEST <= abs(value) <= LARGEST:
            raise ValueError(f"must be 0 or between {SMALLEST:g} and {LARGEST:g}")
        return value


def unknown(kind: str, given: str, known: Collection[str], advice: str = "choose from {}") -> InputError:
    """Return the error of a name that is not known, with the one that was probably meant."""
    folded = {name.lower(): name for name in known}
    guesses = [folded[name] for name in difflib.get_close_matches(given.lower(), folded, n=1)]
    meant = f" (did you mean {guesses[0]}?)" if guesses else ""
    return InputError(f"unknown {kind} {given!r}{meant}: {advice.format(', '.join(known))}")


def whole(text: str) -> int:
    """Return the whole number that a text holds; raises InputError."""
    if not re.fullmatch(r"[+-]?\d{1,15}", text, re.ASCII):
        raise InputError(f"must be a whole number below {LARGEST:g}, not {reprlib.repr(text)}")
    return int(text)


Kind = TypeVar("Kind", bound=BaseModel)


def valid(kind: type[Kind], content: object, origin: str, texts: bool = False) -> Kind:
    """Return the content as a model of this kind; the InputError names every field that is missing or wrong.

    `texts`: numbers may be given as texts, as a command line has them.
    """
    try:
        return kind.model_validate(content, strict=False if texts else None)
    except ValidationError as error:
        raise InputError(f"{origin}: {'; '.join(_reasons(kind, error.errors()))}") from error


def _reasons(kind: type[BaseModel], errors: list[Any]) -> list[str]:
    # Misspelt fields first; the field that was meant is reported as missing too: once is enough.
    meant = {}
    for place in (error["loc"] for error in errors if error["type"] == "extra_forbidden"):
        for guess in difflib.get_close_matches(str(place[-1]), _fields(kind, place[:-1]), n=1):
            meant[place] = (*place[:-1], guess)
    errors = sorted(errors, key=lambda error: error["type"] != "extra_forbidden")
    return [
        ": ".join(filter(None, [".".join(map(str, error["loc"])), _reason(error, meant.get(error["loc"]))]))
        for error in errors
        if error["type"] != "missing" or error["loc"] not in meant.values()
    ]


def _reason(error: Any, meant: tuple | None) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown field" + (f" (did you mean {meant[-1]}?)" if meant else "")
    if error["type"] == "missing":
        return WORDS["missing"]
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    text = WORDS.get(error["type"]) or re.sub(r"^\w+ should ", "must ", error["msg"])
    return f"{text}, not {_short(error['input'])}"


def _short(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # thousands of digits, from a hexadecimal number
        return "what was given"


def _fields(kind: type[BaseModel], place: tuple) -> list[str]:
    """Return the fields of the part of a model at a place such as ("accuracy", "fillers")."""
    for part in place:
        if part in kind.model_fields:
            kind = next(_models(kind.model_fields[part].annotation), kind)
    return list(kind.model_fields)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation such as list[Panel] or Variation | None speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
