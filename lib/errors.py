"""The one exception that a person, not a programmer, is meant to read, and what is given from outside, checked."""

import difflib
import reprlib
from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError


class InputError(ValueError):
    """Something given from outside cannot be used: says what, where, and what to do, in one line.

    The command line prints it without a traceback and exits with code 2.
    """


class PartlyDone(InputError):
    """Everything that can be done is done and kept, but not all that was asked for: exit code 1."""


class Settings(BaseModel):
    """Base of what is given from outside: no unknown fields, no silent conversion ("8" for 8), no empty text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, str_min_length=1, allow_inf_nan=False)


Kind = TypeVar("Kind", bound=BaseModel)


def valid(kind: type[Kind], content: object, origin: str) -> Kind:
    """Return the content as a model of this kind; the InputError names every field that is missing or wrong."""
    try:
        return kind.model_validate(content)
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
        return "missing field"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, not {reprlib.repr(error['input'])}"


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
