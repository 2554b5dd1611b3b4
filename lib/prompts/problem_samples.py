"""Draw samples of problems, stratified by level, of which each larger one includes the
smaller ones.
"""

import hashlib
from collections import Counter
from typing import NamedTuple, TypeVar

from lib.prompts.problem_schema import Problem

# A level's problem of rank r (from 0) comes at (r + 0.45) / size of the level. Among
# such offsets, this one differs from the largest-remainder method at the fewest sample
# sizes.
OFFSET = 0.45


class Listed(NamedTuple):
    """The id and level of a problem, which suffice to draw a sample."""

    id: str
    level: int


AnyProblem = TypeVar("AnyProblem", Problem, Listed)


def stratified_sample(problems: list[Problem], limit: int, seed: int) -> list[Problem]:
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
