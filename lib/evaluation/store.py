"""A folder of rows that grows by whole lines, so that a run can be stopped anywhere and
resumed; rows as a frame.

`run.json` holds the settings that every row shares, `completions.jsonl` or
`scores.jsonl` one row per line. One run at a time writes a file, on local disks: it
relies on flock.
"""

import contextlib
import errno
import fcntl
import gzip
import json
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib import progress
from lib.errors import InputError
from lib.paths import write_json

RUN, COMPLETIONS, SCORES = "run.json", "completions.jsonl", "scores.jsonl"
ADVICE = "use another folder, or delete this one"
FIELDS = [  # of a line of completions.jsonl
    *(
        "key",
        "model",
        "revision",
    ),  # 16 hex digits that stand for all it depends on; commit, or digest of the files
    *(
        "condition",
        "problem_id",
        "level",
        "subject",
        "answer",
        "sample",
    ),  # 0 and "": not known; the gold answer
    *(
        "response",
        "finish_reason",
    ),  # with what was elicited; stop, length (token limit) or context (no room left)
    *(
        "prompt_tokens",
        "completion_tokens",
        "elicited",
        "run_on",
    ),  # run_on: a new problem follows the answer
    *(
        "extracted",
        "method",
        "correct",
    ),  # content of the last box; what decided: `lib.grading.Grade`
    *(
        "correct_authors",
        "correct_authors_on_completion",
        "correct_exact",
    ),  # theirs as published reads the prompt too
    *(
        "evaluated",
        "dtype",
        "processor",
        "arm",
    ),  # worked out; older runs lack the next two; ARM's settings, if any
    "token_ids",  # of an answer that was drawn: its tokens, with the one that ended it
]
NEEDED = ("model", "condition", "problem_id", "sample", "response", "correct")
SCORE_FIELDS = [
    "key",
    "model",
    "revision",
    "condition",
    "target",
    "problem_id",
    "level",
    "subject",
]
SCORE_FIELDS += ["prompt_tokens", "tokens", "nats", "dtype", "processor"]


@contextlib.contextmanager
def opened(
    folder: str | Path,
    settings: dict,
    environment: dict | None = None,
    shard=(1, 1),
    file=COMPLETIONS,
) -> Iterator["Store"]:
    """Yield the store of a folder, new or resumed, alone with its file until the block
    ends: another run waits.

    Shard (i, n) has a file of its own, so that an array's jobs need no lock that spans
    machines. Raises InputError for a folder that cannot be written, was made with other
    settings, or is damaged but for a half-written last line.
    """
    path = Path(folder) / (
        file if shard == (1, 1) else f"{Path(file).stem}-{shard[0]}-of-{shard[1]}.jsonl"
    )
    with contextlib.ExitStack() as stack:
        with _in_one_line(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(open(path, "ab", buffering=0))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(
                    f"another run writes {path}: waiting for it",
                    file=sys.stderr,
                    flush=True,
                )
                fcntl.flock(stream, fcntl.LOCK_EX)
            if not (run := path.with_name(RUN)).exists():
                write_json(
                    run, {"settings": settings, "environment": environment or {}}
                )
            was, now = _flat(read_run(path.parent)), _flat(settings)
            for name in was | now:
                if (old := was.get(name, "(absent)")) != (
                    new := now.get(name, "(absent)")
                ):
                    raise InputError(
                        f"{path.parent} was made with {name} = {old}, not {new}:"
                        f" {ADVICE}"
                    )
            data = path.read_bytes()
            rows, whole = _parsed(data, path), _whole(data)
            if len(whole) < len(
                data
            ):  # nobody else writes: it is what a killed writer left
                os.ftruncate(stream.fileno(), len(whole))
                print(
                    f"repaired: dropped a half-written last line of {path}",
                    file=sys.stderr,
                )
            elif whole != data:
                os.write(stream.fileno(), b"\n")
        yield Store(path, stream.fileno(), rows)


def _flat(settings: dict, prefix: str = "") -> dict[str, str]:
    """Return settings as JSON by name, those of a group as group.name."""
    found = {}
    for name, value in settings.items():
        found |= (
            _flat(value, f"{prefix}{name}.")
            if isinstance(value, dict)
            else {prefix + name: json.dumps(value)}
        )
    return found


class Store:
    """The rows of one run: `rows` by key in the file's order, `append` for more, `fill`
    for all that is wanted.
    """

    def __init__(self, path: Path, descriptor: int, rows: dict[str, dict]):
        self.path, self.rows, self._file = path, rows, descriptor

    def append(self, row: dict) -> None:
        """Write a row with a key, whole or not at all (InputError), unless its key is
        there already.
        """
        line = json.dumps(row).encode() + b"\n"
        row = json.loads(line)  # as a later reader will see it
        if row["key"] in self.rows:
            return
        with _in_one_line(self.path):
            before = os.fstat(self._file).st_size
            try:
                if os.write(self._file, line) < len(
                    line
                ):  # a disk that fills up is an error only in the next call
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                with contextlib.suppress(OSError):  # the next run mends it then
                    os.ftruncate(self._file, before)
                raise
        self.rows[row["key"]] = row

    def everything(self) -> dict[str, dict]:
        """Return the rows of all shards so far, by key."""
        stem = self.path.name.split("-")[0].removesuffix(".jsonl")
        others = [
            path
            for path in self.path.parent.glob(f"{stem}*.jsonl")
            if path != self.path
        ]
        return {row["key"]: row for row in read(*others)} | self.rows

    def fill(
        self,
        name: str,
        unit: str,
        wanted: dict[str, Any],
        make: Callable[..., Generator],
    ) -> None:
        """Append what no shard has of `wanted` as make(missing, bar) yields it, beside
        a bar of this name.
        """
        known = self.everything()
        if not (
            missing := {key: asked for key, asked in wanted.items() if key not in known}
        ):
            return
        with (
            progress.bar(name, len(wanted), unit, len(wanted) - len(missing)) as bar,
            contextlib.closing(make(missing, bar)) as rows,
        ):
            for row in rows:
                self.append(row)
                bar.update()


@contextlib.contextmanager
def _in_one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"disk full at {path}: nothing lost; free space and run again"
            ) from error
        raise InputError(
            f"cannot write results to {path.parent}: {error.strerror}"
        ) from error


