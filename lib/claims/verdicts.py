"""The rule that decides a claim: where the interval of what was measured lies, against the range that is claimed.

A claim has one component or several, all of which must hold, and one range for them, fixed beforehand. Supported:
every component's 95 % interval lies inside the range. Contradicted: some component's lies outside of it, at a level
corrected for their number (Bonferroni). Undecided: neither, or fewer than ENOUGH problems. The intervals fit the kind
of the numbers (intervals.py). So either wrong verdict has a chance of about 2.5 % at the edge of the range, and is
held below rule.STATED (benchmarks/verdicts.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, isclose, sqrt

import numpy as np
from scipy import stats

from lib.claims.intervals import Component
from lib.claims.rule import ALPHA, ENOUGH

POWER = 0.8
TIED = (
    0.01  # of its distance to the range: components that are as unfavourable as the least favourable one, to a reader
)
FARTHEST = 100.0  # standard deviations: what lies farther, or never varies, is shown as this far
SMALLEST_P, LARGEST_P = 1e-6, 0.99  # between them a p-value is told


@dataclass(frozen=True)
class Decision:
    """A verdict with the component that decides it, the least favourable one, and its interval.

    That is the 95 % interval of what is supported, else the one corrected for the number of components. The margins are
    distances to the nearest end of the claimed range in standard deviations over problems, positive inside.
    """

    verdict: str
    component: str
    components: int
    effect: float
    low: float
    high: float
    n: int
    clusters: int  # templates of the n problems; n where they are independent
    constant: bool  # every problem gave the same
    margin: float
    margin_low: float
    margin_high: float
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
    shown = worst.narrow if verdict == "supported" else worst.wide
    found = worst.label, len(measured), worst.effect, *shown, worst.n, worst.clusters, not worst.deviation
    margin_low, margin_high = sorted(map(worst.standardised, shown))
    margins = worst.standardised(worst.effect), margin_low, margin_high
    margin_paper = None if paper is None else worst.standardised(paper)
    needed = n_deciding(worst.distance(worst.effect if paper is None else paper), worst.error * sqrt(worst.n))
    return Decision(verdict, *found, *margins, margin_paper, needed if verdict == "undecided" else None)


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


def _inside(interval: tuple[float, float], ends: tuple[float, float]) -> bool:
    return ends[0] < interval[0] and interval[1] < ends[1]


def _outside(interval: tuple[float, float], ends: tuple[float, float]) -> bool:
    return interval[1] < ends[0] or interval[0] > ends[1]


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
        sample = component.sample
        self.label, self.effect, self.ends = component.label, component.effect, ends
        self.n, self.clusters = len(sample.values), len(sample.sizes)
        best = sample.best
        self.error, self.deviation = best.moments[1], float(best.values.std(ddof=1)) if best.moments[1] else 0.0
        self.narrow, self.wide = component.interval(ALPHA), component.interval(ALPHA / count)

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
