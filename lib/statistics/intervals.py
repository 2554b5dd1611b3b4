"""The one interval of a number over problems, by the kind of the numbers.

A mean of any has Student's, a share of 100 or 0 Clopper and Pearson's, a difference of
shares Tango's, which reaches 0 unless the exact McNemar test rejects 0; the largest of
several means is held against what choosing it gives by chance (max-T). Problems of one
template are not independent, wherever they occur. Where several samples of a problem
were taken, shares and differences are means that keep to the scale.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, isnan, nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

ALPHA = 0.05  # two-sided: half of it for either end
ENOUGH = 20  # problems: what is constant over fewer shows nothing of how it varies
POINTS = 100  # shares and differences are in percent and its points
LOWEST = {"share": 0, "difference": -POINTS}  # the highest is POINTS
RESAMPLES = 10_000
SIGNS_AT_ONCE = 1 << 22  # of resamples: 32 MiB
Z_ALPHA = NormalDist().inv_cdf(0.975)  # of a two-sided test at 5 %
Z_POWER = NormalDist().inv_cdf(0.8)  # of a power of 80 %


@dataclass(frozen=True)
class Interval:
    """An estimate with its ends and its standard error: numbers, or arrays (K,)."""

    estimate: Any
    low: Any  # NaN where the problems are too few to say
    high: Any
    error: Any
    n: int  # problems


def interval(
    values: ArrayLike,
    problems: ArrayLike | None = None,
    kind: str = "mean",
    alpha: float = ALPHA,
) -> Interval:
    """Return the estimate of values (N,), with the ends of its interval.

    `ClusteredMean` describes the arguments, and gives intervals of several levels.
    """
    return ClusteredMean(values, problems, kind).interval(alpha)


def ratio(
    numerator: ArrayLike, denominator: ArrayLike, problems: ArrayLike | None = None
) -> Interval:
    """Return mean(numerator) / mean(denominator) of paired values (N,), with the
    interval of its linearisation, which has the errors of both means.
    """
    top = np.asarray(numerator, dtype=float)
    bottom = np.asarray(denominator, dtype=float)
    estimate = top.mean() / bottom.mean()
    linear = estimate + (top - estimate * bottom) / bottom.mean()
    return interval(linear, problems)


class ClusteredMean:
    """The mean of values (N,) over N problems, from which intervals of any level are
    made in time and memory linear in N.

    `problems` are the problems' ids; None: all are independent. A mean may have K
    columns (N, K), each with an interval; a largest has C (N, C), from which it
    chooses. Raises ValueError for no values, NaN or infinity.
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
        self.clusters = independent if problems is None else clusters_of(problems)
        self.sizes = np.bincount(self.clusters)
        self.freedom = _degrees_of_freedom(self.sizes)
        self.mean, self.error, self.skew = _moments(values, self.clusters)

    def interval(self, alpha: float = ALPHA) -> Interval:
        """Return the interval of which each end misses the truth with a chance of
        alpha / 2.
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
        """Return the ends of Student's interval, longer on the side of the longer tail.

        By thrice Johnson's correction (JASA 73:536), since few values show less
        skewness than their distribution has; never shorter, since chance gives some.
        """
        t = scipy.special.stdtrit(self.freedom, 1 - alpha / 2)
        longer = 3 * self.skew * self.error * (1 + 2 * t**2) / 6
        low = self.mean - t * self.error + np.minimum(longer, 0)
        high = self.mean + t * self.error + np.maximum(longer, 0)
        return low, high

    def _ends_on_the_scale(self, alpha: float, low: Any, high: Any) -> tuple[Any, Any]:
        """Return the ends for a share or a difference, of which Student's are given.

        Single answers have an interval for counts. The ends are those of the scale
        where the problems are too few to say.
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
        """What the largest mean of C columns reaches by choosing alone (RESAMPLES,).

        The clusters' sums get random signs (max-T), a block of resamples at a time.
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


def clusters_of(problems: ArrayLike) -> np.ndarray:
    """Return each problem's cluster (N,), counted from 0.

    That is its template in the embedded set, else the problem itself.
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

    The error is cluster-robust (CR2; Bell and McCaffrey 2002,
    Survey Methodology 28:169); without clusters it is Student's. The error of what
    never varies is 0 for ENOUGH problems and NaN for fewer, as it is for those of a
    single template.
    """
    n = len(values)
    sizes = np.bincount(clusters)
    mean = values.mean(0)
    if len(sizes) < 2:
        return mean, np.full_like(mean, nan), np.zeros_like(mean)

    # What differs by rounding alone does not vary.
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
    """Return the sum of the values (N,) or (N, K) of each cluster."""
    sums = np.zeros((clusters.max() + 1, *values.shape[1:]))
    np.add.at(sums, clusters, values)
    return sums


def _degrees_of_freedom(sizes: np.ndarray) -> float:
    """Return Student's degrees of freedom of a mean over clusters of these sizes.

    They are those of Bell and McCaffrey (2002) where clusters have independent effects
    of equal variance, of which the mean is taken off: the covariance of the weighted
    sums of clusters i and j is s_i s_j (c - s_i - s_j), on the diagonal plus s_i², with
    s the shares of the problems and c the sum of their squares. The traces of it and of
    its square are sums over clusters. Clusters of equal size have as many degrees as
    there are clusters, less 1; one cluster has none (NaN).
    """
    if len(sizes) < 2:
        return nan
    shares = sizes / sizes.sum()
    weights = 1 / (1 - shares)
    c = (shares**2).sum()
    expected = (weights * shares**2 * (1 + c - 2 * shares)).sum()

    # Over all i and j as if none were equal, then what the diagonal has beside it.
    power = [(weights * shares**k).sum() for k in (2, 3, 4)]
    pairs = c**2 * power[0] ** 2 - 4 * c * power[0] * power[1]
    pairs += 2 * power[0] * power[2] + 2 * power[1] ** 2
    on_diagonal = (1 + c - 2 * shares) ** 2 - (c - 2 * shares) ** 2
    variance = pairs + (weights**2 * shares**4 * on_diagonal).sum()
    return float(expected**2 / variance)


def _share(values: np.ndarray, sizes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return the exact interval of as many answers as a template giving one would give.

    That is Kish's effective sample size; a count between two whole ones reaches from
    the lower end of the one to the upper end of the other.
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
    """Return Tango's interval, widened to what two other rules do not rule out.

    To 0 unless McNemar's exact test rejects it and, with templates, to the mean's ends.
    """
    less = int((values < 0).sum())
    more = int((values > 0).sum())
    ends = [POINTS * end for end in tango(less, more, len(values), alpha)]
    if mcnemar_exact(less, more) > alpha:
        ends.append(0.0)
    if len(sizes) < len(values):
        ends += [low, high]
    return min(ends), max(ends)


@lru_cache(maxsize=10_000)
def clopper_pearson(
    successes: int, n: int, alpha: float = ALPHA
) -> tuple[float, float]:
    """Return the exact interval of a share: it covers the true share that often."""
    ends = scipy.stats.binomtest(successes, n).proportion_ci(1 - alpha, method="exact")
    return float(ends.low), float(ends.high)


@lru_cache(maxsize=10_000)  # slow, and asked for again and again
def tango(
    only_a: int, only_b: int, n: int, alpha: float = ALPHA
) -> tuple[float, float]:
    """Return the score interval of the share that only b solved less that of only a.

    That is what the score test does not reject (Tango 1998, Stat. Med. 17:891): it has
    a width where nothing changes.
    """
    z = float(scipy.stats.norm.ppf(1 - alpha / 2))
    edge = 1 - 1e-9  # the score has no value at a difference of -1 or 1
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
    difference: float, only_a: int, only_b: int, n: int, aim: float
) -> float:
    """Return the score of a true difference less an aim; it falls with the difference.

    The score is standard normal if the difference holds.
    """
    if difference < 0:
        # The same question with the sides changed; so no root below is of a number
        # under 0.
        return -_tango_score(-difference, only_b, only_a, n, -aim)
    # The likeliest share that only a solves, given the difference, is the larger root
    # of a quadratic.
    linear = (2 * n - only_b + only_a) * difference - only_a - only_b
    constant = -only_a * difference * (1 - difference)
    share_a = (sqrt(linear**2 - 8 * n * constant) - linear) / (4 * n)
    surplus = only_b - only_a - n * difference
    if surplus == 0:
        return surplus - aim
    variance = n * (2 * share_a + difference * (1 - difference))
    return surplus / sqrt(variance) - aim


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the two-sided exact McNemar p-value.

    `only_a` and `only_b` are the problems that only a and only b solved.
    """
    if only_a + only_b == 0:
        return 1.0
    return float(scipy.stats.binomtest(int(only_a), int(only_a + only_b)).pvalue)


def n_deciding(distance: float, deviation: float) -> float:
    """Return how many problems put the interval on one side of an end, with power 0.8.

    The end is `distance` away; NaN at 0, and of a deviation that one problem alone
    leaves unknown. For one part (Guenther 1981, Am. Stat. 35:243), the last term for
    Student's distribution instead of the normal one.
    """
    if distance == 0 or isnan(deviation):
        return nan
    normal = ((Z_ALPHA + Z_POWER) * deviation / distance) ** 2
    return ceil(normal + Z_ALPHA**2 / 2)
