"""A folder of rows that grows line by line, so that a run can be stopped anywhere and
resumed.

    with open_store(folder, settings, file="scores.jsonl") as store:
        store.fill(wanted, make, name, "score")  # computes and stores missing rows
    rows = read(folder / "scores.jsonl")

`run.json` holds the settings that all rows share; the other file has one row per line.
Only one run at a time writes a file, which flock ensures on local disks.
"""

import contextlib
import errno
import fcntl
import json
import os
import sys
import threading
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from lib import progress
from lib.errors import InputError
from lib.files.atomic import read_bytes, write_json

RUN = "run.json"
ADVICE = "use another folder, or delete this one"
# Rows that are finished in parallel, so that a slow one does not delay the others.
FINISHED_AT_ONCE = 4
# Errors of a disk without locks, and the message for them.
LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
NO_LOCKS = (
    "this disk has no file locks: write to another one, with --out or a copy there"
)
Wanted = TypeVar("Wanted")
Made = TypeVar("Made")


@contextlib.contextmanager
def open_store(
    folder: str | Path,
    settings: dict,
    environment: dict | None = None,
    shard: tuple[int, int] = (1, 1),
    *,
    file: str,
) -> Iterator["Store"]:
    """Yield the store of a folder, new or resumed, with exclusive access to its file
    until the block ends; another run waits.

    Shard (i, n) has a separate file, so that the jobs of an array need no lock across
    machines. Raises InputError for a folder that cannot be written, has other settings,
    or is damaged other than by a half-written last line.
    """
    path = Path(folder) / file
    if shard != (1, 1):
        path = path.with_stem(f"{path.stem}-{shard[0]}-of-{shard[1]}")
    with contextlib.ExitStack() as stack:
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(open(path, "ab", buffering=0))
            _lock(stream, path)
            require_same_settings(path.parent, settings)
            run = path.with_name(RUN)
            if not run.exists():
                content = {"settings": settings, "environment": environment or {}}
                write_json(run, content)
            rows = _repaired_rows(stream, path)
        yield Store(path, stream.fileno(), rows)


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError raised while writing a file into a one-line InputError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"disk full at {path}: nothing lost; free space and run again"
            ) from error
        reason = NO_LOCKS if error.errno in LOCKS else error.strerror
        raise InputError(f"cannot write results to {path.parent}: {reason}") from error


