"""How sure a number is: the one interval of a number over problems and how it is told, paired tests, power.

The interval fits the kind of the numbers:

    mean        any number per problem: Student's, extended where the values are skewed
    share       right or wrong, 100 or 0: Clopper and Pearson's exact interval
    difference  paired right or wrong, 100, 0 or -100: Tango's score interval, which reaches 0 unless the exact McNemar
                test rejects 0 too
    largest     a column per alternative: their largest mean, against what choosing it gives by chance (max-T)

Problems of one template are not independent, wherever they occur: a mean is cluster-robust, a share counts a template
once, and a difference reaches as far as a mean would. Where several samples of a problem were taken, shares and
differences lie between these numbers: they are means that keep to the scale.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, isfinite, isnan, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

ALPHA = 0.05  # two-sided: half of it for either end
ENOUGH = 20  # problems: what is constant over fewer shows nothing of how it varies
POINTS = 100  # shares and differences are in percent and its points
SCALES = {"share": (0, POINTS), "difference": (-POINTS, POINTS)}
RESAMPLES = 10_000
Z_ALPHA, Z_POWER = stats.norm.ppf([0.975, 0.8]).tolist()  # of a two-sided test at 5 %, and of a power of 80 %


@dataclass(frozen=True)
class Interval:
    """An estimate with its ends and standard error from n problems of so many clusters: numbers, or arrays (K,)."""

    estimate: Any
    low: Any  # NaN where the problems are too few to say
    high: Any
    error: Any
    n: int
    clusters: int


def interval(
    values: ArrayLike, problems: ArrayLike | None = None, kind: str = "mean", alpha: float = ALPHA
) -> Interval:
    """Return the estimate of values (N,), each end of which misses the truth with a chance of alpha / 2.

    `problems` are the ids of the N problems, None: all independent. A mean may have K columns (N, K), each with an
    interval; a largest has C (N, C), from which it chooses. Raises ValueError for no values, NaN or infinity.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim not in (1, 2) or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"expected finite values of shape (N,) or (N, K), not {values.shape}")
    clusters = np.arange(len(values)) if problems is None else clusters_of(problems)
    estimate, low, high = RULES[kind](values, clusters, alpha)
    best = values[:, values.mean(0).argmax()] if kind == "largest" else values
    return Interval(estimate, low, high, _moments(best, clusters)[1], len(values), int(clusters.max()) + 1)


def clusters_of(problems: ArrayLike) -> np.ndarray:
    """Return each problem's cluster (N,), counted from 0: its template in the embedded set, else the problem itself."""
    parts = [str(problem).split("/") for problem in np.asarray(problems)]
    names = ["/".join(part[:2] if part[0] == "embedded" else part) for part in parts]
    return np.unique(names, return_inverse=True)[1]


def ratio(numerator: ArrayLike, denominator: ArrayLike, problems: ArrayLike | None = None) -> Interval:
    """Return mean(numerator) / mean(denominator) of paired (N,) values, its interval that of its linearisation."""
    top, bottom = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    whole = top.mean() / bottom.mean()
    return interval(whole + (top - whole * bottom) / bottom.mean(), problems)


def rounded(value: Any, low: Any, high: Any, sign: str = "") -> str:
    """Return a number with the decimals that half the width of its interval has with two digits, two without one.

    `sign` "+": also before what is not negative. Never is a zero negative.
    """
    half = nan if low is None or high is None else (high - low) / 2
    decimals = max(0, 1 - int(f"{half:.1e}".split("e")[1])) if isfinite(half) and half > 0 else 2
    return f"{value:{sign}z.{decimals}f}"


def told(estimate: Any, low: Any, high: Any, sign: str = "") -> str:
    """Return an estimate with its interval, all three rounded alike; alone where it has none, or one without width."""
    text = rounded(estimate, low, high, sign)
    if low is None or high is None or not low < high:
        return text
    return f"{text} [{rounded(low, low, high, sign)}, {rounded(high, low, high, sign)}]"


def _moments(values: np.ndarray, clusters: np.ndarray) -> tuple[Any, Any, Any]:
    """Return mean, standard error, and third cumulant of the mean in standard errors, of values (N,) or (N, K).

    Cluster-robust (CR2; Bell and McCaffrey 2002, Survey Methodology 28:169); without clusters they are Student's. The
    error of what never varies is 0 for ENOUGH problems and NaN for fewer, as it is for those of a single template.
    """
    n, sizes, mean = len(values), np.bincount(clusters), values.mean(0)
    constant = np.ptp(values, 0) <= 1e-12 * np.abs(values).max(0)  # rounding is no spread
    if len(sizes) < 2:
        return mean, np.full_like(mean, nan), np.zeros_like(mean)
    sums = np.zeros((len(sizes), *values.shape[1:]))
    np.add.at(sums, clusters, np.where(constant, 0, values - mean))
    squares = (sums**2).sum(0)
    error = np.sqrt(np.tensordot(1 / (1 - sizes / n), sums**2, 1)) / n
    skew = (sums**3).sum(0) / np.where(squares > 0, squares, 1) ** 1.5
    return mean, np.where(constant & (n < ENOUGH), nan, error), skew


