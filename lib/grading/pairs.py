"""Gold answers and responses from a file of any harness, a JSON object per line."""

import contextlib
import math
from pathlib import Path
from typing import Any

from lib.errors import InputError
from lib.files.atomic import json_lines, plain_digits


def read_pairs(file: Path, answer: str, response: str) -> list[tuple[str, str]]:
    """Return gold answer and response of every line, by the dotted paths of their
    fields, such as doc.answer and resps.0.0. A response of null is an empty one.

    Raises InputError for a line without one of them or with a blank gold answer, and
    for a file without lines.
    """
    pairs = []
    for line, row in json_lines(file):
        place = f"{file}, line {line}"
        gold = _text_at(row, answer, place)
        if not gold.strip():
            raise InputError(f"{place}: field {answer!r} is blank: give a gold answer")
        pairs.append((gold, _text_at(row, response, place, null="")))
    if not pairs:
        raise InputError(f"{file}: no lines to grade")
    return pairs


def _text_at(row: Any, field: str, place: str, null: str | None = None) -> str:
    """Return the text or number at a dotted path of names and places; raises InputError
    where there is none.

    null: what stands for a null, which is refused without it.
    """
    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):
        # The ValueError is of a place that is no number, or of thousands of digits.
        for step in field.split("."):
            row = row[step if isinstance(row, dict) else int(step)]
        if row is None and null is not None:
            return null
        if isinstance(row, float) and math.isfinite(row):
            return plain_digits(row)
        if isinstance(row, str | int | float) and not isinstance(row, bool):
            return str(row)
    raise InputError(f"{place}: no text in field {field!r}")
