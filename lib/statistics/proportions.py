"""Compute intervals of a proportion (exact) and of a difference of paired proportions
(score), and McNemar's exact test. Proportions are from 0 to 1.
"""

from functools import lru_cache
from math import sqrt

import scipy


@lru_cache(maxsize=10_000)
def clopper_pearson(successes: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the exact interval of a proportion of `successes` among n, with a coverage
    of at least 1 - alpha.
    """
    test = scipy.stats.binomtest(successes, n)
    bounds = test.proportion_ci(1 - alpha, method="exact")
    return float(bounds.low), float(bounds.high)


@lru_cache(maxsize=10_000)  # slow, and called many times with the same arguments
def tango_interval(
    only_a: int, only_b: int, n: int, alpha: float = 0.05
) -> tuple[float, float]:
    """Return Tango's score interval of the proportion that b solves minus the
    proportion that a solves, at the level 1 - alpha; both bounds are from -1 to 1.

    only_a, only_b: the numbers of problems, out of n, that only a or only b solved. The
    interval contains all differences that the score test does not reject (Tango 1998,
    Stat. Med. 17:891). It has a width even if both solve the same problems.
    """
    z = float(scipy.stats.norm.ppf(1 - alpha / 2))
    edge = 1 - 1e-9  # the score is undefined at a difference of -1 or 1
    bracket = -edge, edge
    low, high = -1.0, 1.0
    if _tango_score(-edge, only_a, only_b, n, z) > 0:
        arguments = only_a, only_b, n, z
        low = scipy.optimize.root_scalar(_tango_score, arguments, bracket=bracket).root
    if _tango_score(edge, only_a, only_b, n, -z) < 0:
        arguments = only_a, only_b, n, -z
        high = scipy.optimize.root_scalar(_tango_score, arguments, bracket=bracket).root
    return low, high


def _tango_score(
    difference: float, only_a: int, only_b: int, n: int, target: float
) -> float:
    """Return the score statistic of a difference minus a target; it decreases as the
    difference grows.

    The statistic is standard normal if the difference is the true one.
    """
    if difference < 0:
        # The mirrored problem, so that no root below is of a negative number.
        return -_tango_score(-difference, only_b, only_a, n, -target)
    # The maximum-likelihood proportion that only a solves, given the difference, is the
    # larger root of a quadratic equation.
    linear = (2 * n - only_b + only_a) * difference - only_a - only_b
    constant = -only_a * difference * (1 - difference)
    share_a = (sqrt(linear**2 - 8 * n * constant) - linear) / (4 * n)
    surplus = only_b - only_a - n * difference
    if surplus == 0:
        return surplus - target
    variance = n * (2 * share_a + difference * (1 - difference))
    return surplus / sqrt(variance) - target


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the p-value of McNemar's two-sided exact test.

    only_a, only_b: the numbers of problems that only a or only b solved.
    """
    if only_a + only_b == 0:
        return 1.0
    return float(scipy.stats.binomtest(int(only_a), int(only_a + only_b)).pvalue)
