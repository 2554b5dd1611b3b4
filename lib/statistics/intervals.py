"""Confidence intervals over problems, one method per kind of number.

A mean uses Student's t. A share (each value 0 or 100) uses Clopper-Pearson. A
difference of paired shares uses Tango's score interval, widened to include 0 unless
McNemar's exact test rejects 0. The largest of several means is compared with its
distribution under random selection (max-T). Problems made from one template form a
cluster, wherever they occur. With several samples per problem, shares and differences
are treated as means within their possible range.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, isnan, nan
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from lib.statistics.proportions import clopper_pearson, mcnemar_exact, tango_interval

ALPHA = 0.05  # two-sided: half for each bound
ENOUGH = 20  # problems; the variance of fewer with a constant value is unknown
POINTS = 100  # shares are in percent, and differences in percentage points
LOWEST = {"share": 0, "difference": -POINTS}  # the maximum is POINTS
RESAMPLES = 10_000
SIGNS_AT_ONCE = 1 << 22  # of resamples: 32 MiB
Z_ALPHA = NormalDist().inv_cdf(0.975)  # two-sided test at 5 %
Z_POWER = NormalDist().inv_cdf(0.8)  # power of 80 %


@dataclass(frozen=True)
class Interval:
    """An estimate with the bounds of its interval and its standard error: numbers, or
    arrays (K,).
    """

    estimate: Any
    low: Any  # NaN if there are too few problems
    high: Any
    error: Any
    n: int  # problems


def interval(
    values: ArrayLike,
    problems: ArrayLike | None = None,
    kind: str = "mean",
    alpha: float = ALPHA,
) -> Interval:
    """Return the estimate of values (N,) with its confidence interval.

    `ClusteredMean` describes the arguments, and gives intervals at several levels.
    """
    return ClusteredMean(values, problems, kind).interval(alpha)


def ratio_of_means(
    numerator: ArrayLike, denominator: ArrayLike, problems: ArrayLike | None = None
) -> Interval:
    """Return mean(numerator) / mean(denominator) of paired values (N,), with its
    interval by the delta method, which includes the errors of both means.
    """
    top = np.asarray(numerator, dtype=float)
    bottom = np.asarray(denominator, dtype=float)
    estimate = top.mean() / bottom.mean()
    linear = estimate + (top - estimate * bottom) / bottom.mean()
    return interval(linear, problems)


class ClusteredMean:
    """The mean of values (N,) over N problems, with intervals at any level in time and
    memory linear in N.

    `problems` are the problems' ids; None: all are independent. A mean may have K
    columns (N, K), each with an interval; kind "largest" has C columns (N, C), of which
    the largest mean is the estimate. Raises ValueError for no values, NaN or infinity.
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
        independent = np.arange(len(values))
        self.values = values
        self.kind = kind
        self.clusters = independent if problems is None else cluster_ids(problems)
        self.sizes = np.bincount(self.clusters)
        self.freedom = _degrees_of_freedom(self.sizes)
        self.mean, self.error, self.skew = _moments(values, self.clusters)

    def interval(self, alpha: float = ALPHA) -> Interval:
        """Return the interval, each bound of which misses the true value with
        probability alpha / 2.
        """
        n = len(self.values)
        low, high = self._students_ends(alpha)
        if self.kind == "largest":
            best = self.mean.argmax()
            mean = self.mean[best]
            by_chance = np.quantile(self._largest_by_chance, 1 - alpha / 2)
            return Interval(mean, mean - by_chance, high.max(), self.error[best], n)
        if self.kind in LOWEST:
            low, high = self._ends_on_the_scale(alpha, low, high)
        return Interval(self.mean, low, high, self.error, n)

    def _students_ends(self, alpha: float) -> tuple[Any, Any]:
        """Return the bounds of Student's interval, extended on the side of the longer
        tail.

        The extension is three times Johnson's correction (JASA 73:536), because few
        values show less skewness than their distribution has. It never shortens the
        interval, because chance alone produces some skewness.
        """
        t = scipy.special.stdtrit(self.freedom, 1 - alpha / 2)
        longer = 3 * self.skew * self.error * (1 + 2 * t**2) / 6
        low = self.mean - t * self.error + np.minimum(longer, 0)
        high = self.mean + t * self.error + np.maximum(longer, 0)
        return low, high

    def _ends_on_the_scale(self, alpha: float, low: Any, high: Any) -> tuple[Any, Any]:
        """Return the bounds for a share or a difference, given those of Student's
        interval.

        Values of one answer per problem have an interval for counts. With too few
        problems, the bounds are those of the scale.
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
    def _largest_by_chance(self) -> np.ndarray:
        """The null distribution of the largest mean of C columns (RESAMPLES,).

        The clusters' sums receive random signs (max-T), a block of resamples at a time.
        """
        sums = _cluster_sums(self.values, self.clusters)
        random = np.random.default_rng(0)
        largest = []
        size = max(1, SIGNS_AT_ONCE // len(sums))
        for begin in range(0, RESAMPLES, size):
            shape = min(size, RESAMPLES - begin), len(sums)
            signs = random.choice([-1.0, 1.0], size=shape)
            largest.append((signs @ sums).max(1))
        return np.concatenate(largest) / len(self.values)


def cluster_ids(problems: ArrayLike) -> np.ndarray:
    """Return each problem's cluster (N,), counted from 0.

    The cluster is the template in the embedded set, otherwise the problem itself.
    """
    names = []
    for problem in np.asarray(problems):
        parts = str(problem).split("/")
        template = parts[:2] if parts[0] == "embedded" else parts
        names.append("/".join(template))
    return np.unique(names, return_inverse=True)[1]


def _moments(values: np.ndarray, clusters: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the mean of values (N,) or (N, K), its standard error, and its third
    cumulant in standard errors.

    The standard error is cluster-robust (CR2; Bell and McCaffrey 2002, Survey
    Methodology 28:169); without clusters it is Student's. The error of constant values
    is 0 for ENOUGH problems, and NaN for fewer or for those of a single template.
    """
    n = len(values)
    sizes = np.bincount(clusters)
    mean = values.mean(0)
    if len(sizes) < 2:
        return mean, np.full_like(mean, nan), np.zeros_like(mean)

    # Differences by rounding do not count as variation.
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
    """Return the sum of the values (N,) or (N, K) in each cluster."""
    sums = np.zeros((clusters.max() + 1, *values.shape[1:]))
    np.add.at(sums, clusters, values)
    return sums