def _whole(data: bytes) -> bytes:
    """Return the lines without a last one that is half written; one that lacks its end
    alone gets it.
    """
    end = data.rfind(b"\n") + 1
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(data[end:])
        return data + b"\n"
    return data[:end]


def _parsed(data: bytes, path: Path) -> dict[str, dict]:
    """Return the rows of whole lines by key, the first of each; raises InputError
    naming a broken line.
    """
    found: dict[str, dict] = {}
    for number, line in enumerate(_whole(data).split(b"\n")[:-1], 1):
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
        found.setdefault(row["key"], row)
    return found


def read(*files: str | Path) -> list[dict]:
    """Return the rows of JSONL files, also of .gz, the first of each key; raises
    InputError naming a broken line.

    A last line without its end is left out: its writer is at it now, or was killed at
    it.
    """
    found: dict[str, dict] = {}
    for path in map(Path, files):
        try:
            data = (
                gzip.decompress(path.read_bytes())
                if path.suffix == ".gz"
                else path.read_bytes()
            )
        except (OSError, EOFError) as error:
            raise InputError(
                f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
            ) from error
        found = found | _parsed(data, path) | found  # in the order of the files
    return list(found.values())


def read_run(folder: Path) -> dict:
    """Return the settings of the run in a folder; raises InputError where there is
    none.
    """
    path = folder / RUN
    if not path.is_file():
        raise InputError(f"{folder} holds no run: it has no {RUN}")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))["settings"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is broken: {ADVICE}") from error


def frame(rows: Sequence[dict], part: str = "main") -> pd.DataFrame:
    """Return a row per completion: FIELDS, `part`, and two of whether it is solved;
    InputError for one without NEEDED.

    `worked_out`: correct, and no operation is left to be carried out. `right` is what
    tables and claims count: the same on the embedded set, whose problems are mostly
    sums, and correct elsewhere.
    """
    if missing := [name for row in rows for name in NEEDED if name not in row]:
        raise InputError(f"completions.jsonl: {missing[0]}: missing field")
    table = pd.DataFrame(
        rows, columns=FIELDS, dtype=object
    )  # pandas' own strings refuse broken text
    correct, sums = (
        table["correct"].eq(True),
        table["problem_id"].map(lambda name: name.startswith("embedded/")),
    )
    worked_out = correct & table["evaluated"].ne(False)
    right = correct.mask(sums.astype(bool), worked_out)
    return table.assign(part=part, correct=correct, worked_out=worked_out, right=right)
