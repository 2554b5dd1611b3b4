"""The rule that decides a claim: where the interval of what was measured lies, against the range that is claimed.

A claim has one component or several, all of which must hold, and one range for them, fixed beforehand. Supported:
every component's 95 % interval lies inside the range. Contradicted: some component's lies outside of it, at a level
corrected for their number (Bonferroni). Undecided: neither, or fewer than ENOUGH problems. The intervals are those of
lib.statistics; shown is always the one of 95 %. So either wrong verdict has a chance of about 2.5 % at the edge of the
range, and is held below rule.STATED (benchmarks/verdicts.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, isclose, isnan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from lib.statistics import ALPHA, ENOUGH, Interval, clusters_of, interval

POWER = 0.8
TIED = 0.01  # of the distance to the range: components this near the least favourable are as unfavourable to a reader
FARTHEST = 100.0  # standard deviations: what lies farther, or never varies, is shown as this far
SMALLEST_P, LARGEST_P = 1e-6, 0.99  # between them a p-value is told


@dataclass(frozen=True)
class Component:
    """One of the numbers of a claim: values (N,), or (N, C) of the kind largest; NaN where a problem has none."""

    label: str
    values: np.ndarray
    kind: str = "mean"  # of `lib.statistics`
    problems: ArrayLike | None = None  # ids of the N problems; None: all independent

    @cached_property
    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """The values without NaN, and their problems."""
        values = np.asarray(self.values, dtype=float)
        kept = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        return values[kept], np.asarray(range(len(values)) if self.problems is None else self.problems)[kept]

    def interval(self, alpha: float) -> Interval:
        """Return its interval; raises ValueError where fewer than two independent problems have a value."""
        values, problems = self.known
        clusters = len(set(clusters_of(problems)))
        if clusters < 2:
            raise ValueError(f"{self.label}: {len(values)} problems of {clusters} templates are too few")
        return interval(values, problems, self.kind, alpha)


@dataclass(frozen=True)
class Decision:
    """A verdict with the component that decides it, the least favourable one, and its 95 % interval.

    The margins are distances to the nearest end of the claimed range in standard deviations over problems, positive
    inside. Ends and their margins are None where the problems are too few to say.
    """

    verdict: str
    component: str
    components: int
    effect: float
    low: float | None
    high: float | None
    n: int
    clusters: int  # templates of the n problems; n where they are independent
    constant: bool  # every problem gave the same
    margin: float
    margin_low: float | None
    margin_high: float | None
    margin_paper: float | None
    needed: int | None  # problems that would decide with 80 % power; None if no number would


def decide(components: Sequence[Component], low: float | None, high: float | None, paper=None) -> Decision:
    """Return the verdict on values that are claimed to lie strictly between low and high (None: no end there).

    `needed` is the n that would show `paper`, the value it reports, or, without it, what was measured. Raises
    ValueError for a component with fewer than two independent values.
    """
    ends = -inf if low is None else low, inf if high is None else high
    measured = [_Measured(component, ends, len(components)) for component in components]
    verdict, candidates = "undecided", measured
    if few := [m for m in measured if m.n < ENOUGH]:
        candidates = few
    elif all(_inside(m.narrow, ends) for m in measured):
        verdict = "supported"
    elif outside := [m for m in measured if _outside(m.wide, ends)]:
        verdict, candidates = "contradicted", outside
    least = min(m.slack for m in candidates)
    worst = next(m for m in candidates if isclose(m.slack, least, rel_tol=TIED))
    needed = n_deciding(worst.distance(worst.effect if paper is None else paper), worst.error * sqrt(worst.n))
    low_end, high_end = (None if isnan(end) else end for end in (worst.narrow.low, worst.narrow.high))
    margins = sorted(worst.standardised(end) for end in (low_end, high_end) if end is not None) or (None, None)
    return Decision(
        verdict,
        worst.label,
        len(measured),
        worst.effect,
        low_end,
        high_end,
        worst.n,
        worst.clusters,
        constant=not worst.deviation,
        margin=worst.standardised(worst.effect),
        margin_low=margins[0],
        margin_high=margins[1],
        margin_paper=None if paper is None else worst.standardised(paper),
        needed=needed if verdict == "undecided" else None,
    )


def p_value(components: Sequence[Component], low: float | None, high: float | None) -> float:
    """Return the smallest level, two-sided, at which either verdict is reached, for a correction over many claims."""
    ends, count = (-inf if low is None else low, inf if high is None else high), len(components)
    supporting = max(_level(component, _inside, ends) for component in components)
    against = min(_level(component, _outside, ends) for component in components)
    return min(supporting, count * against, 1.0)


def _level(component: Component, reached: Callable, ends: tuple[float, float]) -> float:
    """Return the smallest level whose interval reaches a verdict, by halving a logarithmic scale; 1 if none does."""
    low, high = SMALLEST_P, LARGEST_P
    if not reached(component.interval(high), ends):
        return 1.0
    while high / low > 1.01:
        middle = sqrt(low * high)
        low, high = (low, middle) if reached(component.interval(middle), ends) else (middle, high)
    return high


def _inside(found: Interval, ends: tuple[float, float]) -> bool:
    return ends[0] < found.low and found.high < ends[1]


def _outside(found: Interval, ends: tuple[float, float]) -> bool:
    return found.high < ends[0] or found.low > ends[1]


def n_deciding(distance: float, deviation: float, power: float = POWER) -> int | None:
    """Return how many problems put the interval on one side of an end `distance` away with that power; None at 0.

    n = ((z(1 - alpha/2) + z(power)) sd / distance)^2 + z(1 - alpha/2)^2 / 2 for one component, the last term for
    Student's distribution instead of the normal one (Guenther 1981, Am. Stat. 35:243).
    """
    if distance == 0:
        return None
    z_alpha, z_power = stats.norm.ppf(1 - ALPHA / 2), stats.norm.ppf(power)
    return ceil(((z_alpha + z_power) * deviation / distance) ** 2 + z_alpha**2 / 2)


class _Measured:
    """A component against the ends of a range, with the interval that supports and the one that contradicts."""

    def __init__(self, component: Component, ends: tuple[float, float], count: int):
        self.narrow, self.wide = component.interval(ALPHA), component.interval(ALPHA / count)
        self.label, self.ends, self.effect = component.label, ends, float(self.narrow.estimate)
        self.n, self.clusters = self.narrow.n, self.narrow.clusters
        self.error = float(np.nan_to_num(self.narrow.error))  # NaN: of too few problems, which decide nothing
        values = component.known[0].reshape(self.n, -1)
        self.deviation = float(values[:, values.mean(0).argmax()].std(ddof=1)) if self.error else 0.0

    def distance(self, value: float) -> float:
        """Return how far inside the range a value lies; negative outside."""
        return min(value - self.ends[0], self.ends[1] - value)

    @property
    def slack(self) -> float:
        """How many standard errors the effect lies inside the range."""
        distance = self.distance(self.effect)
        return distance / self.error if self.error else inf * distance if distance else 0.0

    def standardised(self, value: float) -> float:
        """Return a value's distance to the end that is nearest to the effect, in standard deviations."""
        to_low = self.effect - self.ends[0] <= self.ends[1] - self.effect
        distance = value - self.ends[0] if to_low else self.ends[1] - value
        if abs(distance) > FARTHEST * self.deviation:
            return float(np.sign(distance)) * FARTHEST
        return distance / self.deviation if distance else 0.0
