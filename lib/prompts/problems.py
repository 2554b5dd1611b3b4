"""Load problems with their gold answers: the embedded set, MATH-500 from the hub, or
any JSONL file in MATH's schema; and draw samples, stratified by level, of which each
larger one includes the smaller ones.
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
from lib.errors import InputError, Settings, unknown, validated
from lib.files.atomic import write_atomically
from lib.files.text_files import json_lines, plain_digits, read_text
from lib.paths import DATA
from lib.prompts.conditions import Condition

# The end of a sentence in a reference solution.
SENTENCE_END = re.compile(r"(?<=[.!?])\s")


def _level_number(level: object) -> object:
    """Return a level as an integer: 3 for "Level 3", "3" and 3.0, and 0 for MATH's
    "Level ?". Other values are returned unchanged.
    """
    if isinstance(level, float) and level.is_integer():
        return int(level)
    if level == "Level ?":
        return 0
    if isinstance(level, str) and re.fullmatch(r"(Level )?\d{1,9}", level):
        return int(level.removeprefix("Level "))
    return level


def _text_of_number(value: object) -> object:
    """Return a number as text, and other values unchanged; raise ValueError for true,
    false and Infinity.
    """
    if not isinstance(value, int | float):
        return value
    # An integer may be too large to be converted to the float that isfinite needs.
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if isinstance(value, bool) or is_infinite:
        raise ValueError(f"must be text or a number, not {json.dumps(value)}")
    return plain_digits(value)


def _not_blank(value: object) -> object:
    """Return a value unchanged; raise ValueError if it is null, NaN or blank."""
    if is_nothing(value):
        raise ValueError(f"must not be empty, not {json.dumps(value)}")
    return value


# A text that may be a number in the file: 7 is read as "7".
Text = Annotated[str, BeforeValidator(_text_of_number)]
# Fields without which a line is no problem.
REQUIRED = ("problem", "answer")


class Problem(Settings):
    """A problem in LaTeX with its gold answer.

    An unknown solution or subject is "", an unknown level 0.
    """

    model_config = ConfigDict(extra="ignore", str_min_length=0)
    id: Text = Field(alias="unique_id")
    problem: Annotated[str, BeforeValidator(_not_blank)]
    answer: Annotated[Text, BeforeValidator(_not_blank)]
    solution: str = ""
    subject: str = ""
    level: Annotated[NonNegativeInt, BeforeValidator(_level_number)] = 0


def posed(problem: Problem, condition: Condition) -> str:
    """Return the text of a problem as a condition poses it: twice, with a hint (the
    first sentence of its reference solution), or unchanged.

    Raises InputError if the condition gives a hint and the problem has no reference
    solution.
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


def is_nothing(value: object) -> bool:
    """Return whether a value is null, blank or NaN, which pandas writes for null."""
    return value is None or value != value or not str(value).strip()


# A level's problem of rank r (from 0) comes at (r + 0.45) / size of the level. Among
# such offsets, this one differs from the largest-remainder method at the fewest sample
# sizes.
OFFSET = 0.45


class Listed(NamedTuple):
    """A problem without its texts: enough to draw a sample, and to tell whether stored
    results are of this problem.
    """

    id: str
    level: int
    question: str  # `text_digest` of the problem's text and gold answer
    solution: str  # `text_digest` of its reference solution


def text_digest(*texts: str) -> str:
    """Return a digest of texts (16 hex digits)."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


AnyProblem = TypeVar("AnyProblem", Problem, Listed)


def stratified_sample(
    problems: list[AnyProblem], limit: int | None, seed: int
) -> list[AnyProblem]:
    """Return a sample of `limit` problems, stratified by level, in the given order.

    A larger sample with the same seed includes the smaller one.
    """
    chosen = {problem.id for problem in sampling_order(problems, seed)[:limit]}
    return [problem for problem in problems if problem.id in chosen]


def _rank(problem_id: str, seed: int) -> bytes:
    """Return a pseudorandom key by which the problems of a level are sorted."""
    # A hash draws the same problems in every version of Python and for every order of
    # the file.
    return hashlib.sha256(f"{seed}:{problem_id}".encode()).digest()


def sampling_order(problems: list[AnyProblem], seed: int) -> list[AnyProblem]:
    """Return the problems in an order of which, for every n, the first n are the
    stratified sample of size n.
    """
    # The problems of a level are evenly spaced in this order; in a tie the lower level
    # comes first.
    sizes = Counter(problem.level for problem in problems)
    drawn = Counter[int]()
    turns = {}
    for problem in sorted(problems, key=lambda problem: _rank(problem.id, seed)):
        level = problem.level
        turns[problem.id] = ((drawn[level] + OFFSET) / sizes[level], level, problem.id)
        drawn[level] += 1
    return sorted(problems, key=lambda problem: turns[problem.id])


def is_within(limit: int | None, larger: int | None) -> bool:
    """Return whether a sample of `limit` problems is a subset of a sample of `larger`
    ones with the same seed; None: all problems.
    """
    return larger is None or (limit is not None and limit <= larger)


EMBEDDED = DATA / "embedded.jsonl"
# The `Listed` of each problem of MATH-500, in its order, so that stored results are
# found without the problems' texts.
MATH500_LIST = DATA / "math500.csv"
MATH500 = "HuggingFaceH4/MATH-500"
MATH500_REVISION = "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"
# The `digest` of the 500 problems of that revision, in the hub's order.
MATH500_SHA256 = "0a7389c2f2827aa8a29e82dd296afb85ce0ac0c3a02541ac975f00c3c57f0f5b"
# The named sources, with their names in captions.
SOURCES = {"embedded": "embedded set", "math500": "MATH-500"}
HUB_TIMEOUT = 2  # seconds that the hub may stay silent


def load_problems(
    source: str | Path,
    limit: int | None = None,
    seed: int = 0,
    levels: Sequence[int] | None = None,
) -> list[Problem]:
    """Return the problems of a source: "embedded", "math500" or a JSONL file.

    limit: the size of a sample that is stratified by level and drawn with `seed`; None:
    all problems. levels: the levels of the problems; None: all. Raises InputError for a
    source that cannot be read, or that has no problem of these levels.
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
    return stratified_sample(problems, limit, seed)