@lru_cache
def _freedom(sizes: tuple[int, ...]) -> float:
    """Return the degrees of freedom of a mean's error from clusters of these sizes; their number less 1 if equal."""
    shares = np.array(sizes) / sum(sizes)
    apart = np.eye(len(sizes)) - shares  # cluster effects less their mean over problems
    covariance = shares[:, None] * (apart @ apart.T) * shares
    weights = 1 / (1 - shares)
    return float((weights * np.diag(covariance)).sum() ** 2 / (weights @ covariance**2 @ weights))


@lru_cache(maxsize=10_000)
def _quantile(sizes: tuple[int, ...], alpha: float) -> float:
    """Return Student's two-sided quantile; slow, and asked for again and again."""
    return float(stats.t.ppf(1 - alpha / 2, _freedom(sizes))) if len(sizes) > 1 else inf


def _mean(values: np.ndarray, clusters: np.ndarray, alpha: float) -> tuple[Any, Any, Any]:
    """Return Student's interval, longer on the side of the longer tail: by thrice Johnson's correction (JASA 73:536).

    Thrice, since few values show less skewness than their distribution has; never shorter, since chance gives some.
    """
    mean, error, skew = _moments(values, clusters)
    t = _quantile(tuple(np.bincount(clusters).tolist()), alpha)
    longer = 3 * skew * error * (1 + 2 * t**2) / 6
    return mean, mean - t * error + np.minimum(longer, 0), mean + t * error + np.maximum(longer, 0)


