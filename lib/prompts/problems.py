"""Problems to put to a model: the embedded set, MATH-500 from the hub, or any JSONL
file in MATH's schema.
"""

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from huggingface_hub import HfApi
from pydantic import BeforeValidator, ConfigDict, Field, NonNegativeInt

from lib import paths
from lib.errors import InputError, Settings, unknown, unusable_variable, validated
from lib.files.atomic import json_lines, plain_digits, read_text, write_atomically
from lib.paths import DATA
from lib.prompts.conditions import Condition

EMBEDDED = DATA / "embedded.jsonl"
# Id and level of each problem of MATH-500, in its order: enough to draw a sample of
# what is stored if the texts are not at hand.
MATH500_LIST = DATA / "math500.csv"
MATH500 = "HuggingFaceH4/MATH-500"
MATH500_REVISION = "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"
# What `digest` gives for the 500 problems of that revision, in the hub's order.
MATH500_SHA256 = "0a7389c2f2827aa8a29e82dd296afb85ce0ac0c3a02541ac975f00c3c57f0f5b"
# Divisors r + 0.45 apportion samples; of all such rules they depart from largest
# remainders at the fewest sizes.
DIVISOR = 0.45
# The sources that have a name, as captions say it.
SOURCES = {"embedded": "embedded set", "math500": "MATH-500"}
HUB_TIMEOUT = 2  # seconds that the hub may stay silent


def _level_number(level: object) -> object:
    """Return 3 for "Level 3", "3" and 3.0, 0 for MATH's "Level ?", and anything else as
    it is.
    """
    if isinstance(level, float) and level.is_integer():
        return int(level)
    if level == "Level ?":
        return 0
    if isinstance(level, str) and re.fullmatch(r"(Level )?\d{1,9}", level):
        return int(level.removeprefix("Level "))
    return level


def _text_of_number(value: object) -> object:
    """Return a number in digits, and anything else as it is, but true and Infinity."""
    if not isinstance(value, int | float):
        return value
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"must be text or a number, not {json.dumps(value)}")
    return plain_digits(value)


def _given(value: object) -> object:
    """Refuse what stands for no value where there must be one."""
    if _is_nothing(value):
        raise ValueError(f"must not be empty, not {json.dumps(value)}")
    return value


# A text, for which a file may have a number: 7 for "7".
Text = Annotated[str, BeforeValidator(_text_of_number)]
# Fields without which a line is no problem.
REQUIRED = ("problem", "answer")


class Problem(Settings):
    """One problem in LaTeX with its gold answer; solution and subject "" and level 0
    mean not known.
    """

    model_config = ConfigDict(extra="ignore", str_min_length=0)
    id: Text = Field(alias="unique_id")
    problem: Annotated[str, BeforeValidator(_given)]
    answer: Annotated[Text, BeforeValidator(_given)]
    solution: str = ""
    subject: str = ""
    level: Annotated[NonNegativeInt, BeforeValidator(_level_number)] = 0


class Listed(NamedTuple):
    """A problem as a sample is drawn of it: without its text."""

    id: str
    level: int


AnyProblem = TypeVar("AnyProblem", Problem, Listed)

# Where a sentence of a reference solution ends.
SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def posed(problem: Problem, condition: Condition) -> str:
    """Return a problem's text as a condition puts it.

    Raises InputError where a hint is asked for and there is no reference solution.
    """
    if condition.posed == "twice":
        return f"{problem.problem}\n\n{problem.problem}"
    if condition.posed == "hinted":
        solution = problem.solution.strip()
        if not solution:
            raise InputError(
                f"problem {problem.id} has no solution, of which {condition} gives the"
                " first sentence"
            )
        return f"{problem.problem}\n\n{SENTENCE_END.split(solution, 1)[0]}"
    return problem.problem