def listed_problems(
    source: str | Path,
    limit: int | None = None,
    seed: int = 0,
    levels: Sequence[int] | None = None,
) -> list[Listed]:
    """Return the problems that `load_problems` would return, without their texts.

    For MATH-500 this needs only data/math500.csv, and no download.
    """
    if source != "math500":
        problems = load_problems(source, limit, seed, levels)
        return [_listed(problem) for problem in problems]
    _, *lines = read_text(MATH500_LIST).splitlines()
    rows = [line.split(",") for line in lines]
    listed = [Listed(name, int(level), *digests) for name, level, *digests in rows]
    of_levels = [one for one in listed if levels is None or one.level in levels]
    return stratified_sample(of_levels, limit, seed)


def _listed(problem: Problem) -> Listed:
    """Return a problem without its texts."""
    question = text_digest(problem.problem, problem.answer)
    return Listed(problem.id, problem.level, question, text_digest(problem.solution))


def solved_problems(
    source: str | Path, limit: int | None = None, seed: int = 0
) -> list[Problem]:
    """Return a stratified sample of `limit` problems (None: all), which have reference
    solutions, in an order in which each smaller sample comes first.

    Raises InputError if one of them has no reference solution.
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
    """Return the file of a source; raise InputError if it is none: a pipe could be read
    only once.
    """
    path = EMBEDDED if source == "embedded" else Path(os.path.expanduser(source))
    if not path.is_file():
        raise unknown(
            "problems",
            str(source),
            SOURCES,
            "give {} or the path to a JSONL file that exists",
        )
    return path


def shown_problem(
    source: str | Path, wanted: str | None, limit: int | None = None, seed: int = 0
) -> Problem:
    """Return the problem that figures show: the one with the id `wanted`, even if it is
    outside the sample; None: the first one of the sample.

    Raises InputError if the source has no problem of this id.
    """
    if wanted is None:
        return load_problems(source, limit, seed)[0]
    for problem in load_problems(source):
        if problem.id == wanted:
            return problem
    raise InputError(f"example {wanted!r} is none of the problems of {source}")


def describe(source: str | Path) -> str:
    """Return a short name of a source for captions."""
    return SOURCES.get(str(source), Path(source).name)


def digest(problems: Iterable[Problem]) -> str:
    """Return the sha256 of the problems' ids, texts and answers, which identifies them
    in this order.
    """
    triples = [(problem.id, problem.problem, problem.answer) for problem in problems]
    text = json.dumps(triples, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _math500() -> list[Problem]:
    """Return MATH-500 from data/, or from a copy with the known digest in the cache
    folder, or else from the hub, after writing a copy into the cache folder.

    Raises InputError if it cannot be downloaded, or if it has another digest there or
    in data/.
    """
    given = DATA / "math500.jsonl"
    copy = paths.CACHE / "math500.jsonl"
    for path in (given, copy):
        if path.is_file():
            problems = _from_file(path)
            if digest(problems) == MATH500_SHA256:
                return problems
            if path == given:
                raise InputError(
                    f"{paths.relative_path(path)} is not the known MATH-500: its"
                    f" problems, ids, answers or their order differ from {MATH500} at"
                    f" revision {MATH500_REVISION}: replace or remove it"
                )

    lines = [json.dumps(row) for row in _from_hub()]
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

    A first request with a time limit checks the connection, because `datasets` would
    retry for minutes.
    """
    try:
        HfApi().dataset_info(MATH500, revision=MATH500_REVISION, timeout=HUB_TIMEOUT)
        import datasets  # takes a second to import, and only this source needs it

        datasets.disable_progress_bars()  # the download has only half a megabyte
        dataset = datasets.load_dataset(
            MATH500, split="test", revision=MATH500_REVISION
        )
        return dataset.to_list()
    except Exception as error:
        # datasets, the hub and the network raise exceptions without a common class.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{MATH500} could not be fetched ({reason}); give the path to a JSONL file"
            " of it, or put one at data/math500.jsonl"
        ) from error


def _from_file(path: Path) -> list[Problem]:
    """Return the problems of a JSONL file; raise InputError for an invalid or empty
    file, for a duplicate id, and for one like those of the embedded set.
    """
    lines: dict[str, int] = {}
    problems = []
    for number, row in json_lines(path):
        origin = f"{path}, line {number}"
        if isinstance(row, dict):
            row = _filled_in(row, number)
        problem = validated(Problem, row, origin)
        if problem.id in lines:
            raise InputError(
                f"{origin}: unique_id {problem.id!r} was already used on line"
                f" {lines[problem.id]}"
            )
        if problem.id.startswith("embedded/") and not path.samefile(EMBEDDED):
            raise InputError(
                f"{origin}: unique_id {problem.id!r} begins as those of the embedded"
                " set, which are graded and clustered by rules of their own: choose"
                " another one"
            )
        lines[problem.id] = number
        problems.append(problem)
    if not problems:
        raise InputError(f"{path} has no problems")
    return problems


def _filled_in(row: dict, number: int) -> dict:
    """Return a row without the optional fields that are null, NaN or blank; a row
    without unique_id receives one from its line number.
    """
    present = {
        name: value
        for name, value in row.items()
        if name in REQUIRED or not is_nothing(value)
    }
    return {"unique_id": f"line-{number}"} | present
