"""Read completions that other programs kept, as (gold answer, response) pairs.

Fields are named by dotted paths: `doc.answer`, `resps.0.0`. FORMATS knows where two programs keep theirs.
"""

import json
from pathlib import Path

import pandas as pd

from lib.errors import InputError

# Name -> (gold answer, response).
FORMATS = {
    "lib": ("answer", "response"),
    "lm-eval": ("doc.answer", "resps.0.0"),  # lm-evaluation-harness --log_samples
    "lighteval": ("doc.choices.0", "model_response.text.0"),  # lighteval's details
}


def read_pairs(path: Path, answer: str, response: str) -> list[tuple[str, str]]:
    """Return the pairs of a JSONL, JSON or parquet file; raises InputError naming the line that lacks a field."""
    rows = _rows(path)
    if not rows:
        raise InputError(f"{path}: no lines to grade")
    pairs = []
    for number, row in enumerate(rows, 1):
        where = f"{path}: line {number}"
        pairs.append((_text(row, answer, where), _text(row, response, where)))
    return pairs


def _rows(path: Path) -> list:
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path).to_dict("records")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    if path.suffix == ".json":
        return _parsed(text, str(path))
    return [_parsed(line, f"{path}: line {number}") for number, line in enumerate(text.splitlines(), 1)]


def _parsed(text: str, where: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON: {error.msg}") from error


def _text(row, field: str, where: str) -> str:
    """Follow a dotted path through dicts and sequences to a text."""
    try:
        for step in field.split("."):
            row = row[int(step) if step.isdecimal() and not isinstance(row, dict) else step]
    except (KeyError, IndexError, TypeError):
        row = None
    if not isinstance(row, str):
        raise InputError(f"{where}: no text in field {field!r}")
    return row