def load_problems(
    source: str | Path,
    limit: int | None = None,
    seed: int = 0,
    levels: Sequence[int] | None = None,
) -> list[Problem]:
    """Return the problems of "embedded", "math500" or a JSONL file, of some levels, or
    `limit` drawn by level.

    A source that cannot be used, or has no problem of these levels, raises InputError.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}: ask for at least 1 problem")
    problems = _math500() if source == "math500" else _from_file(_file_of(source))
    if levels is not None:
        problems = [problem for problem in problems if problem.level in levels]
        if not problems:
            raise InputError(
                f"{source} has no problem of level {' or '.join(map(str, levels))}"
            )
    return problems if limit is None else stratified_sample(problems, limit, seed)


def sample_ids(
    source: str | Path,
    limit: int | None,
    seed: int,
    levels: Sequence[int] | None = None,
) -> set[str]:
    """Return the ids of the problems that `load_problems` draws; MATH-500 itself is not
    read for them.
    """
    of_levels = [
        one for one in _listed(source) if levels is None or one.level in levels
    ]
    return {one.id for one in sampling_order(of_levels, seed)[:limit]}


def is_within(limit: int | None, larger: int | None) -> bool:
    """Return whether a sample of this limit lies in one of another; None draws all."""
    return larger is None or (limit is not None and limit <= larger)


def _listed(source: str | Path) -> list[Listed]:
    """Return the problems of a source without their texts."""
    if source != "math500":
        return [Listed(one.id, one.level) for one in load_problems(source)]
    _, *lines = read_text(MATH500_LIST).splitlines()
    rows = [line.split(",") for line in lines]
    return [Listed(name, int(level)) for name, level in rows]


def solved_problems(
    source: str | Path, limit: int | None = None, seed: int = 0
) -> list[Problem]:
    """Return the problems of a source in the order in which a growing sample takes them
    in.

    Raises InputError for one of them that has no reference solution.
    """
    problems = sampling_order(load_problems(source), seed)[:limit]
    for problem in problems:
        if not problem.solution.strip():
            raise InputError(
                f"{source}: problem {problem.id} has no solution, which likelihoods"
                " need of each: add it, or leave the problem out"
            )
    return problems


def _file_of(source: str | Path) -> Path:
    """Return the file of a source; raises InputError where there is none."""
    path = EMBEDDED if source == "embedded" else Path(os.path.expanduser(source))
    if not path.exists():
        raise unknown(
            "problems",
            str(source),
            SOURCES,
            "give {} or the path to a JSONL file that exists",
        )
    return path


def drawn_problem(
    source: str | Path, wanted: str | None, limit: int | None = None, seed: int = 0
) -> Problem:
    """Return the problem that figures draw: of this id, also beyond a sample, else the
    sample's first.

    Raises InputError for an id that the source has not.
    """
    if wanted is None:
        return load_problems(source, limit, seed)[0]
    for problem in load_problems(source):
        if problem.id == wanted:
            return problem
    raise InputError(f"example {wanted!r} is none of the problems of {source}")


def describe(source: str | Path) -> str:
    """Return a short name for captions, which calls MATH-500 by its name wherever it
    was read from. Raises InputError for a file that is not there.
    """
    if source in SOURCES:
        return SOURCES[str(source)]
    path = _file_of(source)
    if digest(_from_file(path)) == MATH500_SHA256:
        return f"MATH-500 (given as {path.name})"
    return path.name


def digest(problems: Iterable[Problem]) -> str:
    """Return the sha256 of the (id, problem, answer) triples, in order, as compact JSON
    in ASCII.
    """
    triples = [(problem.id, problem.problem, problem.answer) for problem in problems]
    text = json.dumps(triples, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digest_of(source: str | Path) -> str:
    """Return the digest of all problems of a source. MATH-500 is not read for it, since
    what has another digest is never taken for it.
    """
    return MATH500_SHA256 if source == "math500" else digest(load_problems(source))


def stratified_sample(problems: list[Problem], limit: int, seed: int) -> list[Problem]:
    """Return `limit` problems in their old order, every level keeping its share; a
    larger sample holds the smaller.
    """
    chosen = {problem.id for problem in sampling_order(problems, seed)[:limit]}
    return [problem for problem in problems if problem.id in chosen]


def _rank(problem_id: str, seed: int) -> bytes:
    # By a hash the same problems are drawn in every version of Python and for every
    # order of the file.
    return hashlib.sha256(f"{seed}:{problem_id}".encode()).digest()


def sampling_order(problems: list[AnyProblem], seed: int) -> list[AnyProblem]:
    """Return the problems in the order in which a growing stratified sample takes them
    in.
    """
    # A level's problems take their turns at even distances; the lower level goes first.
    sizes = Counter(problem.level for problem in problems)
    drawn = Counter[int]()
    turns = {}
    for problem in sorted(problems, key=lambda problem: _rank(problem.id, seed)):
        level = problem.level
        turns[problem.id] = ((drawn[level] + DIVISOR) / sizes[level], level, problem.id)
        drawn[level] += 1
    return sorted(problems, key=lambda problem: turns[problem.id])


def _math500() -> list[Problem]:
    """Return MATH-500 from the first copy in data/ or the cache folder that is the
    known text, else from the hub.
    """
    copy = paths.CACHE / "math500.jsonl"
    for path in (DATA / "math500.jsonl", copy):
        if path.is_file():
            problems = _from_file(path)
            if digest(problems) == MATH500_SHA256:
                return problems

    lines = [json.dumps(row) for row in _from_hub()]
    copy.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(copy, "\n".join(lines).encode())
    problems = _from_file(copy)
    if digest(problems) != MATH500_SHA256:
        raise InputError(
            f"{MATH500} at revision {MATH500_REVISION} is not the known MATH-500: its"
            " digest differs"
        )
    return problems


def _from_hub() -> list[dict]:
    """Return the rows of MATH-500 on the hub.

    It is asked first whether it answers, since `datasets` tries on and on.
    """
    try:
        HfApi().dataset_info(MATH500, revision=MATH500_REVISION, timeout=HUB_TIMEOUT)
        import datasets  # takes a second to import, and only this source needs it

        datasets.disable_progress_bars()  # half a megabyte
        dataset = datasets.load_dataset(
            MATH500, split="test", revision=MATH500_REVISION
        )
        return dataset.to_list()
    except Exception as error:
        # Of any kind: datasets, the hub and the network have classes of their own.
        words = " ".join(str(error).split()) or type(error).__name__
        reason = unusable_variable() or words
        raise InputError(
            f"{MATH500} could not be fetched ({reason}); give the path to a JSONL file"
            " of it, or put one at data/math500.jsonl"
        ) from error


def _from_file(path: Path) -> list[Problem]:
    """Return the problems of a JSONL file, refusing an empty set and an id that comes
    twice.
    """
    lines: dict[str, int] = {}
    problems = []
    for number, row in json_lines(path):
        place = f"{path}, line {number}"
        if isinstance(row, dict):
            row = _filled_in(row, number)
        problem = validated(Problem, row, place)
        if problem.id in lines:
            raise InputError(
                f"{place}: unique_id {problem.id!r} was already used on line"
                f" {lines[problem.id]}"
            )
        lines[problem.id] = number
        problems.append(problem)
    if not problems:
        raise InputError(f"{path} holds no problems")
    return problems


def _filled_in(row: dict, number: int) -> dict:
    """Return a row without the optional fields that are null, NaN or blank, which count
    as missing; a line without unique_id is named by its number.
    """
    present = {
        name: value
        for name, value in row.items()
        if name in REQUIRED or not _is_nothing(value)
    }
    return {"unique_id": f"line-{number}"} | present


def _is_nothing(value: object) -> bool:
    """Return whether a value stands for none; pandas writes NaN."""
    return value is None or value != value or not str(value).strip()
