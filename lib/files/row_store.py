"""Store the rows of a run line by line, so that it can be stopped at any time and
resumed.

    with open_store(folder, settings, file="scores.jsonl") as store:
        for key, text in store.missing(wanted).items():
            store.append({"key": key, "nats": score(text)})  # is stored at once
    rows = read(folder / "scores.jsonl")  # lib.files.text_files

A row is a dict with a unique text under "key", a digest of everything that decides it
(`settings_key`), so that rows of other settings may lie beside it. In the folder, a
JSONL file has one row per line, and `run.json` records the settings of the latest run.
Only one run at a time writes a file, which flock ensures on local disks; a lock ends
when its file is closed, even if the process is killed.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

from lib.errors import InputError
from lib.files.atomic import make_folder, write_json
from lib.files.text_files import complete_lines, read, rows_of_lines


def lock(stream: BinaryIO, path: Path) -> None:
    """Lock a file; if another run has locked it, say so and wait until that ends."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run writes {path}: waiting for it", file=sys.stderr, flush=True)
        fcntl.flock(stream, fcntl.LOCK_EX)


RUN = "run.json"


def read_settings(folder: Path) -> dict:
    """Return the settings of the latest run in a folder; raise InputError if there is
    none.
    """
    path = folder / RUN
    if not path.is_file():
        raise InputError(f"{folder} holds no run: it has no {RUN}")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))["settings"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is broken: delete this file") from error


def settings_key(**settings: object) -> str:
    """Return a digest of settings (16 hex digits), independent of their order."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


# Error numbers of a disk without file locks, and the message for them.
LOCK_ERRORS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
NO_LOCKS = (
    "this disk has no file locks: give --out on another disk, or copy the project there"
)
Wanted = TypeVar("Wanted")


@contextlib.contextmanager
def open_store(
    folder: str | Path,
    settings: dict,
    environment: dict | None = None,
    shard: tuple[int, int] = (1, 1),
    *,
    file: str,
) -> Iterator["Store"]:
    """Yield the store of a folder, which is created or continued.

    settings, environment: recorded in `run.json`, instead of those of earlier runs.
    shard: (i, n), the part of a job array; each has a separate file, because locks do
    not work across machines. file: name of the JSONL file. Until the block ends,
    another run that opens the same file waits. Raises InputError for a folder that
    cannot be written, and for a damaged file, but removes a half-written last line.
    """
    path = Path(folder) / file
    if shard != (1, 1):
        path = path.with_stem(f"{path.stem}-{shard[0]}-of-{shard[1]}")
    with contextlib.ExitStack() as stack:
        with write_errors(path):
            make_folder(path.parent)
            stream = stack.enter_context(open(path, "ab", buffering=0))
            lock(stream, path)
            rows = _repaired_rows(stream, path)
            content = {"settings": settings, "environment": environment or {}}
            write_json(path.with_name(RUN), content)
        yield Store(path, stream.fileno(), rows)


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError raised while writing a file into a one-line InputError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"disk full at {path}: the rows stored so far are kept; free space and"
                " run again, which computes the others"
            ) from error
        reason = NO_LOCKS if error.errno in LOCK_ERRORS else error.strerror
        raise InputError(f"cannot write results to {path.parent}: {reason}") from error


def _repaired_rows(stream: BinaryIO, path: Path) -> dict[str, dict]:
    """Return the rows of a locked file by key, and repair the end of the file.

    A half-written last line is removed, and a complete one without a line end gets it.
    """
    data = path.read_bytes()
    lines = complete_lines(data)
    rows = rows_of_lines(lines, path)
    if len(lines) < len(data):
        os.ftruncate(stream.fileno(), len(lines))
        print(f"repaired: dropped a half-written last line of {path}", file=sys.stderr)
    elif lines != data:
        os.write(stream.fileno(), b"\n")
    return rows


class Store:
    """The rows of an open file: `rows` by key, in the file's order; `append` adds one,
    also from several threads.

    Other shards of the same run have further rows in other files.
    """

    def __init__(self, path: Path, descriptor: int, rows: dict[str, dict]):
        self.path = path
        self.rows = rows
        self._file = descriptor
        self._writing = threading.Lock()
        self._writable = True

    def append(self, row: dict) -> None:
        """Write a row, unless its key exists.

        Raises InputError if that fails. A partly written line stays in the file until
        the next run removes it, so nothing is written after it.
        """
        line = json.dumps(row).encode() + b"\n"
        with self._writing:
            if row["key"] in self.rows or not self._writable:
                return
            self._writable = False
            with write_errors(self.path):
                # A full disk raises an error only in the next call.
                if os.write(self._file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._writable = True
            # The row as it will be read: JSON turns tuples into lists.
            self.rows[row["key"]] = json.loads(line)

    def rows_of_all_shards(self) -> dict[str, dict]:
        """Return the rows that any shard has stored so far, by key.

        They are read from all files whose names begin like this one's, so that a copy
        such as scores-backup.jsonl counts, too.
        """
        stem = self.path.name.split("-")[0].removesuffix(".jsonl")
        others = set(self.path.parent.glob(f"{stem}*.jsonl")) - {self.path}
        rows = {row["key"]: row for row in read(*sorted(others))}
        return rows | self.rows

    def missing(self, wanted: Mapping[str, Wanted]) -> dict[str, Wanted]:
        """Return the part of `wanted`, by key, whose rows no shard has."""
        known = self.rows_of_all_shards()
        return {key: item for key, item in wanted.items() if key not in known}
