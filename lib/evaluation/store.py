"""A folder of rows that grows by whole lines, so that a run can be stopped anywhere and resumed; rows as a frame.

`run.json` holds the settings that every row shares, `completions.jsonl` or `scores.jsonl` one row per line. The file is
the truth: a store only remembers how far it has read, and looks for what others added before it writes.
"""

import contextlib
import errno
import fcntl
import gzip
import json
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

from lib import progress
from lib.errors import InputError
from lib.paths import write_json

RUN, COMPLETIONS, SCORES = "run.json", "completions.jsonl", "scores.jsonl"
ADVICE = "use another folder, or delete this one"
FIELDS = [  # of a line of completions.jsonl
    *("key", "model", "revision"),  # 16 hex digits that stand for all it depends on; commit, or digest of the files
    *("condition", "problem_id", "level", "subject", "answer", "sample"),  # 0 and "": not known; the gold answer
    *("response", "finish_reason"),  # with what was elicited; stop, length (token limit) or context (no room left)
    *("prompt_tokens", "completion_tokens", "elicited", "run_on"),  # run_on: a new problem follows the answer
    *("extracted", "method", "correct"),  # content of the last box; what decided: `lib.grading.Grade`
    *("correct_authors", "correct_authors_on_completion", "correct_exact"),  # theirs as published reads the prompt too
    *("evaluated", "dtype", "processor", "arm"),  # worked out; older runs lack the next two; ARM's settings, if any
]
NEEDED = ("model", "condition", "problem_id", "sample", "response", "correct")
SCORE_FIELDS = ["key", "model", "revision", "condition", "target", "problem_id", "level", "subject"]
SCORE_FIELDS += ["prompt_tokens", "tokens", "nats", "dtype", "processor"]
Asked = TypeVar("Asked")


class Store:
    """The rows of one run: `rows` by key in the file's order, `append` for more, `fill` for all that is wanted.

    Several processes and threads may share the folder, on local disks: it relies on flock.
    """

    def __init__(
        self, folder: str | Path, settings: dict, environment: dict | None = None, shard=(1, 1), file=COMPLETIONS
    ):
        """Create the folder, or resume it; a half-written last line is cut off and reported on stderr.

        Shard (i, n) has a file of its own, so that the jobs of an array need no lock that spans machines. Raises
        InputError for a folder that cannot be written, was made with other settings, or is damaged.
        """
        self.folder, self._stem = Path(folder), Path(file).stem
        self.path = self.folder / (file if shard == (1, 1) else f"{self._stem}-{shard[0]}-of-{shard[1]}.jsonl")
        self.rows: dict[str, dict] = {}
        self._end = self._lines = 0  # bytes and lines read so far
        with self._locked() as opened:
            _match_settings(self.folder / RUN, settings, environment or {})
            self._refresh(opened)

    def append(self, row: dict) -> bool:
        """Write a row whose key is new, whole or not at all (InputError), and return whether it was new."""
        line = json.dumps(row).encode() + b"\n"
        row = _parse(line, "the new row")  # as a later reader will see it, who could not take another
        with self._locked() as opened:
            self._refresh(opened)
            if row["key"] in self.rows:
                return False
            self._write(opened, line)
            self._add([row], len(line))
        return True

    def everything(self) -> dict[str, dict]:
        """Return the rows of all shards so far, by key."""
        others = [path for path in self.folder.glob(f"{self._stem}*.jsonl") if path != self.path]
        return {row["key"]: row for row in read(*others)} | self.rows

    def fill(
        self,
        name: str,
        unit: str,
        wanted: Mapping[str, Asked],
        make: Callable[[dict[str, Asked], progress.Bar], Generator[dict, None, None]],
    ) -> None:
        """Append what no shard has of `wanted` as `make` gives it, each row at once, beside a bar of this name."""
        known = self.everything()
        missing = {key: asked for key, asked in wanted.items() if key not in known}
        if not missing:
            return
        with (
            progress.bar(name, len(wanted), unit, len(wanted) - len(missing)) as bar,
            contextlib.closing(make(missing, bar)) as rows,
        ):
            for row in rows:
                self.append(row)
                bar.update()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Yield the open file, alone with it until the block ends; raises InputError for any OSError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            opened = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX)
                yield opened
            finally:
                os.close(opened)
        except OSError as error:
            raise InputError(f"cannot write results to {self.folder}: {error.strerror}") from error

    def _refresh(self, opened: int) -> None:
        """Take in the lines that were added since the last look, and mend the last one."""
        size = os.fstat(opened).st_size
        if size < self._end:
            raise InputError(f"{self.path} was shortened or replaced during the run: run again")
        if size == self._end:
            return
        with open(opened, "rb", closefd=False) as stream:
            stream.seek(self._end)
            data = stream.read()
        rows, length = _parse_lines(data, self.path, self._lines + 1)
        if length < len(data):  # nobody else writes under the lock: it is what a killed writer left
            os.ftruncate(opened, self._end + length)
            print(f"repaired: dropped a half-written last line of {self.path}", file=sys.stderr)
        if length and not data[:length].endswith(b"\n"):
            self._write(opened, b"\n")
            length += 1
        self._add(rows, length)

    def _add(self, rows: list[dict], length: int) -> None:
        for row in rows:
            self.rows.setdefault(row["key"], row)
        # Last: an interrupt before this line only means that the lines are read, and passed over, again.
        self._end, self._lines = self._end + length, self._lines + len(rows)

    def _write(self, opened: int, data: bytes) -> None:
        """Write everything or nothing; raises InputError for a full disk and OSError for the rest."""
        before = os.fstat(opened).st_size
        try:
            if os.write(opened, data) < len(data):  # a disk that fills up is an error only in the next call
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with contextlib.suppress(OSError):  # the next look at the file mends it then
                os.ftruncate(opened, before)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise InputError(f"disk full at {self.path}: nothing lost; free space and run again") from error


