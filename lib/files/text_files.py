"""Read text, YAML and JSONL files; an error names the file, the line or byte, and what
to do.
"""

import contextlib
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from lib.errors import InputError
from lib.paths import relative_path


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    `~` is the home folder, and .gz is decompressed. Line ends are not converted, so
    that the digest of a text is the same on every system. Raises InputError for a file
    that cannot be read or is not UTF-8.
    """
    path = Path(os.path.expanduser(path))
    return _text_of(read_bytes(path), path)


def _text_of(content: bytes, path: Path) -> str:
    """Return bytes as text; raise InputError if they are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{relative_path(path)} is not UTF-8 text (byte {error.start}): save it as"
            " UTF-8"
        ) from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed if its name ends in .gz; raise
    InputError if it cannot be read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        # zlib's errors, for an invalid or incomplete file, have no strerror.
        reason = getattr(error, "strerror", None) or error
        message = f"{relative_path(path)} cannot be read: {reason}"
        raise InputError(message) from error


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file; raise InputError with the line if it is not
    valid.
    """
    text = read_text(path)
    try:
        return yaml.load(text, Loader=_Loader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        line = f"line {mark.line + 1}: " if mark else ""
        reason = " ".join(str(problem).split())
        raise InputError(f"{relative_path(path)}: {line}{reason}") from error


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys, of which PyYAML would silently use the last
    one, and numbers that YAML 1.1 does not read as decimal: 020 is 16, and 1:30 is 90.
    """

    def construct_scalar(self, node):
        is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if is_number and re.match(r"[-+]?0_*\d|.*:", node.value):
            problem = (
                f"{node.value} is no decimal number: write it without a first 0 and"
                " colons, or as a text in quotes"
            )
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return super().construct_scalar(node)

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                problem = f"{key.value} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def json_lines(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each line of a JSONL file that is not blank; raise
    InputError for a line that is not valid JSON.
    """
    return values_of_lines(read_text(path), path)


def values_of_lines(text: str, path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield what `json_lines` does, given the text of the file."""
    # splitlines() would also split at U+2028, which JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            # RecursionError comes from deep nesting.
            raise InputError(
                f"{path}, line {number}: not valid JSON: {error}"
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
    for number, row in values_of_lines(_text_of(lines, path), path):
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            raise InputError(f'{path}, line {number}: not a record: it needs a "key"')
        rows.setdefault(row["key"], row)
    return rows


def plain_digits(number: float) -> str:
    """Return a number as text without an exponent, because answers are LaTeX, in which
    1e-07 is no number.
    """
    return f"{Decimal(str(number)):f}"
