"""Intervals of a claim's numbers over problems, by the kind of the numbers, at any level.

    mean        any number per problem: Student's, extended where the values are skewed
    share       right or wrong, 100 or 0: Clopper and Pearson's exact interval
    difference  paired right or wrong, 100, 0 or -100: Tango's score interval, which reaches 0 unless the exact McNemar
                test rejects 0 too
    largest     a column per alternative: their largest mean, against what choosing it gives by chance (max-T)

Problems of one template are not independent. With clusters the first is cluster-robust, a share counts a template once,
and a difference reaches as far as the first would.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, floor

import numpy as np
from scipy import stats

from lib.evaluation.samples import largest_of_flipped
from lib.statistics import clopper_pearson, tango

POINTS = 100  # shares and differences are in percent and its points


@dataclass(frozen=True)
class Component:
    """One of the numbers of a claim: values (N,), or (N, C) of the kind largest; NaN where a problem has none."""

    label: str
    values: np.ndarray
    kind: str = "mean"
    clusters: Sequence[str] | None = None

    @cached_property
    def sample(self) -> "Sample":
        """What is left without NaN; raises ValueError where that is less than two independent problems."""
        values = np.asarray(self.values, dtype=float)
        kept = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        clusters = np.arange(kept.sum())
        if self.clusters is not None:
            clusters = np.unique(np.asarray(self.clusters)[kept], return_inverse=True)[1]
        if len(set(clusters)) < 2:
            raise ValueError(f"{self.label}: {kept.sum()} problems of {len(set(clusters))} templates are too few")
        return Sample(values[kept], clusters)

    @property
    def effect(self) -> float:
        """The mean over problems, of the kind largest that of the best column."""
        return float(self.sample.best.values.mean())

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the ends that miss the truth with a chance of alpha / 2 each."""
        return RULES[self.kind](self.sample, alpha)


@dataclass(frozen=True)
class Sample:
    """Values of a component, (N,) or (N, C), and a number per problem that says its cluster, counted from 0."""

    values: np.ndarray
    clusters: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """Problems of each cluster, (G,)."""
        return np.bincount(self.clusters)

    @cached_property
    def columns(self) -> "list[Sample]":
        """Each column as a sample of its own."""
        return [Sample(column, self.clusters) for column in self.values.T] if self.values.ndim > 1 else [self]

    @property
    def best(self) -> "Sample":
        """The column with the largest mean."""
        return max(self.columns, key=lambda column: column.values.mean())

    @cached_property
    def moments(self) -> tuple[float, float, float, float]:
        """Mean, standard error, third cumulant of the mean in standard errors, degrees of freedom, of values (N,).

        Cluster-robust (CR2; Bell and McCaffrey 2002, Survey Methodology 28:169); without clusters they are Student's.
        """
        values, n, sizes = self.values, len(self.values), self.sizes.astype(float)
        mean, weights = values.mean(), 1 / (1 - sizes / n)
        if np.ptp(values) <= 1e-12 * np.abs(values).max():  # rounding is no spread
            return float(mean), 0.0, 0.0, float(n - 1)
        sums = np.bincount(self.clusters, values - mean)
        error = float(np.sqrt((weights * sums**2).sum()) / n)
        skew = float((sums**3).sum() / (sums**2).sum() ** 1.5) if sums.any() else 0.0
        return float(mean), error, skew, _freedom(tuple(self.sizes))


@lru_cache
def _freedom(sizes: tuple[int, ...]) -> float:
    """Return the degrees of freedom of a mean's error from clusters of these sizes; their number less 1 if equal."""
    shares = np.array(sizes) / sum(sizes)
    apart = np.eye(len(sizes)) - shares  # cluster effects less their mean over problems
    covariance = shares[:, None] * (apart @ apart.T) * shares
    weights = 1 / (1 - shares)
    return float((weights * np.diag(covariance)).sum() ** 2 / (weights @ covariance**2 @ weights))


@lru_cache(maxsize=10_000)
def _quantile(alpha: float, freedom: float) -> float:
    """Return Student's two-sided quantile; slow, and asked for again and again."""
    return float(stats.t.ppf(1 - alpha / 2, freedom))


def _mean(sample: Sample, alpha: float) -> tuple[float, float]:
    """Return Student's interval, longer on the side of the longer tail: by twice Johnson's correction (JASA 73:536).

    Twice, since few values show less skewness than their distribution has; never shorter, since chance gives some.
    """
    mean, error, skew, freedom = sample.moments
    t = _quantile(alpha, freedom)
    longer = 2 * skew * error * (1 + 2 * t**2) / 6
    return mean - t * error + min(longer, 0), mean + t * error + max(longer, 0)


def _share(sample: Sample, alpha: float) -> tuple[float, float]:
    """Return the exact interval of as many answers as there would be if a template gave but one (Kish)."""
    n = len(sample.values)
    independent = n**2 // int((sample.sizes**2).sum())
    right = float(sample.values.sum()) / POINTS * independent / n
    fewest, most = (clopper_pearson(count, independent, 1 - alpha) for count in (floor(right), ceil(right)))
    return POINTS * fewest.low, POINTS * most.high


def _difference(sample: Sample, alpha: float) -> tuple[float, float]:
    more, less, n = int((sample.values > 0).sum()), int((sample.values < 0).sum()), len(sample.values)
    low, high = _paired(less, more, n, alpha)
    if len(sample.sizes) == n:
        return low, high
    ends = _mean(sample, alpha)
    return min(low, ends[0]), max(high, ends[1])


@lru_cache(maxsize=10_000)
def _paired(less: int, more: int, n: int, alpha: float) -> tuple[float, float]:
    found = tango(less, more, n, 1 - alpha)
    low, high = POINTS * found.low, POINTS * found.high
    if more + less and stats.binomtest(more, more + less).pvalue <= alpha:
        return low, high
    return min(low, 0.0), max(high, 0.0)


def _largest(sample: Sample, alpha: float) -> tuple[float, float]:
    """Return the largest mean less what chance gives, and the highest end of any column's own interval."""
    sums = np.stack([np.bincount(sample.clusters, column) for column in sample.values.T], 1)  # (G, C)
    chance = np.quantile(largest_of_flipped(sums, 0) / len(sample.values), 1 - alpha / 2)
    return float(sample.best.values.mean() - chance), max(_mean(column, alpha)[1] for column in sample.columns)


RULES = {"mean": _mean, "share": _share, "difference": _difference, "largest": _largest}