def _degrees_of_freedom(sizes: np.ndarray) -> float:
    """Return Student's degrees of freedom for a mean over clusters of these sizes.

    They are those of Bell and McCaffrey (2002) for clusters with independent effects of
    equal variance, from which the mean is subtracted. The covariance of the weighted
    sums of clusters i and j is s_i s_j (c - s_i - s_j), plus s_i² on the diagonal, with
    s the clusters' shares of the problems and c the sum of their squares. The traces of
    this matrix and of its square are sums over clusters. Clusters of equal size have
    one degree less than there are clusters; a single cluster has none (NaN).
    """
    if len(sizes) < 2:
        return nan
    shares = sizes / sizes.sum()
    weights = 1 / (1 - shares)
    c = (shares**2).sum()
    expected = (weights * shares**2 * (1 + c - 2 * shares)).sum()

    # The sum over all i and j as if none were equal, then the additional diagonal.
    power = [(weights * shares**k).sum() for k in (2, 3, 4)]
    pairs = c**2 * power[0] ** 2 - 4 * c * power[0] * power[1]
    pairs += 2 * power[0] * power[2] + 2 * power[1] ** 2
    on_diagonal = (1 + c - 2 * shares) ** 2 - (c - 2 * shares) ** 2
    variance = pairs + (weights**2 * shares**4 * on_diagonal).sum()
    return float(expected**2 / variance)


def _share(values: np.ndarray, sizes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return the exact interval for Kish's effective sample size, as if each template
    gave one answer.

    A count between two integers extends from the lower bound of the one to the upper
    bound of the other.
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
    """Return Tango's interval, widened to include the values that two other rules do
    not reject.

    It includes 0 unless McNemar's exact test rejects it and, with templates, the bounds
    of the mean.
    """
    less = int((values < 0).sum())
    more = int((values > 0).sum())
    ends = [POINTS * end for end in tango_interval(less, more, len(values), alpha)]
    if mcnemar_exact(less, more) > alpha:
        ends.append(0.0)
    if len(sizes) < len(values):
        ends += [low, high]
    return min(ends), max(ends)


def sample_size_for_power(distance: float, deviation: float) -> float:
    """Return how many problems are needed for the interval to exclude a bound with 80 %
    power.

    `distance` is the distance from the effect to the bound. NaN if it is 0, or if
    `deviation` is unknown because there is only one problem. For a single part
    (Guenther 1981, Am. Stat. 35:243), with a last term for Student's distribution
    instead of the normal one.
    """
    if distance == 0 or isnan(deviation):
        return nan
    normal = ((Z_ALPHA + Z_POWER) * deviation / distance) ** 2
    return ceil(normal + Z_ALPHA**2 / 2)
