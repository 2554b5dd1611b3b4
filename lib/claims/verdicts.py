"""The rule that decides a claim: where the interval of what was measured lies, against the range that is claimed.

A claim has one component or several, all of which must hold, and one range for them, fixed beforehand. Supported:
every component's 95 % interval lies inside the range. Contradicted: some component's lies outside of it, at a level
corrected for their number (Bonferroni). Undecided: neither. Intervals are Student's over problems, extended where the
values are skewed. So either wrong verdict has a chance of about 2.5 % at the edge of the range, and is held below
STATED.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from scipy import stats

ALPHA = 0.05  # two-sided: half of it for either wrong verdict
STATED = 0.05  # the rate of either wrong verdict that the tests hold every rule to
POWER = 0.8
FARTHEST = 100.0  # standard deviations: what lies farther, or never varies, is shown as this far
VERDICTS = ("supported", "contradicted", "undecided")


@dataclass(frozen=True)
class Component:
    """One of the numbers of a claim: a value per problem (N,), which may be NaN, and what it is called."""

    label: str
    values: np.ndarray


@dataclass(frozen=True)
class Decision:
    """A verdict with the component that decides it, the least favourable one; `margin` and its ends are standardised.

    Standardised: distance to the nearest end of the claimed range in standard deviations over problems, positive
    inside. `needed`: problems that would decide with 80 % power, None if no number would. Supported shows the 95 %
    interval, the other verdicts the one corrected for the number of components.
    """

    verdict: str
    component: str
    components: int
    effect: float
    low: float
    high: float
    n: int
    margin: float
    margin_low: float
    margin_high: float
    margin_paper: float | None
    needed: int | None


def decide(components: Sequence[Component], low: float | None, high: float | None, paper=None) -> Decision:
    """Return the verdict on values that are claimed to lie strictly between low and high (None: no end there).

    `paper` is the value the paper reports: `needed` is the n that would show it, or, without it, what was measured.
    Raises ValueError for a component with fewer than two values.
    """
    measured = [_Measured.of(component, len(components)) for component in components]
    ends = (-inf if low is None else low, inf if high is None else high)
    if all(ends[0] < m.narrow[0] and m.narrow[1] < ends[1] for m in measured):
        verdict, candidates = "supported", measured
    elif outside := [m for m in measured if m.wide[1] < ends[0] or m.wide[0] > ends[1]]:
        verdict, candidates = "contradicted", outside
    else:
        verdict, candidates = "undecided", measured
    worst = min(candidates, key=lambda m: m.slack(ends))
    shown = worst.narrow if verdict == "supported" else worst.wide
    margins = [worst.standardised(x, ends) for x in (worst.mean, *shown)]
    needed = n_deciding(worst.distance(worst.mean if paper is None else paper, ends), worst.deviation)
    return Decision(
        verdict,
        worst.label,
        len(measured),
        worst.mean,
        *shown,
        worst.n,
        margins[0],
        *sorted(margins[1:]),
        None if paper is None else worst.standardised(paper, ends),
        needed if verdict == "undecided" else None,
    )


def n_deciding(distance: float, deviation: float, power: float = POWER) -> int | None:
    """Return how many problems put the interval on one side of an end `distance` away with that power.

    n = ((z(1 - alpha/2) + z(power)) sd / distance)^2 + z(1 - alpha/2)^2 / 2 for one component, the last term for
    Student's instead of the normal distribution (Guenther 1981, Am. Stat. 35:243); None at distance 0.
    """
    if distance == 0:
        return None
    z_alpha, z_power = stats.norm.ppf(1 - ALPHA / 2), stats.norm.ppf(power)
    return ceil(((z_alpha + z_power) * deviation / distance) ** 2 + z_alpha**2 / 2)


@functools.cache
def _quantile(alpha: float, n: int) -> float:
    """Return Student's two-sided quantile for n values; slow, and asked for again and again."""
    return float(stats.t.ppf(1 - alpha / 2, n - 1))


@dataclass(frozen=True)
class _Measured:
    """A component's mean over problems, with the interval that supports and the one that contradicts.

    Student's, and longer on the side of the longer tail by the first-order correction for skewness (Johnson 1978, JASA
    73:536, at the end of the interval); never shorter, since few changed answers give a skewness by chance alone.
    """

    label: str
    mean: float
    deviation: float
    n: int
    narrow: tuple[float, float]
    wide: tuple[float, float]

    @classmethod
    def of(cls, component: Component, count: int) -> "_Measured":
        values = np.asarray(component.values, dtype=float)
        values = values[np.isfinite(values)]
        if len(values) < 2:
            raise ValueError(f"{component.label}: {len(values)} problems are too few")
        mean, deviation, n = float(values.mean()), float(values.std(ddof=1)), len(values)
        if np.ptp(values) <= 1e-12 * np.abs(values).max():
            deviation = 0.0  # rounding is no spread
        apart = values - mean
        skew = float((apart**3).mean() / (apart**2).mean() ** 1.5) if deviation else 0.0
        intervals = []
        for alpha in (ALPHA, ALPHA / count):
            t = _quantile(alpha, n)
            half, longer = t * deviation / sqrt(n), skew * deviation * (1 + 2 * t**2) / (6 * n)
            intervals.append((mean - half + min(longer, 0), mean + half + max(longer, 0)))
        return cls(component.label, mean, deviation, n, *intervals)

    def distance(self, value: float, ends: tuple[float, float]) -> float:
        """Return how far inside the range a value lies; negative outside."""
        return min(value - ends[0], ends[1] - value)

    def slack(self, ends: tuple[float, float]) -> float:
        """Return how many standard errors the mean lies inside the range."""
        error = self.deviation / sqrt(self.n)
        distance = self.distance(self.mean, ends)
        return distance / error if error else inf * distance if distance else 0.0

    def standardised(self, value: float, ends: tuple[float, float]) -> float:
        """Return a value's distance to the end that is nearest to the mean, in standard deviations."""
        to_low = self.mean - ends[0] <= ends[1] - self.mean
        distance = value - ends[0] if to_low else ends[1] - value
        if abs(distance) > FARTHEST * self.deviation:
            return float(np.sign(distance)) * FARTHEST
        return distance / self.deviation if distance else 0.0
