"""Read text and YAML files; an error names the file, the line or byte, and what to
do.
"""

import gzip
import os
import zlib
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
    try:
        return read_bytes(path).decode("utf-8-sig")
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
        problem = getattr(error, "problem", None)
        if mark:
            reason = f"line {mark.line + 1}: {problem}"
        else:
            reason = " ".join(str(problem or error).split())
        raise InputError(f"{relative_path(path)}: {reason}") from error


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys; PyYAML would silently use the last one."""

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
