"""How sure a number is: the one interval of a number over problems and how it is told,
paired tests, power.

The interval fits the kind of the numbers: a mean of any has Student's, a share of 100
or 0 Clopper and Pearson's, a difference of shares Tango's, which reaches 0 unless the
exact McNemar test rejects 0; the largest of several means is held against what choosing
it gives by chance (max-T). Problems of one template are not independent, wherever they
occur. Where several samples of a problem were taken, shares and differences are means
that keep to the scale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, isfinite, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

ALPHA = 0.05  # two-sided: half of it for either end
ENOUGH = 20  # problems: what is constant over fewer shows nothing of how it varies
POINTS = 100  # shares and differences are in percent and its points
LOWEST = {"share": 0, "difference": -POINTS}  # the highest is POINTS
RESAMPLES = 10_000
SMALLEST_P, LARGEST_P = 1e-6, 0.99  # between them a p-value is told
Z_ALPHA, Z_POWER = stats.norm.ppf(
    [0.975, 0.8]
).tolist()  # of a two-sided test at 5 %, and of a power of 80 %


@dataclass(frozen=True)
class Interval:
    """An estimate with its ends and standard error from n problems of so many clusters:
    numbers, or arrays (K,).
    """

    estimate: Any
    low: Any  # NaN where the problems are too few to say
    high: Any
    error: Any
    n: int
    clusters: int


def interval(
    values: ArrayLike,
    problems: ArrayLike | None = None,
    kind: str = "mean",
    alpha: float = ALPHA,
) -> Interval:
    """Return the estimate of values (N,), each end of which misses the truth with a
    chance of alpha / 2.

    `problems` are the ids of the N problems, None: all independent. A mean may have K
    columns (N, K), each with an interval; a largest has C (N, C), from which it
    chooses. Raises ValueError for no values, NaN or infinity.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim not in (1, 2) or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"expected finite values of shape (N,) or (N, K), not {values.shape}"
        )
    clusters = np.arange(len(values)) if problems is None else clusters_of(problems)
    n, sizes = len(values), np.bincount(clusters)
    mean, error, skew = _moments(values, clusters)
    # Longer on the side of the longer tail: by thrice Johnson's correction (JASA
    # 73:536), since few values show less skewness than their distribution has; never
    # shorter, since chance gives some.
    t = _quantile(tuple(sizes.tolist()), alpha)
    longer = 3 * skew * error * (1 + 2 * t**2) / 6
    low, high = (
        mean - t * error + np.minimum(longer, 0),
        mean + t * error + np.maximum(longer, 0),
    )
    if kind == "largest":
        best, sums = mean.argmax(), np.zeros((len(sizes), values.shape[1]))
        np.add.at(sums, clusters, values)
        chance = np.quantile((_signs(len(sizes)) @ sums).max(1), 1 - alpha / 2) / n
        return Interval(
            mean[best], mean[best] - chance, high.max(), error[best], n, len(sizes)
        )
    if kind in LOWEST:
        low, high = (
            np.fmax(low, LOWEST[kind]),
            np.fmin(high, POINTS),
        )  # the scale's where the problems cannot say
        if np.isin(values, (LOWEST[kind], 0, POINTS)).all():  # single answers
            low, high = (
                _share(values, sizes, alpha)
                if kind == "share"
                else _difference(values, sizes, alpha, low, high)
            )
    return Interval(mean, low, high, error, n, len(sizes))


def clusters_of(problems: ArrayLike) -> np.ndarray:
    """Return each problem's cluster (N,), counted from 0: its template in the embedded
    set, else the problem itself.
    """
    parts = [str(problem).split("/") for problem in np.asarray(problems)]
    names = ["/".join(part[:2] if part[0] == "embedded" else part) for part in parts]
    return np.unique(names, return_inverse=True)[1]


def ratio(
    numerator: ArrayLike, denominator: ArrayLike, problems: ArrayLike | None = None
) -> Interval:
    """Return mean(numerator) / mean(denominator) of paired (N,) values, its interval
    that of its linearisation.
    """
    top, bottom = (
        np.asarray(numerator, dtype=float),
        np.asarray(denominator, dtype=float),
    )
    whole = top.mean() / bottom.mean()
    return interval(whole + (top - whole * bottom) / bottom.mean(), problems)


def rounded(value: Any, low: Any, high: Any, sign: str = "") -> str:
    """Return a number with the decimals that half the width of its interval has with
    two digits, two without one.

    `sign` "+": also before what is not negative. Never is a zero negative.
    """
    half = nan if low is None or high is None else (high - low) / 2
    decimals = (
        max(0, 1 - int(f"{half:.1e}".split("e")[1]))
        if isfinite(half) and half > 0
        else 2
    )
    return f"{value:{sign}z.{decimals}f}"


