"""The error that a person is meant to read, and the check of whatever users give."""

import difflib
import importlib.util
import os
import re
import reprlib
import ssl
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

# Between these a setting's number has to lie unless it is 0: beyond them floats stop
# to compute.
SMALLEST = 1e-9
LARGEST = 10**15

# What a person is told for an error of pydantic's, by its type or by the type's first
# word; for any other its message is reworded.
REASONS = {
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
    """Something that comes from outside cannot be used.

    The message says in one line what, where, and what to do; the exit code is 2.
    """

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows, by a convention of IPython's: the line, without
        the calls that led to it.
        """
        return [f"error: {self}"]


class PartlyDone(InputError):
    """Everything that can be done is done and kept, but not all that was wanted.

    The exit code is 1.
    """


def unusable_variable() -> str | None:
    """Return in a line which variable of the environment, if any, lets no connection to
    a hub be made: a proxy, a file of certificates or a token.
    """
    certificates = os.environ.get("SSL_CERT_FILE") or None
    try:
        ssl.create_default_context(cafile=certificates)
    except OSError:
        return f"SSL_CERT_FILE is {certificates}, no file of certificates: unset it"
    known = ["http", "https"]
    if importlib.util.find_spec("socksio"):
        known += ["socks5", "socks5h"]
    proxies = urllib.request.getproxies_environment()
    for kind in ("all", "https", "http"):
        kind_of_proxy, separator, _ = proxies.get(kind, "").partition("://")
        if separator and kind_of_proxy not in known:
            return (
                f"{kind.upper()}_PROXY is {proxies[kind]}: give a proxy of"
                f" {' or '.join(known)}, or unset it"
            )
    if not os.environ.get("HF_TOKEN", "").isascii():
        return "HF_TOKEN has a letter that no token has: copy it once more, or unset it"
    return None


class Settings(BaseModel):
    """Base of what comes from outside.

    It takes no unknown fields, no empty text, and converts nothing silently ("8" to 8).
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, str_min_length=1, allow_inf_nan=False
    )

    @field_validator("*")
    @classmethod
    def _in_reach(cls, value):
        is_number = isinstance(value, int | float) and value != 0
        if is_number and not SMALLEST <= abs(value) <= LARGEST:
            raise ValueError(f"must be 0 or between {SMALLEST:g} and {LARGEST:g}")
        return value


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return what follows an unknown name: which one was probably meant, if any."""
    by_lower_case = {other.lower(): other for other in known}
    closest = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f" (did you mean {by_lower_case[closest[0]]}?)" if closest else ""


def unknown(
    kind: str, name: str, known: Collection[str], advice: str = "choose from {}"
) -> InputError:
    """Return the error of a name that is not known."""
    choices = advice.format(", ".join(known))
    return InputError(f"unknown {kind} {name!r}{did_you_mean(name, known)}: {choices}")


Model = TypeVar("Model", bound=BaseModel)


def validated(
    model: type[Model], content: object, origin: str, **options: Any
) -> Model:
    """Return the content as a model; the InputError names every field that is missing
    or wrong.

    The options are those of pydantic's `model_validate`, such as strict=False where
    numbers may come as texts.
    """
    try:
        return model.model_validate(content, **options)
    except ValidationError as error:
        fields = _fields_at_any_depth(model)
        reasons = [_reason(details, fields) for details in error.errors()]
        raise InputError(f"{origin}: {'; '.join(reasons)}") from error


def _fields_at_any_depth(model: type[BaseModel]) -> set[str]:
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", ())}


def _place(path: Sequence[str | int]) -> str:
    """Return the dotted path of a field; items of a list are counted from 1."""
    place = ""
    for part in path:
        if isinstance(part, int):
            place += f" (item {part + 1})"
        elif part != "[key]":
            place += f".{part}"
    return place.removeprefix(".")


def _reason(details: Mapping[str, Any], fields: Collection[str]) -> str:
    """Return where one error of pydantic's is and what is wrong there."""
    place = _place(details["loc"])
    kind = details["type"]
    if kind == "missing":
        reason = "missing field"
    elif kind == "extra_forbidden":
        name = place.rpartition(".")[2]
        reason = f"unknown field{did_you_mean(name, fields)}"
    elif kind == "value_error":
        reason = str(details["ctx"]["error"])
    else:
        reworded = re.sub(r"^\w+ should ", "must ", details["msg"])
        reason = REASONS.get(kind) or REASONS.get(kind.split("_")[0]) or reworded
        reason = f"{reason}, not {reprlib.repr(details['input'])}"
    return f"{place}: {reason}" if place else reason
