"""Read completions that other programs kept, as (gold answer, response) pairs, from fields such as `resps.0.0`."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from lib.errors import InputError
from lib.paths import json_lines, parse_json, read_text

# Name -> (gold answer, response).
FORMATS = {
    "lib": ("answer", "response"),
    "lm-eval": ("doc.answer", "resps.0.0"),  # lm-evaluation-harness --log_samples
    "lighteval": ("doc.choices.0", "model_response.text.0"),  # lighteval's details
}


def read_pairs(path: Path, answer: str, response: str) -> list[tuple[str, str]]:
    """Return the pairs of a JSONL, JSON or parquet file; raises InputError naming the line that lacks a field."""
    pairs = []
    for number, row in _rows(path):
        where = f"{path}, line {number}"
        pairs.append((_text(row, answer, where), _text(row, response, where)))
    if not pairs:
        raise InputError(f"{path}: no lines to grade")
    return pairs


def _rows(path: Path) -> Iterable[tuple[int, Any]]:
    if path.suffix == ".parquet":
        try:
            return enumerate(pd.read_parquet(path).to_dict("records"), 1)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is no parquet file that can be read: {error}") from error
    if path.suffix != ".json":
        return json_lines(path)
    rows = parse_json(read_text(path), str(path))
    if not isinstance(rows, list):
        raise InputError(f"{path}: must be a list of rows")
    return enumerate(rows, 1)


def _text(row: Any, field: str, where: str) -> str:
    """Return what a row has in a field, a number as text; raises InputError where its path leads nowhere."""
    value = row
    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):  # the last: a number of thousands of digits
        for step in field.split("."):
            value = value[int(step) if step.isdecimal() and not isinstance(value, dict) else step]
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    raise InputError(f"{where}: no text in field {field!r}")
