"""Confidence intervals over problems, one method per kind of number; their p-values;
and an estimate with its interval as text.

The kinds are:

mean        Student's t.
share       a proportion in percent, each value 0 or 100: Clopper-Pearson.
difference  of paired proportions, each value -100, 0 or 100: Tango's score interval,
            widened to include 0 unless McNemar's exact test rejects 0.
largest     of several means: its distribution under random signs (max-T).

Problems made from one template form a cluster. If a problem has several samples, its
share or difference has other values, and has Student's interval, clipped to the
possible range.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, isinf, nan, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from lib.statistics.proportions import clopper_pearson, mcnemar_exact, tango_interval

ALPHA = 0.05  # two-sided: half for each bound
# The minimum number of problems for a verdict. If fewer have the same value, the
# variance is unknown.
ENOUGH = 20
POINTS = 100  # shares are in percent, and differences in percentage points
LOWEST = {"share": 0, "difference": -POINTS}  # the minimum; the maximum is POINTS
VALUE_KINDS = ("mean", *LOWEST, "largest")
RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval: numbers, or arrays (K,)."""

    estimate: Any
    low: Any  # NaN, as `high`, if there are too few problems for an interval
    high: Any
    error: Any  # standard error
    n: int  # number of problems


def interval(
    values: ArrayLike,
    problems: ArrayLike | None = None,
    kind: str = "mean",
    alpha: float = ALPHA,
) -> Interval:
    """Return the mean of values (N,), one for each problem, with its confidence
    interval at the level 1 - alpha.

    Values of the kinds share (0 or 100) and difference (-100, 0 or 100) are in percent.
    `ClusteredMean` describes the other arguments, and computes intervals at several
    levels.
    """
    return ClusteredMean(values, problems, kind).interval(alpha)


def ratio_of_means(
    numerator: ArrayLike, denominator: ArrayLike, problems: ArrayLike | None = None
) -> Interval:
    """Return mean(numerator) / mean(denominator) of paired values (N,), with its
    interval by the delta method, which includes the errors of both means.

    problems: the problems' ids; None: all are independent.
    """
    top = np.asarray(numerator, dtype=float)
    bottom = np.asarray(denominator, dtype=float)
    estimate = top.mean() / bottom.mean()
    linear = estimate + (top - estimate * bottom) / bottom.mean()
    return interval(linear, problems)


class ClusteredMean:
    """The mean of values (N,) over N problems, with intervals at any level.

    problems: the problems' ids (N,), from which clusters follow; None: all are
    independent. kind: see the module. A mean may have K columns (N, K), each with an
    interval; the kind "largest" has C columns (N, C), and its estimate is the largest
    of their means. Time and memory are linear in N. Raises ValueError for no values,
    NaN or infinity, and for an unknown kind.
    """

    def __init__(
        self, values: ArrayLike, problems: ArrayLike | None = None, kind: str = "mean"
    ):
        values = np.asarray(values, dtype=float)
        has_shape = values.ndim in (1, 2) and values.size > 0
        if not has_shape or not np.isfinite(values).all():
            raise ValueError(
                f"expected finite values of shape (N,) or (N, K), not {values.shape}"
            )
        if kind not in VALUE_KINDS:
            raise ValueError(
                f"unknown kind {kind!r}: choose from {', '.join(VALUE_KINDS)}"
            )
        independent = np.arange(len(values))
        self.values = values
        self.kind = kind
        self.clusters = independent if problems is None else cluster_ids(problems)
        self.sizes = np.bincount(self.clusters)
        self.degrees_of_freedom = _degrees_of_freedom(self.sizes)
        self.mean, self.error, self.skew = _moments(values, self.clusters)

    def interval(self, alpha: float = ALPHA) -> Interval:
        """Return the interval, each bound of which misses the true value with
        probability alpha / 2.
        """
        n = len(self.values)
        low, high = self._students_interval(alpha)
        if self.kind == "largest":
            best = self.mean.argmax()
            mean = self.mean[best]
            null = self._null_distribution
            largest = np.quantile(null, 1 - alpha / 2, method="higher")
            return Interval(mean, mean - largest, high.max(), self.error[best], n)
        if self.kind in LOWEST:
            low, high = self._interval_in_range(alpha, low, high)
        return Interval(self.mean, low, high, self.error, n)

    def _students_interval(self, alpha: float) -> tuple[Any, Any]:
        """Return the bounds of Student's interval, extended on the side of the longer
        tail.

        The extension is three times Johnson's correction (JASA 73:536), because the
        skewness of a small sample underestimates that of its distribution. The interval
        is never shortened, because even a symmetric distribution gives skewed samples.
        """
        t = scipy.special.stdtrit(self.degrees_of_freedom, 1 - alpha / 2)
        longer = 3 * self.skew * self.error * (1 + 2 * t**2) / 6
        low = self.mean - t * self.error + np.minimum(longer, 0)
        high = self.mean + t * self.error + np.maximum(longer, 0)
        return low, high

    def _interval_in_range(self, alpha: float, low: Any, high: Any) -> tuple[Any, Any]:
        """Return the bounds for a share or a difference.

        low, high: the bounds of Student's interval. They are clipped to the possible
        range, and replaced by it if they are NaN. If each problem has one answer, the
        interval is the one for counts.
        """
        lowest = LOWEST[self.kind]
        low = np.fmax(low, lowest)
        high = np.fmin(high, POINTS)
        if not np.isin(self.values, (lowest, 0, POINTS)).all():
            return low, high
        if self.kind == "share":
            return _share(self.values, self.sizes, alpha)
        return _difference(self.values, self.sizes, alpha, low, high)

    @cached_property
    def _null_distribution(self) -> np.ndarray:
        """The distribution of the largest mean of C columns (RESAMPLES + 1,) if no
        column has an effect: the sums of the clusters have random signs (max-T).

        The observed signs are one of the samples, so that no level below
        2 / (RESAMPLES + 1) excludes 0.
        """
        sums = _cluster_sums(self.values, self.clusters)
        random = np.random.default_rng(0)
        signs = random.choice([-1.0, 1.0], size=(RESAMPLES, len(sums)))
        means = (signs @ sums).max(1) / len(self.values)

        # A mean that differs from the observed one by rounding alone equals it.
        observed = self.mean.max()
        is_tied = np.isclose(means, observed, rtol=1e-9, atol=0)
        return np.append(np.where(is_tied, observed, means), observed)


