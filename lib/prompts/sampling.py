"""Samples of problems, stratified by level: a larger one includes the smaller ones."""

import hashlib
from collections import Counter
from typing import NamedTuple, TypeVar

from lib.prompts.problem import Problem

# Samples are apportioned to levels by the divisors r + 0.45. Among such rules this one
# differs from the largest-remainder method at the fewest sample sizes.
DIVISOR = 0.45


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
    # A hash draws the same problems in every version of Python and for every order of
    # the file.
    return hashlib.sha256(f"{seed}:{problem_id}".encode()).digest()


def sampling_order(problems: list[AnyProblem], seed: int) -> list[AnyProblem]:
    """Return the problems in the order of a growing stratified sample: the first n are
    the sample of size n.
    """
    # The problems of a level are evenly spaced in this order; in a tie the lower level
    # comes first.
    sizes = Counter(problem.level for problem in problems)
    drawn = Counter[int]()
    turns = {}
    for problem in sorted(problems, key=lambda problem: _rank(problem.id, seed)):
        level = problem.level
        turns[problem.id] = ((drawn[level] + DIVISOR) / sizes[level], level, problem.id)
        drawn[level] += 1
    return sorted(problems, key=lambda problem: turns[problem.id])


def is_within(limit: int | None, larger: int | None) -> bool:
    """Return whether a sample of `limit` problems is a subset of one of `larger`; None:
    all problems.
    """
    return larger is None or (limit is not None and limit <= larger)