def read(*files: str | Path) -> list[dict]:
    """Return the rows of JSONL files, also of .gz, the first of each key; raises InputError naming a broken line.

    A last line without its end is left out: its writer is at it now, or was killed at it.
    """
    first: dict[str, dict] = {}
    for path in map(Path, files):
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        except (OSError, EOFError) as error:
            raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
        for row in _parse_lines(data, path)[0]:
            first.setdefault(row["key"], row)
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


def frame(rows: Sequence[dict] | pd.DataFrame, part: str = "main", origin: str = "") -> pd.DataFrame:
    """Return a row per completion of a part: a column for each of FIELDS, `part`, and two of whether it is solved.

    `worked_out`: correct, and no operation is left to be carried out. `right` is what tables and claims count: the
    same on the embedded set, whose problems are mostly sums, and correct elsewhere. Raises InputError for a row
    without NEEDED.
    """
    if not isinstance(rows, pd.DataFrame):
        if missing := [name for row in rows for name in NEEDED if name not in row]:
            raise InputError(f"completions.jsonl: {missing[0]}: missing field")
        rows = pd.DataFrame(rows, columns=FIELDS, dtype=object)  # pandas' own strings refuse broken text
    correct, sums = rows["correct"].eq(True), rows["problem_id"].map(lambda name: name.startswith("embedded/"))
    worked_out = correct & rows["evaluated"].ne(False)
    table = rows.assign(
        part=part, correct=correct, worked_out=worked_out, right=correct.mask(sums.astype(bool), worked_out)
    )
    table.attrs["origin"] = origin
    return table


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


def _parse_lines(data: bytes, path: Path, first: int = 1) -> tuple[list[dict], int]:
    """Return the rows of lines, and how many bytes they take: what follows them is half a line."""
    *lines, last = data.split(b"\n")
    rows = [_parse(line, f"line {number} of {path}") for number, line in enumerate(lines, first)]
    with contextlib.suppress(_NotJSON):  # without its end it may still be whole
        return [*rows, *([_parse(last, f"line {first + len(rows)} of {path}")] if last else [])], len(data)
    return rows, len(data) - len(last)


class _NotJSON(InputError):
    """A line that is no JSON at all: at the end of the file, the trace of a write that was cut short."""


def _parse(line: bytes, where: str) -> dict:
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise _NotJSON(f"{where} is not valid JSON: {error}") from error
    if not isinstance(row.get("key") if isinstance(row, dict) else None, str):
        raise InputError(f'{where} is not a record: it needs a "key"')
    return row