def cluster_ids(problems: ArrayLike) -> np.ndarray:
    """Return the cluster of each problem (N,), as a number from 0.

    problems: their ids. Problems of the embedded set that are made from one template
    form a cluster; any other problem is a cluster of its own.
    """
    names = []
    for problem in np.asarray(problems):
        parts = str(problem).split("/")
        template = parts[:2] if parts[0] == "embedded" else parts
        names.append("/".join(template))
    return np.unique(names, return_inverse=True)[1]


def _moments(values: np.ndarray, clusters: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the mean of values (N,) or (N, K), its standard error, and the skewness of
    its distribution.

    The standard error is cluster-robust (CR2; Bell and McCaffrey 2002, Survey
    Methodology 28:169); without clusters it is Student's. The error of constant values
    is 0 for at least ENOUGH problems. It is NaN, because it is unknown, for fewer, and
    for a single cluster.
    """
    n = len(values)
    sizes = np.bincount(clusters)
    mean = values.mean(0)
    if len(sizes) < 2:
        return mean, np.full_like(mean, nan), np.zeros_like(mean)

    # Differences due to rounding do not count as variation.
    constant = np.ptp(values, 0) <= 1e-12 * np.abs(values).max(0)
    deviations = np.where(constant, 0, values - mean)
    sums = _cluster_sums(deviations, clusters)
    weights = 1 / (1 - sizes / n)
    error = np.sqrt(np.tensordot(weights, sums**2, 1)) / n
    error = np.where(constant & (n < ENOUGH), nan, error)

    squares = (sums**2).sum(0)
    scale = np.where(squares > 0, squares, 1) ** 1.5
    skew = (sums**3).sum(0) / scale
    return mean, error, skew


def _cluster_sums(values: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return the sums (C,) or (C, K) of values (N,) or (N, K) in C clusters."""
    sums = np.zeros((clusters.max() + 1, *values.shape[1:]))
    np.add.at(sums, clusters, values)
    return sums


def _degrees_of_freedom(sizes: np.ndarray) -> float:
    """Return Student's degrees of freedom for a mean over clusters of these sizes.

    They are those of Bell and McCaffrey (2002) for clusters with independent effects of
    equal variance, from which the mean is subtracted. The covariance of the weighted
    sums of clusters i and j is s_i s_j (c - s_i - s_j), plus s_i² on the diagonal,
    over the square roots of 1 - s_i and 1 - s_j, with s the clusters' shares of the
    problems and c the sum of their squares. Clusters of equal size have one degree less
    than there are clusters, which needs no matrix; a single cluster has none (NaN).
    """
    if len(sizes) < 2:
        return nan
    if (sizes == sizes[0]).all():
        return len(sizes) - 1.0
    shares = sizes / sizes.sum()
    c = (shares**2).sum()
    covariance = np.outer(shares, shares) * (c - shares[:, None] - shares)
    covariance += np.diag(shares**2)
    covariance /= np.sqrt(np.outer(1 - shares, 1 - shares))
    return float(np.trace(covariance) ** 2 / (covariance**2).sum())


def _share(values: np.ndarray, sizes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return the exact interval, in percent, of a share in as many independent answers
    as Kish's effective sample size for clusters of these sizes.

    For a count between two integers, the interval extends from the lower bound for the
    smaller integer to the upper bound for the larger one.
    """
    n = len(values)
    right = int((values > 0).sum())
    independent = n**2 // int((sizes**2).sum())
    fewest = right * independent // n
    most = -(-right * independent // n)
    low, _ = clopper_pearson(fewest, independent, alpha)
    _, high = clopper_pearson(most, independent, alpha)
    return POINTS * low, POINTS * high


def _difference(
    values: np.ndarray, sizes: np.ndarray, alpha: float, low: float, high: float
) -> tuple[float, float]:
    """Return Tango's interval in percentage points, widened to include 0 unless
    McNemar's exact test rejects it and, if there are clusters, `low` and `high`.

    low, high: the bounds of Student's interval.
    """
    losses = int((values < 0).sum())
    gains = int((values > 0).sum())
    bounds = [
        POINTS * bound for bound in tango_interval(losses, gains, len(values), alpha)
    ]
    if mcnemar_exact(losses, gains) > alpha:
        bounds.append(0.0)
    if len(sizes) < len(values):
        bounds += [low, high]
    return min(bounds), max(bounds)


# Range of the p-values that are searched.
SMALLEST_P = 1e-6
LARGEST_P = 0.99


def smallest_level(reached: Callable[[Interval], Any], *part: Any) -> float:
    """Return the p-value of a statement about an interval: the smallest alpha at which
    the statement is true.

    reached: whether the statement is true of an interval. part: the arguments of
    `ClusteredMean`. The p-value is found by bisection on a logarithmic scale from 1e-6
    to 0.99, with a relative precision of a hundredth; it is 1 if the statement is not
    even true at 0.99.
    """
    mean = ClusteredMean(*part)
    below = SMALLEST_P
    above = LARGEST_P
    if not reached(mean.interval(above)):
        return 1.0
    while above / below > 1.01:
        middle = sqrt(below * above)
        if reached(mean.interval(middle)):
            above = middle
        else:
            below = middle
    return above


def holm(p_values: ArrayLike) -> np.ndarray:
    """Return p-values (M,) with Holm's correction, in the same order.

    Raises ValueError for a number that is no p-value.
    """
    p_values = np.asarray(p_values, dtype=float)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("expected p-values between 0 and 1")
    order = p_values.argsort()
    factors = np.arange(p_values.size, 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(factors * p_values[order]).clip(max=1)
    return adjusted


MOST_DECIMALS = 6  # to which an interval near 0 adds decimals
# Relative width: a narrower interval is rounding error, which differs between
# processors, and counts as none.
NARROWEST = 1e-5


def decimals_of(low: Any, high: Any, sign: str = "", usual: int | None = None) -> int:
    """Return how many decimals an interval justifies: half of its width has two
    significant digits, and a number without an interval has two decimals.

    usual: the number of decimals of a table's column, which is used instead, but drops
    at most one decimal. If the interval of a difference excludes 0, decimals are added
    until the printed interval excludes it, too, at most MOST_DECIMALS.
    """
    decimals = 2
    if low is None or high is None:
        return decimals
    half = (high - low) / 2
    if isfinite(half) and _has_width(low, high):
        exponent = int(f"{half:.1e}".split("e")[1])
        decimals = max(0, 1 - exponent)
    if usual is not None:
        decimals = max(usual, decimals - 1)
    nearest = 0  # to 0, of the bounds of an interval that excludes 0
    if high < 0:
        nearest = high
    elif low > 0 and sign:  # a positive number that is no difference always excludes 0
        nearest = low
    while nearest and round(nearest, decimals) == 0 and decimals < MOST_DECIMALS:
        decimals += 1
    return decimals


def _has_width(low: Any, high: Any) -> bool:
    """Return whether an interval is wider than NARROWEST."""
    largest = max(abs(low), abs(high))
    return high - low > NARROWEST * largest or isinf(largest)


def format_interval(
    estimate: Any, low: Any, high: Any, sign: str = "", usual: int | None = None
) -> str:
    """Format an estimate with its interval, all three with the decimals of
    `decimals_of`.

    The estimate is alone if it has no interval, or one without width. `sign` "+" adds a
    plus sign to numbers that are not negative; zero is never printed as -0.
    """
    decimals = decimals_of(low, high, sign, usual)
    text = f"{estimate:{sign}z.{decimals}f}"
    if low is None or high is None or not _has_width(low, high):
        return text
    return f"{text} [{low:{sign}z.{decimals}f}, {high:{sign}z.{decimals}f}]"
