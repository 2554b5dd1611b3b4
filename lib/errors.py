"""The exception for mistakes of a user, and the validation of settings."""

import difflib
import re
import reprlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

# The magnitude of a number in settings has to be between these, unless it is 0, because
# floats overflow or underflow beyond them.
SMALLEST = 1e-9
LARGEST = 10**15

# Messages for pydantic's errors, by the error's type or the first word of its type. For
# other types, pydantic's message is used.
REASONS = {
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": (
        "must begin with a letter, a digit or _, and have only these, . and -, at most"
        " 80"
    ),
    "too": "must not be empty",
    "string_unicode": "must be a text without half characters (lone surrogates)",
    "string": "must be a text",
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "list": "must be a list",
    "dict": "must be fields with values",
    "model": "must be fields with values",
}


class InputError(ValueError):
    """Raised for input of a user that cannot be used.

    The message says in one line what is wrong, where, and what to do. The command line
    prints it and ends with exit code 2.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the message for a notebook, without a traceback (a convention of
        IPython).
        """
        return [f"error: {self}"]


class PartlyDone(InputError):
    """Raised at the end of a run if some of its work failed; the rest is stored.

    The command line ends with exit code 1.
    """


class Settings(BaseModel):
    """The base class of settings that a user can write.

    Unknown fields, empty texts and extreme numbers are refused, and values of another
    type are not converted: "8" is no number.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, str_min_length=1, allow_inf_nan=False
    )

    @field_validator("*")
    @classmethod
    def _in_range(cls, value):
        is_number = isinstance(value, int | float) and value != 0
        if is_number and not SMALLEST <= abs(value) <= LARGEST:
            raise ValueError(f"must be 0 or between {SMALLEST:g} and {LARGEST:g}")
        return value


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return " (did you mean NAME?)" with the known name that begins with this one or
    is the most similar, or "" if none is similar.
    """
    by_lower_case = {other.lower(): other for other in known}
    begun = [other for other in by_lower_case if other.startswith(name.lower() or " ")]
    closest = begun or difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f" (did you mean {by_lower_case[closest[0]]}?)" if closest else ""


def unknown(
    kind: str, name: str, known: Collection[str], advice: str = "choose from {}"
) -> InputError:
    """Return the error for an unknown name of this kind, such as "model".

    advice: the end of the message, in which {} becomes the known names.
    """
    choices = advice.format(", ".join(known))
    return InputError(f"unknown {kind} {name!r}{did_you_mean(name, known)}: {choices}")


Model = TypeVar("Model", bound=BaseModel)


def validated(
    model: type[Model], content: object, origin: str, **options: Any
) -> Model:
    """Return the content, such as a dict, as an instance of a pydantic model.

    origin: the file or the options that it comes from, for the message. options: of
    pydantic's `model_validate`, such as strict=False if numbers may be texts. Raises
    one InputError that names every missing or wrong field.
    """
    try:
        return model.model_validate(content, **options)
    except ValidationError as error:
        fields = _fields_at_any_depth(model)
        reasons = [_reason(details, fields) for details in error.errors()]
        raise InputError(f"{origin}: {'; '.join(reasons)}") from error


def _fields_at_any_depth(model: type[BaseModel]) -> set[str]:
    """Return the names of the fields of a model and of the models inside it."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", ())}


def _dotted(path: Sequence[str | int]) -> str:
    """Return the path of a field as text, such as a.b (item 1).c."""
    dotted = ""
    for part in path:
        if isinstance(part, int):
            dotted += f" (item {part + 1})"
        elif part != "[key]":
            dotted += f".{part}"
    return dotted.removeprefix(".")


def _reason(details: Mapping[str, Any], fields: Collection[str]) -> str:
    """Return the field and the reason of one of pydantic's errors as text.

    fields: known names, for suggestions.
    """
    field = _dotted(details["loc"])
    kind = details["type"]
    if kind == "missing":
        reason = "missing field"
    elif kind == "extra_forbidden":
        name = field.rpartition(".")[2]
        reason = f"unknown field{did_you_mean(name, fields)}"
    elif kind == "value_error":
        reason = str(details["ctx"]["error"])
    else:
        reworded = re.sub(r"^\w+ should ", "must ", details["msg"])
        reason = REASONS.get(kind) or REASONS.get(kind.split("_")[0]) or reworded
        reason = f"{reason}, not {reprlib.repr(details['input'])}"
    return f"{field}: {reason}" if field else reason