def _lock(stream: BinaryIO, path: Path) -> None:
    """Lock a file, and report if another run has to end first."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run writes {path}: waiting for it", file=sys.stderr, flush=True)
        fcntl.flock(stream, fcntl.LOCK_EX)


def _repaired_rows(stream: BinaryIO, path: Path) -> dict[str, dict]:
    """Return the rows of a file that nobody else writes, and remove what a killed
    writer left at its end.
    """
    data = path.read_bytes()
    whole = _complete_lines(data)
    rows = _rows_of_lines(whole, path)
    if len(whole) < len(data):
        os.ftruncate(stream.fileno(), len(whole))
        print(f"repaired: dropped a half-written last line of {path}", file=sys.stderr)
    elif whole != data:
        os.write(stream.fileno(), b"\n")
    return rows


class Store:
    """The rows of one run: `rows` by key, in the file's order; `append` adds one."""

    def __init__(self, path: Path, descriptor: int, rows: dict[str, dict]):
        self.path = path
        self.rows = rows
        self._file = descriptor
        self._writing = threading.Lock()
        self._writable = True

    def append(self, row: dict) -> None:
        """Write a row with a key, unless the key exists; raise InputError if that
        fails. The next run removes a partly written line.
        """
        line = json.dumps(row).encode() + b"\n"
        if row["key"] in self.rows:
            return
        with write_errors(self.path):
            # A full disk raises an error only in the next call.
            if os.write(self._file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.rows[row["key"]] = json.loads(line)  # as it is read later

    def rows_of_all_shards(self) -> dict[str, dict]:
        """Return the rows of all shards so far, by key."""
        stem = self.path.name.split("-")[0].removesuffix(".jsonl")
        others = set(self.path.parent.glob(f"{stem}*.jsonl")) - {self.path}
        rows = {row["key"]: row for row in read(*sorted(others))}
        return rows | self.rows

    def missing(self, wanted: Mapping[str, Wanted]) -> dict[str, Wanted]:
        """Return the wanted rows that no shard has."""
        known = self.rows_of_all_shards()
        return {key: item for key, item in wanted.items() if key not in known}

    def copy_missing(self, wanted: Collection[str], rows: Iterable[dict]) -> None:
        """Write the wanted rows that no shard has from the given rows."""
        missing = set(wanted) - self.rows_of_all_shards().keys()
        for row in rows:
            if row["key"] in missing:
                self.append(row)

    def fill(
        self,
        wanted: Mapping[str, Wanted],
        make: Callable[[dict[str, Wanted]], Generator[Made, None, None]],
        name: str,
        unit: str,
        finish: Callable[[Made], dict] | None = None,
    ) -> int:
        """Make the wanted rows that no shard has, store each as soon as it is made (one
        unit of a progress bar), and return how many could not be made.

        `finish` turns a result into its row, while the next ones are made.
        """
        missing = self.missing(wanted)
        if not missing:
            return 0
        done = len(wanted) - len(missing)
        bar = progress.bar(name, len(wanted), unit, done)

        def keep(row: dict) -> None:
            with self._writing:
                # Nothing may be written after a half-written line.
                if self._writable:
                    self._writable = False
                    self.append(row)
                    self._writable = True
                    bar.update()

        with bar, contextlib.closing(make(missing)) as made:
            if finish:
                _in_threads(made, lambda one: keep(finish(one)))
            else:
                for row in made:
                    keep(cast(dict, row))
        return sum(key not in self.rows for key in missing)


def _in_threads(made: Iterable[Made], work: Callable[[Made], None]) -> None:
    """Process results in threads, while the next ones are made.

    Work that has begun is finished even if the making is interrupted. An exception of
    the work is raised with the next result.
    """
    with ThreadPoolExecutor(FINISHED_AT_ONCE) as threads:
        waiting: deque[Future[None]] = deque()
        for one in made:
            waiting.append(threads.submit(work, one))
            while waiting and waiting[0].done():
                waiting.popleft().result()
        for future in waiting:
            future.result()


def _complete_lines(data: bytes) -> bytes:
    """Drop a half-written last line; add a missing line end."""
    end = data.rfind(b"\n") + 1
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data[end:])
        return data + b"\n"
    return data[:end]


def _rows_of_lines(whole: bytes, path: Path) -> dict[str, dict]:
    """Return the rows of complete lines by key, the first of each. Blank lines are
    skipped; an InputError names an invalid line.
    """
    rows: dict[str, dict] = {}
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
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


def read(*files: str | Path) -> list[dict]:
    """Return the rows of JSONL files (also .gz), the first of each key; raise
    InputError that names an invalid line.

    A last line without a line end is ignored: its writer is still writing it, or was
    killed.
    """
    rows: dict[str, dict] = {}
    for path in map(Path, files):
        whole = _complete_lines(read_bytes(path))
        for key, row in _rows_of_lines(whole, path).items():
            rows.setdefault(key, row)
    return list(rows.values())


def require_same_settings(folder: Path, settings: dict) -> None:
    """Raise InputError for the first setting that differs from those of an existing
    folder.
    """
    if (folder / RUN).exists():
        difference = first_difference(read_settings(folder), settings)
        if difference:
            raise InputError(f"{folder} was made with {difference}: {ADVICE}")


def first_difference(before: dict, now: dict) -> str:
    """Return the first setting that differs, as `name = old, not new`; "" for none."""
    was = _flat(before)
    new = _flat(now)
    for name in was | new:
        old_value = was.get(name, "(absent)")
        new_value = new.get(name, "(absent)")
        if old_value != new_value:
            return f"{name} = {old_value}, not {new_value}"
    return ""


def _flat(settings: dict, prefix: str = "") -> dict[str, str]:
    """Return settings as JSON by name; those of a group as group.name."""
    flat = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = json.dumps(value)
    return flat


def read_settings(folder: Path) -> dict:
    """Return the settings of the run in a folder; raise InputError if there is none."""
    path = folder / RUN
    if not path.is_file():
        raise InputError(f"{folder} holds no run: it has no {RUN}")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))["settings"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is broken: {ADVICE}") from error
