"""Problems to put to a model: the embedded set, MATH-500 from the hub, or any JSONL file in MATH's schema."""

import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lib.errors import InputError
from lib.paths import DATA

EMBEDDED = DATA / "embedded.jsonl"


MATH500 = "HuggingFaceH4/MATH-500"


MATH500_REVISION = "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"


# What `digest` gives for the 500 problems of that revision, in the hub's order.
MATH500_SHA256 = "0a7389c2f2827aa8a29e82dd296afb85ce0ac0c3a02541ac975f00c3c57f0f5b"


@dataclass(frozen=True)
class Problem:
    """One problem in LaTeX with its gold answer; subject "" and level 0 mean not known."""

    id: str
    problem: str
    answer: str
    subject: str
    level: int


def load_problems(
    source: str | Path,
    limit: int | None = None,
    seed: int = 0,
    revision: str | None = MATH500_REVISION,
) -> list[Problem]:
    """Return the problems of "embedded", "math500" or a JSONL file, or `limit` of them drawn by level.

    `revision` is the hub's, None its newest. A source that cannot be used raises InputError.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}: ask for at least 1 problem")
    problems = list(_from_hub(revision)) if source == "math500" else _from_file(_path(source))
    return problems if limit is None else stratified_sample(problems, limit, seed)


def describe(source: str | Path) -> str:
    """Return a short name for captions, which calls MATH-500 by its name wherever it was read from."""
    if source in ("embedded", "math500"):
        return {"embedded": "embedded set", "math500": "MATH-500"}[source]
    path = Path(source)
    is_math500 = digest(_from_file(path)) == MATH500_SHA256
    return f"MATH-500 (given as {path.name})" if is_math500 else path.name


def digest(problems: Iterable[Problem]) -> str:
    """Return the sha256 of the (id, problem, answer) triples, in order, as compact JSON in ASCII."""
    triples = [(item.id, item.problem, item.answer) for item in problems]
    return hashlib.sha256(json.dumps(triples, separators=(",", ":")).encode("ascii")).hexdigest()


def stratified_sample(problems: list[Problem], limit: int, seed: int) -> list[Problem]:
    """Return `limit` problems in their old order, every level keeping its share."""
    if limit >= len(problems):
        return list(problems)
    # Ranking by a hash draws the same problems in every version of Python and for every order of the file.
    ranked = sorted(problems, key=lambda item: hashlib.sha256(f"{seed}:{item.id}".encode()).digest())
    chosen = set()
    for level, quota in _quotas(Counter(item.level for item in problems), limit).items():
        chosen.update([item.id for item in ranked if item.level == level][:quota])
    return [item for item in problems if item.id in chosen]


def _quotas(sizes: dict[int, int], limit: int) -> dict[int, int]:
    """Return how many of `limit` each level gets by largest remainders, the lower level first in a tie."""
    total = sum(sizes.values())
    quotas = {level: limit * size // total for level, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda level: (-(limit * sizes[level] % total), level))
    for level in by_remainder[: limit - sum(quotas.values())]:
        quotas[level] += 1
    return quotas


def _path(source: str | Path) -> Path:
    return EMBEDDED if source == "embedded" else Path(source)


@functools.cache  # every call asks the hub, and waits half a minute for one that does not answer
def _from_hub(revision: str | None) -> tuple[Problem, ...]:
    """Return MATH-500 from the hub or its cache, refused when it is not the text the results stand for."""
    import datasets  # takes a second to import, and only this source needs it

    datasets.disable_progress_bars()  # half a megabyte
    try:
        rows = datasets.load_dataset(MATH500, split="test", revision=revision)
    except Exception as error:  # datasets, the hub and the network each have classes of their own
        reason = " ".join(str(error).split())
        raise InputError(
            f"{MATH500} could not be loaded ({reason}); give the path to a JSONL file of it instead"
        ) from error
    problems = _checked(enumerate(rows, 1), MATH500)
    found = digest(problems)
    if found != MATH500_SHA256:
        raise InputError(
            f"{MATH500} at revision {revision} is not the known MATH-500: its digest is {found[:12]}..., "
            f"expected {MATH500_SHA256[:12]}..."
        )
    return tuple(problems)


def _from_file(path: Path) -> list[Problem]:
    """Return the problems of a JSONL file; blank lines are passed over."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: give embedded, math500 or the path to a JSONL file") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start})") from error
    return _checked(_json_lines(text, str(path)), str(path))


def _json_lines(text: str, name: str) -> Iterator[tuple[int, object]]:
    """Yield (line number, value) for every line that is not blank."""
    # Not splitlines(): JSON allows U+2028 and its like inside a string.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{name}, line {number}: not valid JSON ({error.msg} at column {error.colno})") from error


def _checked(rows: Iterable[tuple[int, object]], name: str) -> list[Problem]:
    """Return the numbered rows as problems, refusing an empty set and an id that comes twice."""
    lines: dict[str, int] = {}
    problems = []
    for number, row in rows:
        place = f"{name}, line {number}"
        problem = _problem(row, number, place)
        if problem.id in lines:
            raise InputError(f"{place}: unique_id {problem.id!r} was already used on line {lines[problem.id]}")
        lines[problem.id] = number
        problems.append(problem)
    if not problems:
        raise InputError(f"{name} holds no problems")
    return problems


def _problem(row: object, number: int, place: str) -> Problem:
    """Return one row as a problem; without unique_id its line is its id."""
    if not isinstance(row, dict):
        raise InputError(f"{place}: expected an object with problem and answer, not {type(row).__name__}")
    return Problem(
        id=_text(place, row, "unique_id", default="") or f"line-{number}",
        problem=_text(place, row, "problem"),
        answer=_text(place, row, "answer"),
        subject=_text(place, row, "subject", default=""),
        level=_level(place, row.get("level")),
    )


def _text(place: str, row: dict, field: str, default: str | None = None) -> str:
    """Return a field that must be text; null counts as missing, and blank as missing where it is required."""
    value = row.get(field)
    if value is None and default is not None:
        return default
    if value is None:
        raise InputError(f"{place}: the field {field} is missing")
    if not isinstance(value, str):
        raise InputError(f"{place}: {field} must be text, not {type(value).__name__}")
    if not value.strip() and default is None:
        raise InputError(f"{place}: the field {field} is empty")
    return value


def _level(place: str, value: object) -> int:
    """Return the level given as 3 or "Level 3", and 0 where none is given."""
    if value is None:
        return 0
    if isinstance(value, str) and (match := re.fullmatch(r"Level (\d+)", value)):
        return int(match[1])
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InputError(f'{place}: level must be a whole number or text like "Level 3", not {value!r}')
