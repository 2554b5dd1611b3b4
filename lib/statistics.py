"""How sure a number is: intervals for accuracies and means, paired tests, and what n can show at all."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

RESAMPLES = 10_000
LEVEL = 0.95
BOUNDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
Z_ALPHA, Z_POWER = stats.norm.ppf([0.975, 0.8]).tolist()  # of a two-sided test at 5 %, and of a power of 80 %
BLOCK = 2_000_000  # bootstrap weights held at a time: float64 of 16 MB


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence bounds from n problems: numbers, or arrays (K,) when K columns were estimated."""

    estimate: Any
    low: Any
    high: Any
    n: int


def wilson(successes: int, n: int) -> Interval:
    """Return the share of successes with its 95 % Wilson score interval."""
    return _share(successes, n, LEVEL, "wilson")


@lru_cache(maxsize=10_000)  # claims ask for the same again and again
def clopper_pearson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Return the share of successes with its exact interval, which covers the true share at least that often."""
    return _share(successes, n, level, "exact")


@lru_cache(maxsize=10_000)
def tango(only_a: int, only_b: int, n: int, level: float = LEVEL) -> Interval:
    """Return the share only b solved less the share only a solved of n problems, with its score interval.

    That is what the score test does not reject (Tango 1998, Stat. Med. 17:891): it has a width where nothing changes.
    """
    if n < 1 or min(only_a, only_b) < 0 or only_a + only_b > n:
        raise ValueError(f"{only_a} and {only_b} of {n} are no shares of the same problems")
    z = float(stats.norm.ppf((1 + level) / 2))
    edge = 1 - 1e-9  # the score has no value at a difference of -1 or 1

    def score(difference: float, aim: float) -> float:
        return _tango_score(only_a, only_b, n, difference) - aim

    low = optimize.root_scalar(score, (z,), bracket=(-edge, edge)).root if score(-edge, z) > 0 else -1.0
    high = optimize.root_scalar(score, (-z,), bracket=(-edge, edge)).root if score(edge, -z) < 0 else 1.0
    return Interval((only_b - only_a) / n, low, high, n)


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the two-sided exact McNemar p-value of the problems that only a and only b solved."""
    return float(stats.binomtest(int(only_a), int(only_a + only_b)).pvalue) if only_a + only_b else 1.0


def bootstrap_mean(values: ArrayLike, seed: int, resamples: int = RESAMPLES) -> Interval:
    """Return the mean over problems of (N,) or (N, K) values with its 95 % percentile bootstrap interval.

    Of per-problem means over several samples it is a cluster bootstrap, of paired differences a paired one. Every
    column sees the same resamples; scipy.stats.bootstrap would hold resamples x N x K numbers for it.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"expected values of shape (N,) or (N, K), not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("the values hold NaN or infinity; leave those problems out first")
    low, high = np.quantile(_resampled_means(values, seed, resamples), BOUNDS, axis=0)
    return Interval(values.mean(axis=0), low, high, len(values))


def bootstrap_ratio(numerator: ArrayLike, denominator: ArrayLike, seed: int) -> Interval:
    """Return mean(numerator) / mean(denominator) of paired (N,) values with its 95 % interval, problems resampled."""
    both = np.stack([numerator, denominator], axis=1).astype(float)  # (N, 2)
    means = _resampled_means(both, seed)
    low, high = np.quantile(means[:, 0] / means[:, 1], BOUNDS)
    estimate = both[:, 0].mean() / both[:, 1].mean()
    return Interval(float(estimate), float(low), float(high), len(both))


def signed_rank(values: ArrayLike) -> np.ndarray:
    """Return the two-sided Wilcoxon signed-rank p-value against 0 of each column of (N, K) values, (K,)."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"expected finite values of shape (N, K), not {values.shape}")
    moved = (values != 0).any(axis=0)  # without a single difference there is nothing to rank
    p_values = np.ones(values.shape[1])
    p_values[moved] = stats.wilcoxon(values[:, moved], axis=0).pvalue
    return p_values


def _resampled_means(values: np.ndarray, seed: int, resamples: int = RESAMPLES) -> np.ndarray:
    """Return the means (resamples, ...) of draws of N problems with replacement, a block of draws at a time."""
    n, rng = len(values), np.random.default_rng(seed)
    rows = max(1, BLOCK // n)
    draws = (min(rows, resamples - start) for start in range(0, resamples, rows))
    return np.concatenate([rng.multinomial(n, np.full(n, 1 / n), size=size) @ values / n for size in draws])


def pass_at_k(correct: ArrayLike, k: int) -> np.ndarray:
    """Return per problem the chance that one of k samples is right, from right/wrong (N, S) with S >= k.

    Unbiased: 1 - C(S - c, k) / C(S, k) with c right ones (Chen et al. 2021, arXiv 2107.03374).
    """
    correct = np.asarray(correct, dtype=float)
    if correct.ndim != 2 or not 1 <= k <= correct.shape[1]:
        raise ValueError(f"expected right/wrong values (N, S) with S of at least {k}, not {correct.shape}")
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
    r = _rate(discordant_rate)
    if not 0 < abs(effect) <= r:
        raise ValueError(f"the effect {effect} must differ from 0 and stay within the discordant rate {r}")
    return ceil(((Z_ALPHA * sqrt(r) + Z_POWER * sqrt(r - effect**2)) / effect) ** 2)


def smallest_effect(n: int, discordant_rate: float) -> float:
    """Return the d that n problems show with the power of `n_needed`; NaN when n is too small for any."""
    r = _rate(discordant_rate)
    if n < 1:
        raise ValueError(f"n is {n}: expected at least 1 problem")
    if r == 0 or sqrt(n * r) < Z_ALPHA + Z_POWER * sqrt(1 - r):
        return float("nan")
    root = Z_POWER * sqrt(n + Z_POWER**2 - Z_ALPHA**2)
    return float(sqrt(r) * (Z_ALPHA * sqrt(n) + root) / (n + Z_POWER**2))


def _share(successes: int, n: int, level: float, method: str) -> Interval:
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is no share")
    bounds = stats.binomtest(int(successes), int(n)).proportion_ci(level, method=method)
    return Interval(successes / n, float(bounds.low), float(bounds.high), int(n))


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


def _rate(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"a discordant rate lies between 0 and 1, not at {value}")
    return float(value)
