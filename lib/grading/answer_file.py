"""Read gold answers and responses from the JSONL file of an evaluation harness."""

import contextlib
import math
from pathlib import Path
from typing import Any

from lib.errors import InputError
from lib.files.text_files import json_lines, plain_digits


def read_pairs(file: Path, answer: str, response: str) -> list[tuple[str, str]]:
    """Return (gold answer, response) for every line of a JSONL file.

    answer, response: dotted paths of fields, such as doc.answer and resps.0.0. A null
    response counts as empty. Raises InputError for a line without one of the fields or
    with a blank gold answer, and for an empty file.
    """
    pairs = []
    for line, row in json_lines(file):
        origin = f"{file}, line {line}"
        gold = _text_at(row, answer, origin)
        if not gold.strip():
            raise InputError(f"{origin}: field {answer!r} is blank: give a gold answer")
        pairs.append((gold, _text_at(row, response, origin, null="")))
    if not pairs:
        raise InputError(f"{file}: no lines to grade")
    return pairs


def _text_at(row: Any, field: str, origin: str, null: str | None = None) -> str:
    """Return the text or number at a dotted path of names and indices; raise InputError
    if there is none.

    origin: file and line, for the message. null: the text that replaces a null; None:
    a null raises InputError, too.
    """
    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):
        # int raises ValueError for an index that is no number or has thousands of
        # digits.
        for step in field.split("."):
            # A name of a text raises TypeError; an index would give one character.
            row = row[int(step) if isinstance(row, list) else step]
        if row is None and null is not None:
            return null
        if isinstance(row, float) and math.isfinite(row):
            return plain_digits(row)
        if isinstance(row, str | int | float) and not isinstance(row, bool):
            return str(row)
    raise InputError(f"{origin}: no text in field {field!r}")
