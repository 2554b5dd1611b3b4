"""Read files with errors in one line, and replace them atomically.

An error names the file, the line or byte, and what to do. `settings_key` returns the
keys under which results are stored.
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


def plain_digits(number: float) -> str:
    """Return a number as text without an exponent, because answers are LaTeX, in which
    1e-07 is no number.
    """
    return f"{Decimal(str(number)):f}"


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


def write_json(path: str | Path, value: object) -> None:
    """Write a value as JSON, replacing the file atomically.

    Raises InputError if the file cannot be written.
    """
    write_atomically(Path(path), (json.dumps(value, indent=1) + "\n").encode("ascii"))


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write the content, replacing the file atomically; create its folder if needed.

    At any time, the file has its complete old or new content. Raises InputError if it
    cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            # Without this, a power failure could leave an empty file of this name.
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def complete_folder(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Return `folder`, which is in the cache, after filling it if it does not exist.

    `fill` receives a partial folder, into which it writes, and which is renamed when it
    returns. So `folder` is complete or absent, even if a process is killed. Only one
    process fills it at a time. The partial folder may have files of a killed process,
    which `fill` may keep. Raises InputError if the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write the cache folder {folder.parent}: {error.strerror}; set"
            " XDG_CACHE_HOME to a folder that can be written"
        ) from error

    with WeakFileLock(f"{folder}.lock"):
        if not folder.is_dir():
            partial = folder.with_name(f".{folder.name}.partial")
            partial.mkdir(exist_ok=True)
            fill(partial)
            os.replace(partial, folder)
    return folder


def settings_key(**settings: object) -> str:
    """Return a digest of settings (16 hex digits), independent of their order."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
