"""Load problems: the embedded set, MATH-500 from the hub, or any JSONL file in MATH's
schema.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from huggingface_hub import HfApi

from lib import paths
from lib.errors import InputError, unknown, validated
from lib.files.atomic import write_atomically
from lib.files.jsonl import json_lines
from lib.files.text_and_yaml import read_text
from lib.models.hub_environment import unusable_variable
from lib.paths import DATA
from lib.prompts.problem_samples import Listed, sampling_order, stratified_sample
from lib.prompts.problem_schema import REQUIRED, Problem, is_nothing

EMBEDDED = DATA / "embedded.jsonl"
# Id and level of each problem of MATH-500, in its order. They suffice to select a
# sample from stored results without the problems' texts.
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
    return problems if limit is None else stratified_sample(problems, limit, seed)


def sample_ids(
    source: str | Path,
    limit: int | None,
    seed: int,
    levels: Sequence[int] | None = None,
) -> set[str]:
    """Return the ids of the problems that `load_problems` would return.

    For MATH-500 this needs only data/math500.csv, and no download.
    """
    of_levels = [
        one for one in _listed(source) if levels is None or one.level in levels
    ]
    return {one.id for one in sampling_order(of_levels, seed)[:limit]}


def _listed(source: str | Path) -> list[Listed]:
    """Return the id and level of each problem of a source."""
    if source != "math500":
        return [Listed(one.id, one.level) for one in load_problems(source)]
    _, *lines = read_text(MATH500_LIST).splitlines()
    rows = [line.split(",") for line in lines]
    return [Listed(name, int(level)) for name, level in rows]


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
    """Return a short name of a source for captions; a file with the problems of
    MATH-500 is recognised.

    Raises InputError for a file that does not exist.
    """
    if source in SOURCES:
        return SOURCES[str(source)]
    path = _file_of(source)
    if digest(_from_file(path)) == MATH500_SHA256:
        return f"MATH-500 (given as {path.name})"
    return path.name


def digest(problems: Iterable[Problem]) -> str:
    """Return the sha256 of the problems' ids, texts and answers, which identifies them
    in this order.
    """
    triples = [(problem.id, problem.problem, problem.answer) for problem in problems]
    text = json.dumps(triples, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digest_of(source: str | Path) -> str:
    """Return the `digest` of all problems of a source.

    MATH-500 need not be read, because `load_problems` accepts it only with the known
    digest.
    """
    return MATH500_SHA256 if source == "math500" else digest(load_problems(source))


def _math500() -> list[Problem]:
    """Return MATH-500 from a copy with the known digest in data/ or in the cache
    folder, or else from the hub, after writing a copy into the cache folder.

    Raises InputError if it cannot be downloaded, or has another digest.
    """
    copy = paths.CACHE / "math500.jsonl"
    for path in (DATA / "math500.jsonl", copy):
        if path.is_file():
            problems = _from_file(path)
            if digest(problems) == MATH500_SHA256:
                return problems

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
        message = " ".join(str(error).split()) or type(error).__name__
        reason = unusable_variable() or message
        raise InputError(
            f"{MATH500} could not be fetched ({reason}); give the path to a JSONL file"
            " of it, or put one at data/math500.jsonl"
        ) from error


def _from_file(path: Path) -> list[Problem]:
    """Return the problems of a JSONL file; raise InputError for an invalid or empty
    file, and for a duplicate id.
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
