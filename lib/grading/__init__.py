r"""Grade answers to MATH problems: one frozen grader for every arm of a comparison, the authors' beside it.

    grade(r"\frac{1}{2}", r"... $\boxed{0.5}$.")  # Grade(correct=True, extracted="0.5", method="decimal", ...)
    with GradingPool() as pool:  # grades beside generation
        futures = [pool.submit(gold, response) for gold, response in pairs]

Stages: cut a run-on, take the last closed box (`extract`), refuse a huge one (`stages`), one spelling
(`normalise`), typed rules (`rules`, `quantity`, `sequences`), and algebra by math-verify (`verify`,
`shortcuts`) in processes that are killed when they take too long (`worker`, `pool`). `Grade.method` says
what decided, `Grade.evaluated` whether the answer is worked out (`operations`).
"""

import os
from collections.abc import Iterable
from functools import cache

from lib.grading.authors import correct_authors, correct_authors_on_completion, correct_exact
from lib.grading.extract import cut_run_on, last_box
from lib.grading.operations import evaluated
from lib.grading.pool import GradingPool
from lib.grading.stages import STATUSES, Grade

__all__ = [
    "STATUSES",
    "Grade",
    "GradingPool",
    "correct_authors",
    "correct_authors_on_completion",
    "correct_exact",
    "cut_run_on",
    "evaluated",
    "grade",
    "grade_many",
    "last_box",
]


def grade(gold: str, response: str) -> Grade:
    """Grade the completion of one problem; returns within 11 s and raises for no text whatever.

    About 0.1 ms where strings and rules decide; the first pair that needs algebra starts a process: 2 s.
    """
    return _shared_pool().submit(gold, response).result()


def grade_many(pairs: Iterable[tuple[str, str]]) -> list[Grade]:
    """Grade (gold, response) pairs and return the grades in their order."""
    return _shared_pool().map(pairs)


@cache
def _shared_pool() -> GradingPool:
    return GradingPool()


# A forked child has the pool's memory but not its threads: it needs a pool of its own.
os.register_at_fork(after_in_child=_shared_pool.cache_clear)