def format_interval(estimate: Any, low: Any, high: Any, sign: str = "") -> str:
    """Return an estimate with its interval, all three rounded alike; alone where it has
    none, or one without width.
    """
    text = rounded(estimate, low, high, sign)
    if low is None or high is None or not low < high:
        return text
    return f"{text} [{rounded(low, low, high, sign)}, {rounded(high, low, high, sign)}]"


def _moments(values: np.ndarray, clusters: np.ndarray) -> tuple[Any, Any, Any]:
    """Return mean, standard error, and third cumulant of the mean in standard errors,
    of values (N,) or (N, K).

    Cluster-robust (CR2; Bell and McCaffrey 2002, Survey Methodology 28:169); without
    clusters they are Student's. The error of what never varies is 0 for ENOUGH problems
    and NaN for fewer, as it is for those of a single template.
    """
    n, sizes, mean = len(values), np.bincount(clusters), values.mean(0)
    constant = np.ptp(values, 0) <= 1e-12 * np.abs(values).max(
        0
    )  # rounding is no spread
    if len(sizes) < 2:
        return mean, np.full_like(mean, nan), np.zeros_like(mean)
    sums = np.zeros((len(sizes), *values.shape[1:]))
    np.add.at(sums, clusters, np.where(constant, 0, values - mean))
    squares = (sums**2).sum(0)
    error = np.sqrt(np.tensordot(1 / (1 - sizes / n), sums**2, 1)) / n
    skew = (sums**3).sum(0) / np.where(squares > 0, squares, 1) ** 1.5
    return mean, np.where(constant & (n < ENOUGH), nan, error), skew


@lru_cache(maxsize=10_000)  # slow, and asked for again and again
def _quantile(sizes: tuple[int, ...], alpha: float) -> float:
    """Return Student's two-sided quantile for a mean over clusters; if equal, of their
    number less 1 degrees.
    """
    if len(sizes) < 2:
        return inf
    shares = np.array(sizes) / sum(sizes)
    apart = (
        np.eye(len(sizes)) - shares[:, None] - shares + (shares**2).sum()
    )  # cluster effects less their mean
    covariance = shares[:, None] * apart * shares
    weights = 1 / (1 - shares)
    freedom = (weights * np.diag(covariance)).sum() ** 2 / (
        weights @ covariance**2 @ weights
    )
    return float(stats.t.ppf(1 - alpha / 2, freedom))


