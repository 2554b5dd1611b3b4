"""Read files with errors in one line, and write them atomically.

`settings_key` returns the keys under which results are stored.
"""

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub.utils import WeakFileLock

from lib.errors import InputError
from lib.paths import relative_path


def read_text(path: str | Path) -> str:
    """Return the text of a UTF-8 file without byte order mark; `~` is the home folder,
    and .gz is unpacked.

    Line ends stay as they are, so that a text's digest is the same on every system.
    Raises InputError.
    """
    path = Path(os.path.expanduser(path))
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
        message = f"{relative_path(path)} is not UTF-8 text ({place})"
        raise InputError(message) from error


def read_bytes(path: Path) -> bytes:
    """Return a file's content, with .gz unpacked; raise InputError if it cannot be
    read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        # The error of an invalid or incomplete gzip file has no strerror.
        reason = getattr(error, "strerror", None) or error
        message = f"{relative_path(path)} cannot be read: {reason}"
        raise InputError(message) from error


def json_lines(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for every line of a JSONL file that is not blank;
    raise InputError for an invalid one.
    """
    # Not splitlines(): JSON allows U+2028 and its like inside a string.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            # RecursionError comes from deep nesting; a ValueError without `msg` from a
            # number with thousands of digits.
            reason = getattr(error, "msg", error)
            message = f"{path}, line {number}: not valid JSON ({reason})"
            raise InputError(message) from error


def digits_of(number: float) -> str:
    """Return a JSON number in plain digits, because 1e-07 is not valid LaTeX."""
    return f"{Decimal(str(number)):f}"


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file; an InputError names the file and the line."""
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
    """YAML that refuses duplicate keys, of which the first would be lost silently."""

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


def write_json(path: str | Path, value: object) -> None:
    """Replace a file by the value as JSON, atomically.

    Raises InputError for any OSError.
    """
    write_whole(Path(path), (json.dumps(value, indent=1) + "\n").encode("ascii"))


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Replace a file by the content, atomically; create its folder.

    Raises InputError for any OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            # Otherwise a power failure may leave an empty file with the new name.
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def whole_folder(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Return `folder`, which is either complete or absent, even if a process is killed.

    `fill` creates it in a partial folder that is renamed at the end. One process at a
    time fills it, and may continue the work of a killed one. Raises InputError if the
    cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot write the cache folder {folder.parent}: {error.strerror}"
        raise InputError(message) from error

    with WeakFileLock(f"{folder}.lock"):
        if not folder.is_dir():
            partial = folder.with_name(f".{folder.name}.partial")
            partial.mkdir(exist_ok=True)
            fill(partial)
            os.replace(partial, folder)
    return folder


def settings_key(**parts: object) -> str:
    """Return 16 hex digits that identify the parts, whatever their order."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