def _share(values: np.ndarray, clusters: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """Return the exact interval of as many answers as there would be if a template gave but one (Kish)."""
    if not np.isin(values, (0, POINTS)).all():
        return _on_scale("share", values, clusters, alpha)
    independent, right = len(values) ** 2 // int((np.bincount(clusters) ** 2).sum()), int((values > 0).sum())
    fewest, most = right * independent // len(values), -(-right * independent // len(values))
    low, high = clopper_pearson(fewest, independent, alpha)[0], clopper_pearson(most, independent, alpha)[1]
    return float(values.mean()), POINTS * low, POINTS * high


def _difference(values: np.ndarray, clusters: np.ndarray, alpha: float) -> tuple[float, float, float]:
    on_scale = _on_scale("difference", values, clusters, alpha)
    if not np.isin(values, (-POINTS, 0, POINTS)).all():
        return on_scale
    low, high = _paired(int((values < 0).sum()), int((values > 0).sum()), len(values), alpha)
    if clusters.max() + 1 == len(values):
        return float(values.mean()), low, high
    return float(values.mean()), min(low, on_scale[1]), max(high, on_scale[2])


def _on_scale(kind: str, values: np.ndarray, clusters: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """Return a mean with its interval as far as the scale goes; all of the scale where the problems cannot say."""
    mean, low, high = (float(number) for number in _mean(values, clusters, alpha))
    lowest, highest = SCALES[kind]
    return mean, lowest if isnan(low) else max(low, lowest), highest if isnan(high) else min(high, highest)


@lru_cache(maxsize=10_000)  # claims ask for the same again and again, as for the next
def _paired(less: int, more: int, n: int, alpha: float) -> tuple[float, float]:
    low, high = (POINTS * end for end in tango(less, more, n, alpha))
    return (low, high) if mcnemar_exact(less, more) <= alpha else (min(low, 0.0), max(high, 0.0))


def _largest(values: np.ndarray, clusters: np.ndarray, alpha: float) -> tuple[float, float, float]:
    """Return the largest mean less what chance gives, and the highest end of any column's own interval."""
    sums = np.zeros((clusters.max() + 1, values.shape[1]))
    np.add.at(sums, clusters, values)
    largest, chance = float(values.mean(0).max()), np.quantile(largest_of_flipped(sums, 0), 1 - alpha / 2)
    return largest, largest - float(chance) / len(values), float(_mean(values, clusters, alpha)[2].max())


RULES = {"mean": _mean, "share": _share, "difference": _difference, "largest": _largest}


@lru_cache(maxsize=10_000)
def clopper_pearson(successes: int, n: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the ends of the exact interval of a share, which covers the true share at least that often."""
    ends = stats.binomtest(successes, n).proportion_ci(1 - alpha, method="exact")
    return float(ends.low), float(ends.high)


def tango(only_a: int, only_b: int, n: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the ends of the score interval of the share only b solved less the share only a solved of n problems.

    That is what the score test does not reject (Tango 1998, Stat. Med. 17:891): it has a width where nothing changes.
    """
    z = float(stats.norm.ppf(1 - alpha / 2))
    edge = 1 - 1e-9  # the score has no value at a difference of -1 or 1

    def score(difference: float, aim: float) -> float:
        return _tango_score(only_a, only_b, n, difference) - aim

    low = optimize.root_scalar(score, (z,), bracket=(-edge, edge)).root if score(-edge, z) > 0 else -1.0
    high = optimize.root_scalar(score, (-z,), bracket=(-edge, edge)).root if score(edge, -z) < 0 else 1.0
    return low, high


def _tango_score(only_a: int, only_b: int, n: int, difference: float) -> float:
    """Return the score of a true difference, standard normal if it holds; it falls as the difference grows."""
    if difference < 0:  # the same question with the sides changed; so no root below is of a number under 0
        return -_tango_score(only_b, only_a, n, -difference)
    # The likeliest share that only a solves, given the difference, is the larger root of a quadratic.
    linear = (2 * n - only_b + only_a) * difference - only_a - only_b
    constant = -only_a * difference * (1 - difference)
    share_a = (sqrt(linear**2 - 8 * n * constant) - linear) / (4 * n)
    surplus = only_b - only_a - n * difference
    return surplus and surplus / sqrt(n * (2 * share_a + difference * (1 - difference)))


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the two-sided exact McNemar p-value of the problems that only a and only b solved."""
    return float(stats.binomtest(int(only_a), int(only_a + only_b)).pvalue) if only_a + only_b else 1.0


def largest_of_flipped(apart: np.ndarray, seed: int) -> np.ndarray:
    """Return the largest column sum of differences (N, C) in each of RESAMPLES random flips of the rows' signs."""
    return (_signs(len(apart), seed) @ apart).max(1)


@lru_cache(maxsize=1)
def _signs(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(RESAMPLES, n))


def signed_rank(values: ArrayLike) -> np.ndarray:
    """Return the two-sided Wilcoxon signed-rank p-value against 0 of each column of (N, K) values, (K,).

    By the normal approximation: whether two values tie, which may hang on a last digit, does not change the method.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"expected finite values of shape (N, K), not {values.shape}")
    moved = (values != 0).any(axis=0)  # without a single difference there is nothing to rank
    p_values = np.ones(values.shape[1])
    p_values[moved] = stats.wilcoxon(values[:, moved], axis=0, method="asymptotic").pvalue
    return p_values


def pass_at_k(correct: ArrayLike, k: int) -> np.ndarray:
    """Return per problem the chance that one of k samples is right, from right/wrong (N, S) with S >= k.

    Unbiased: 1 - C(S - c, k) / C(S, k) with c right ones (Chen et al. 2021, arXiv 2107.03374).
    """
    correct = np.asarray(correct, dtype=float)
    samples, wrong = correct.shape[1], correct.shape[1] - correct.sum(1)
    return np.asarray(1 - special.comb(wrong, k) / special.comb(samples, k))


def sign_flip(differences: ArrayLike, seed: int) -> float:
    """Return the two-sided p-value of paired differences (N,) against 0, whose signs are as likely as not."""
    differences = np.asarray(differences, dtype=float)
    if not differences.any():
        return 1.0
    options = {"permutation_type": "samples", "n_resamples": RESAMPLES - 1, "rng": np.random.default_rng(seed)}
    return float(stats.permutation_test((differences,), np.mean, **options).pvalue)


def holm(p_values: ArrayLike) -> np.ndarray:
    """Return Holm's adjusted p-values (M,), in the order given."""
    p_values = np.asarray(p_values, dtype=float)
    if p_values.size == 0 or not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("expected p-values between 0 and 1")
    order, adjusted = p_values.argsort(), np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(np.arange(p_values.size, 0, -1) * p_values[order]).clip(max=1)
    return adjusted


def n_needed(effect: float, discordant_rate: float) -> int:
    """Return how many problems a two-sided McNemar test at 5 % needs to show a paired accuracy difference at 80 %.

    n = (z(1 - alpha/2) sqrt(r) + z(power) sqrt(r - d^2))^2 / d^2 with difference d and discordant rate r
    (Connor 1987, Biometrics 43:207, after Miettinen 1968); the exact test needs a few problems more.
    """
    r = discordant_rate
    return ceil(((Z_ALPHA * sqrt(r) + Z_POWER * sqrt(r - effect**2)) / effect) ** 2)


def smallest_effect(n: int, discordant_rate: float) -> float:
    """Return the d that n problems show with the power of `n_needed`; NaN when n is too small for any."""
    r = discordant_rate
    if r == 0 or sqrt(n * r) < Z_ALPHA + Z_POWER * sqrt(1 - r):
        return float("nan")
    root = Z_POWER * sqrt(n + Z_POWER**2 - Z_ALPHA**2)
    return float(sqrt(r) * (Z_ALPHA * sqrt(n) + root) / (n + Z_POWER**2))