def _share(values: np.ndarray, sizes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return the exact interval of as many answers as there would be if a template gave
    but one (Kish).
    """
    independent, right = (
        len(values) ** 2 // int((sizes**2).sum()),
        int((values > 0).sum()),
    )
    fewest, most = (
        right * independent // len(values),
        -(-right * independent // len(values)),
    )
    low, high = (
        clopper_pearson(fewest, independent, alpha)[0],
        clopper_pearson(most, independent, alpha)[1],
    )
    return POINTS * low, POINTS * high


def _difference(
    values: np.ndarray, sizes: np.ndarray, alpha: float, low: float, high: float
) -> tuple[float, float]:
    """Return Tango's interval, as far as McNemar's exact test reaches and, with
    templates, the mean's ends.
    """
    less, more = int((values < 0).sum()), int((values > 0).sum())
    exact = [POINTS * end for end in tango(less, more, len(values), alpha)]
    exact += [0.0] if mcnemar_exact(less, more) > alpha else []
    exact += [low, high] if len(sizes) < len(values) else []
    return min(exact), max(exact)


@lru_cache(maxsize=1)
def _signs(n: int) -> np.ndarray:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(RESAMPLES, n))


@lru_cache(maxsize=10_000)
def clopper_pearson(
    successes: int, n: int, alpha: float = ALPHA
) -> tuple[float, float]:
    """Return the ends of the exact interval of a share, which covers the true share at
    least that often.
    """
    ends = stats.binomtest(successes, n).proportion_ci(1 - alpha, method="exact")
    return float(ends.low), float(ends.high)


@lru_cache(maxsize=10_000)  # slow, and asked for again and again
def tango(
    only_a: int, only_b: int, n: int, alpha: float = ALPHA
) -> tuple[float, float]:
    """Return the ends of the score interval of the share only b solved less the share
    only a solved of n problems.

    That is what the score test does not reject (Tango 1998, Stat. Med. 17:891): it has
    a width where nothing changes.
    """
    z = float(stats.norm.ppf(1 - alpha / 2))
    edge = 1 - 1e-9  # the score has no value at a difference of -1 or 1
    asked, how = (only_a, only_b, n), {"bracket": (-edge, edge)}
    low = (
        optimize.root_scalar(_tango_score, (*asked, z), **how).root
        if _tango_score(-edge, *asked, z) > 0
        else -1.0
    )
    high = (
        optimize.root_scalar(_tango_score, (*asked, -z), **how).root
        if _tango_score(edge, *asked, -z) < 0
        else 1.0
    )
    return low, high


def _tango_score(
    difference: float, only_a: int, only_b: int, n: int, aim: float
) -> float:
    """Return the score of a true difference, standard normal if it holds, less an aim;
    it falls with the difference.
    """
    if (
        difference < 0
        # the same question with the sides changed; so no root below is of a number under 0
    ):
        return -_tango_score(-difference, only_b, only_a, n, -aim)
    # The likeliest share that only a solves, given the difference, is the larger root
    # of a quadratic.
    linear = (2 * n - only_b + only_a) * difference - only_a - only_b
    constant = -only_a * difference * (1 - difference)
    share_a = (sqrt(linear**2 - 8 * n * constant) - linear) / (4 * n)
    surplus = only_b - only_a - n * difference
    return (
        surplus and surplus / sqrt(n * (2 * share_a + difference * (1 - difference)))
    ) - aim


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the two-sided exact McNemar p-value of the problems that only a and only b
    solved.
    """
    return (
        float(stats.binomtest(int(only_a), int(only_a + only_b)).pvalue)
        if only_a + only_b
        else 1.0
    )


def signed_rank(values: ArrayLike) -> np.ndarray:
    """Return the two-sided Wilcoxon signed-rank p-value against 0 of each column of
    finite values (N, K), (K,).

    By the normal approximation: whether two values tie, which may hang on a last digit,
    does not change the method.
    """
    values = np.asarray(values, dtype=float)
    moved = (values != 0).any(
        axis=0
    )  # without a single difference there is nothing to rank
    p_values = np.ones(values.shape[1])
    p_values[moved] = stats.wilcoxon(
        values[:, moved], axis=0, method="asymptotic"
    ).pvalue
    return p_values


def pass_at_k(correct: ArrayLike, k: int) -> np.ndarray:
    """Return per problem, without bias, the chance that one of k samples is right, from
    right/wrong (N, S); NaN: none.

    1 - C(S - c, k) / C(S, k) with c of S >= k samples right (Chen et al. 2021, arXiv
    2107.03374).
    """
    correct = np.asarray(correct, dtype=float)
    samples, wrong = np.isfinite(correct).sum(1), (correct == 0).sum(1)
    return np.asarray(1 - special.comb(wrong, k) / special.comb(samples, k))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Return Holm's adjusted p-values (M,), in the order given; raises ValueError for
    what is no p-value.
    """
    p_values = np.asarray(p_values, dtype=float)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("expected p-values between 0 and 1")
    order, adjusted = p_values.argsort(), np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(
        np.arange(p_values.size, 0, -1) * p_values[order]
    ).clip(max=1)
    return adjusted


def smallest_level(reached: Callable[[Interval], Any], *part: Any) -> float:
    """Return the p-value of what an interval says: the smallest alpha for which
    `reached` is true of interval(*part).

    Halves a logarithmic scale from 1e-6 to 0.99, exact to a hundredth of it; 1 if not
    even that reaches it.
    """
    below, above = SMALLEST_P, LARGEST_P
    if not reached(interval(*part, alpha=above)):
        return 1.0
    while above / below > 1.01:
        middle = sqrt(below * above)
        below, above = (
            (below, middle)
            if reached(interval(*part, alpha=middle))
            else (middle, above)
        )
    return above


def n_deciding(distance: float, deviation: float) -> float:
    """Return how many problems put the interval on one side of an end `distance` away
    with power 0.8; NaN at 0.

    For one part (Guenther 1981, Am. Stat. 35:243), the last term for Student's
    distribution instead of the normal one.
    """
    return (
        nan
        if distance == 0
        else ceil(((Z_ALPHA + Z_POWER) * deviation / distance) ** 2 + Z_ALPHA**2 / 2)
    )


def smallest_effect(n: int, deviation: float) -> float:
    """Return the distance for which `n_deciding` asks for n problems; infinite where no
    distance asks for so few.
    """
    return (
        (Z_ALPHA + Z_POWER) * deviation / sqrt(n - Z_ALPHA**2 / 2)
        if n > Z_ALPHA**2 / 2
        else inf
    )
