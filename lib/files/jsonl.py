"""Read JSONL files, which have one JSON value per line."""

import contextlib
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from lib.errors import InputError
from lib.files.text_and_yaml import read_bytes, read_text


def json_lines(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each line of a JSONL file that is not blank; raise
    InputError for a line that is not valid JSON.
    """
    # splitlines() would also split at U+2028, which JSON allows inside a string.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            # RecursionError comes from deep nesting; a ValueError without `msg` from a
            # number with thousands of digits.
            reason = getattr(error, "msg", error)
            raise InputError(
                f"{path}, line {number}: not valid JSON ({reason}): give one value per"
                " line"
            ) from error


def read(*files: str | Path) -> list[dict]:
    """Return the rows of JSONL files (also .gz); of rows with the same key, the first.

    A half-written last line is ignored, because a run may still be writing it. Raises
    InputError that names an invalid line.
    """
    rows: dict[str, dict] = {}
    for path in map(Path, files):
        lines = complete_lines(read_bytes(path))
        for key, row in rows_of_lines(lines, path).items():
            rows.setdefault(key, row)
    return list(rows.values())


def complete_lines(data: bytes) -> bytes:
    """Return the content of a JSONL file without a half-written last line.

    A last line that is valid JSON is complete, and gets a line end if it has none.
    """
    end = data.rfind(b"\n") + 1
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data[end:])
        return data + b"\n"
    return data[:end]


def rows_of_lines(lines: bytes, path: Path) -> dict[str, dict]:
    """Return the rows of complete lines by key; of rows with the same key, the first.

    Blank lines are skipped. Raises InputError that names an invalid line.
    """
    rows: dict[str, dict] = {}
    for number, line in enumerate(lines.split(b"\n")[:-1], 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"line {number} of {path} is not valid JSON: {error}"
            ) from error
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            raise InputError(
                f'line {number} of {path} is not a record: it needs a "key"'
            )
        rows.setdefault(row["key"], row)
    return rows


def plain_digits(number: float) -> str:
    """Return a number as text without an exponent, because answers are LaTeX, in which
    1e-07 is no number.
    """
    return f"{Decimal(str(number)):f}"
