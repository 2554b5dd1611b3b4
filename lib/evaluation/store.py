"""A folder of records that grows by whole lines, so that a run can be stopped anywhere and resumed.

`run.json` holds the settings that every record shares, `completions.jsonl` or `scores.jsonl` one record per line. The
file is the truth: a store only remembers how far it has read, and looks for what others added before it writes.
"""

import contextlib
import errno
import fcntl
import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from lib.errors import InputError
from lib.evaluation.records import Record
from lib.paths import write_json, write_whole

RUN = "run.json"
COMPLETIONS = "completions.jsonl"
SCORES = "scores.jsonl"
ADVICE = "use another folder, or delete this one"
SHARD = "-{}-of-{}.jsonl"  # ends the name of a shard's file


class _NotJSON(InputError):
    """A line that is no JSON at all: at the end of the file, the trace of a write that was cut short."""


class Store:
    """The records of one run: `records` in file order, `done` their keys, `append` for more.

    Several processes and threads may share the folder, on local disks: it relies on flock.
    """

    def __init__(
        self, folder: str | Path, settings: dict, environment: dict | None = None, shard=(1, 1), file=COMPLETIONS
    ):
        """Create the folder, or resume it; a half-written last line is cut off and reported on stderr.

        Shard (i, n) has a file of its own, so that the jobs of an array need no lock that spans machines. Raises
        InputError for a folder that cannot be written, was made with other settings, or is damaged.
        """
        self.folder = Path(folder)
        self.path = self.folder / (file if shard == (1, 1) else Path(file).stem + SHARD.format(*shard))
        self.records: list[Record] = []
        self.done: set[str] = set()
        self._end = 0  # bytes read so far, always a line's end
        self._lines = 0
        settings = json.loads(json.dumps(settings))  # as it gives them back: a tuple is the list it was stored as
        with self._locked() as file:
            _match_settings(self.folder / RUN, settings, environment or {})
            self._refresh(file)

    def append(self, record: Record) -> bool:
        """Write a record whose key is new, whole or not at all (InputError), and return whether it was new."""
        line = json.dumps(record).encode() + b"\n"
        record = _parse(line, "the new record")  # as a later reader will see it, who could not take another
        with self._locked() as file:
            self._refresh(file)
            if record["key"] in self.done:
                return False
            self._write(file, line)
            self._add([record], len(line))
        return True

    def everything(self) -> list[Record]:
        """Return the records of all shards so far, this store's first, the first of each key."""
        first = {record["key"]: record for record in self.records}
        for record in _others(self.folder, self.path):
            first.setdefault(record["key"], record)
        return list(first.values())

    def note_failed(self, rows: list[dict]) -> Path | None:
        """Write down what this run gave up, a line each, and return the file; without any remove an earlier run's."""
        path = self.path.with_name(self.path.name.replace("completions", "failed"))
        if not rows:
            path.unlink(missing_ok=True)
            return None
        write_whole(path, "".join(json.dumps(row) + "\n" for row in rows).encode())
        return path

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Yield the open file, alone with it until the block ends; raises InputError for any OSError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise InputError(f"cannot write results to {self.folder}: {error.strerror}") from error

    def _refresh(self, file: int) -> None:
        """Take in the lines that were added since the last look, and mend the last one."""
        size = os.fstat(file).st_size
        if size < self._end:
            raise InputError(f"{self.path} was shortened or replaced during the run: run again")
        if size == self._end:
            return
        with open(file, "rb", closefd=False) as stream:
            stream.seek(self._end)
            data = stream.read()
        before, end, last = data.removesuffix(b"\n").rpartition(b"\n")
        records = _parse_all(before + end, self.path, self._lines + 1)
        # Nobody else writes under the lock, so a bad last line is what a killed writer left.
        try:
            records += _parse_all(last + b"\n", self.path, self._lines + len(records) + 1)
        except _NotJSON:
            data = before + end
            os.ftruncate(file, self._end + len(data))
            print(f"repaired: dropped a half-written last line of {self.path}", file=sys.stderr)
        if data and not data.endswith(b"\n"):
            self._write(file, b"\n")
            data += b"\n"
        self._add(records, len(data))

    def _add(self, records: list[Record], length: int) -> None:
        for record in records:
            if record["key"] not in self.done:
                self.done.add(record["key"])
                self.records.append(record)
        # Last: an interrupt before this line only means that the lines are read, and passed over, again.
        self._end += length
        self._lines += len(records)

    def _write(self, file: int, data: bytes) -> None:
        """Write everything or nothing; raises InputError for a full disk and OSError for the rest."""
        before = os.fstat(file).st_size
        try:
            if os.write(file, data) < len(data):  # a disk that fills up is an error only in the next call
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):  # the next look at the file mends it then
                os.ftruncate(file, before)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise InputError(f"disk full at {self.path}: nothing lost; free space and run again") from error


def records_in(folder: Path) -> list[Record]:
    """Return the records of a run's folder, all shards together, the first of each key."""
    first: dict[str, Record] = {}
    for record in _others(folder):
        first.setdefault(record["key"], record)
    return list(first.values())


def read_run(folder: Path) -> dict:
    """Return the settings of the run in a folder; raises InputError where there is none."""
    path = folder / RUN
    if not path.is_file():
        raise InputError(f"{folder} holds no run: it has no {RUN}")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))["settings"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is broken: {ADVICE}") from error


def _others(folder: Path, mine: Path | None = None) -> Iterator[Record]:
    """Yield the records of all files of a run but `mine`, as far as their lines are whole."""
    for path in [*sorted(folder.glob("completions" + SHARD.format("*", "*"))), folder / COMPLETIONS]:
        if path != mine and path.is_file():
            # Its owner may be writing the last line now, or have been killed at it.
            yield from _parse_all(path.read_bytes().rpartition(b"\n")[0], path)


def read_records(path: str | Path) -> list[Record]:
    """Return the records of a JSONL file, also a .gz, the first of each key; raises InputError naming a broken line."""
    try:
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if Path(path).suffix == ".gz" else data
    except (OSError, EOFError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    first: dict[str, Record] = {}
    for record in _parse_all(data, path):
        first.setdefault(record["key"], record)
    return list(first.values())


def _match_settings(path: Path, settings: dict, environment: dict) -> None:
    if not path.exists():
        write_json(path, {"settings": settings, "environment": environment})
        return
    was, now = _flat(read_run(path.parent)), _flat(settings)
    for name in was | now:
        if (old := was.get(name, "(absent)")) != (new := now.get(name, "(absent)")):
            raise InputError(f"{path.parent} was made with {name} = {old}, not {new}: {ADVICE}")


def _flat(settings: dict, prefix: str = "") -> dict[str, str]:
    """Return settings as JSON by name, those of a group as group.name."""
    found = {}
    for name, value in settings.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: json.dumps(value)}
    return found


def _parse_all(data: bytes, path: str | Path, first: int = 1) -> list[Record]:
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    return [_parse(line, f"line {number} of {path}") for number, line in enumerate(lines, first)]


def _parse(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise _NotJSON(f"{where} is not valid JSON: {error}") from error
    if not isinstance(record.get("key") if isinstance(record, dict) else None, str):
        raise InputError(f'{where} is not a record: it needs a "key"')
    return record
