"""The error rate of the decision rule on simulated numbers whose true mean is at the
end of a claimed range, where both verdicts are wrong.

If a claim has several parts, the means of all of them are at the end.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from lib.prompts.problems import load_problems
from lib.statistics.intervals import POINTS
from reproduction.claims.decision_rule import decide

# The simulated rates of wrong support and of wrong contradiction must be below this.
MAX_ERROR_RATE = 0.05
PROBLEMS = 40
SIMULATIONS = 200
# The observed rate may exceed the stated one by two standard errors.
STANDARD_ERROR = np.sqrt(MAX_ERROR_RATE * (1 - MAX_ERROR_RATE) / SIMULATIONS)
ALLOWED = MAX_ERROR_RATE + 2 * STANDARD_ERROR
ALTERNATIVES = 13  # settings of ARM that the profiles compare
# Wrong verdicts if no part of the claim is false.
WRONG = ("contradicted", "in part")


@dataclass(frozen=True)
class Case:
    """A simulation: a kind of part, a function that draws its values, and their true
    mean, which is the end of the claimed range.
    """

    kind: str
    draw: Callable  # (rng, n) -> values with their mean at `edge`
    edge: float = 0.0
    clustered: bool = False
    parts: int = 1


def normal(rng, n):
    return rng.normal(size=n)


def skewed(rng, n):
    return rng.gamma(4.0, 0.5, n) - 2


def heavy(rng, n):
    return rng.standard_t(3, n)


def lognormal(rng, n):
    return rng.lognormal(0, 0.5, n) - np.exp(0.5**2 / 2)


def right_or_wrong(share):
    return lambda rng, n: POINTS * (rng.random(n) < share / POINTS)


def paired(changed, points=0):
    """Return a function that draws differences of 100, 0 or -100 in which `changed` %
    of the answers change and the mean is `points`.
    """
    better = (changed + points) / 2 / POINTS
    worse = (changed - points) / 2 / POINTS
    probabilities = [better, 1 - better - worse, worse]
    return lambda rng, n: POINTS * rng.choice([1.0, 0.0, -1.0], n, p=probabilities)


def several(changed):
    draw = paired(changed)
    return lambda rng, n: draw(rng, n * ALTERNATIVES).reshape(n, ALTERNATIVES)


def cases():
    """Yield every case; in clustered ones half of the problems have the value of their
    template.
    """
    for draw in (normal, skewed, heavy, lognormal):
        yield from (Case("mean", draw, parts=parts) for parts in (1, 4))
        yield Case("mean", draw, clustered=True)
    for share, clustered in product((5, 50), (False, True)):
        yield Case("share", right_or_wrong(share), share, clustered)
    for changed in (2, 5, 10, 20):
        yield Case("difference", paired(changed))
        yield Case("difference", paired(changed), clustered=True)
        yield Case("difference", paired(changed), parts=4)
        yield Case("largest", several(changed))
    for changed in (10, 20):
        yield Case("difference", paired(changed, 5), 5)


@pytest.fixture(scope="module")
def families():
    """How many problems each template of the embedded set has."""
    names = [problem.id.split("/")[1] for problem in load_problems("embedded")]
    return list(Counter(names).values())


def parts_of(case, families, rng):
    """Return the case's parts, as `decide` takes them."""
    named = None
    if case.clustered:
        of_problems = rng.permutation(np.repeat(np.arange(len(families)), families))
        named = rng.permutation(np.resize(of_problems, PROBLEMS))
    drawn = {}
    for index in range(case.parts):
        values = np.asarray(case.draw(rng, PROBLEMS), dtype=float)
        if case.clustered:  # each problem has its template's value with probability 1/2
            shared = np.asarray(case.draw(rng, len(families)), dtype=float)[named]
            values = np.where(rng.random(PROBLEMS) < 0.5, shared, values)
        drawn[str(index)] = values, named, case.kind
    return drawn


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.kind)
def test_each_wrong_verdict_is_rarer_than_the_stated_error_rate(case, families):
    # Several parts or columns take many times as long, and are wrong more rarely.
    is_slow = case.kind == "largest" or case.parts > 1
    simulations = SIMULATIONS // 4 if is_slow else SIMULATIONS
    rng = np.random.default_rng(1)
    wrong = Counter()
    for _ in range(simulations):
        parts = parts_of(case, families, rng)
        for side in ("low", "high"):
            wrong[side] += decide(parts, **{side: case.edge}).verdict in WRONG
    assert max(wrong.values()) < ALLOWED * simulations
