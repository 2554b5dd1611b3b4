"""Decide whether data support a claim or contradict it.

A claim says that one or several numbers, its parts, lie in a range that is fixed in
advance. A part holds if its 95 % confidence interval lies inside the range. It is
refuted if its interval lies outside, at a level corrected for the number of parts
(Bonferroni). The verdict is

    supported      if every part holds,
    in part        if some parts hold and some are refuted,
    contradicted   if no part holds and some are refuted,
    undecided      otherwise, or with fewer than ENOUGH problems.

So if the truth lies at the edge of the range, wrong support and wrong contradiction
each have a probability of about 2.5 %; simulations check that it is below 5 %
(tests/claims/test_wrong_verdicts.py). The reported interval is always that of 95 %.
"""

from collections.abc import Mapping, Sized
from math import inf, isclose
from typing import NamedTuple

import numpy as np
import xarray as xr

from lib.statistics.intervals import (
    ALPHA,
    ENOUGH,
    ClusteredMean,
    Interval,
    cluster_ids,
    smallest_level,
)

# Parts whose distances to the range differ by less than this share are tied.
TIE_TOLERANCE = 0.01
# By label: the values of the problems, the problems' ids and the kind of the values,
# which are the arguments of `lib.statistics.intervals.interval`.
Parts = Mapping[str, tuple]


class Untestable(ValueError):
    """The reason why the evidence cannot test a claim."""


class Decision(NamedTuple):
    """A verdict with its deciding part, the least favourable one to the claim."""

    verdict: str
    part: str  # label of the deciding part
    interval: Interval  # the 95 % interval of the deciding part
    holds: list[str]  # labels of the parts that hold
    refuted: list[str]  # labels of the parts that are refuted


def parts_of(values: xr.DataArray) -> dict[str, tuple]:
    """Return the parts of a claim, given one network's values (component, problem).

    Each component is a part, but all components of the kind "largest" are one part
    together. Problems without a value are left out. Raises Untestable if a part has
    values of fewer than two clusters of problems.
    """
    kind = values.attrs.get("kind", "mean")
    all_problems = values.problem.values
    if kind == "largest":
        labelled = {f"best of {len(values)}": values.values.T}
    else:
        labelled = dict(
            zip(map(str, values.component.values), values.values, strict=True)
        )

    parts = {}
    for label, numbers in labelled.items():
        # (problem,), or (problem, component) for the kind "largest"
        is_known = np.isfinite(numbers).all(axis=tuple(range(1, numbers.ndim)))
        problems = all_problems[is_known]
        clusters = len(set(cluster_ids(problems)))
        if clusters < 2:
            raise Untestable(
                f"{label}: {len(problems)} problems of {clusters} templates are too few"
            )
        parts[label] = numbers[is_known], problems, kind
    return parts


def decide(parts: Parts, low: float = -inf, high: float = inf) -> Decision:
    """Return the verdict on a claim that all parts lie between low and high."""
    means = {label: ClusteredMean(*part) for label, part in parts.items()}
    intervals = {label: mean.interval() for label, mean in means.items()}
    holds: list[str] = []
    refuted: list[str] = []
    few = [label for label, interval in intervals.items() if interval.n < ENOUGH]
    if not few:  # a part with too few problems leaves the claim undecided
        alpha = ALPHA / len(parts)
        for label, mean in means.items():
            if lies_inside(intervals[label], low, high):
                holds.append(label)
            if lies_outside(mean.interval(alpha), low, high):
                refuted.append(label)

    verdict = verdict_of(holds, refuted, parts)
    decisive = {label: intervals[label] for label in few or refuted or parts}
    part = _least_favourable(decisive, low, high)
    return Decision(verdict, part, intervals[part], holds, refuted)


def verdict_of(
    holds: Sized, refuted: Sized, parts: Sized, enough: int | None = None
) -> str:
    """Return the verdict, given the parts and those of them that hold and are refuted.

    enough: the number of parts that suffice; None: all of them, and a claim of which
    some parts hold and some are refuted is true in part.
    """
    if len(holds) >= (enough or len(parts)):
        return "supported"
    if enough:
        left = len(parts) - len(refuted)
        return "contradicted" if left < enough else "undecided"
    if refuted:
        return "in part" if holds else "contradicted"
    return "undecided"


def _least_favourable(
    intervals: Mapping[str, Interval], low: float, high: float
) -> str:
    """Return the label of the part whose estimate lies least inside the range, or
    farthest outside it, in standard errors; the first one of a tie.
    """
    distances = {}
    for label, interval in intervals.items():
        # To the nearer bound; negative outside.
        distance = min(interval.estimate - low, high - interval.estimate)
        error = float(np.nan_to_num(interval.error))
        if error:
            distances[label] = distance / error
        else:
            distances[label] = inf * distance if distance else 0.0
    least = min(distances.values())
    ties = [
        label
        for label in distances
        if isclose(distances[label], least, rel_tol=TIE_TOLERANCE)
    ]
    return ties[0]


def lies_inside(interval: Interval, low: float, high: float) -> bool:
    """Return whether an interval lies completely inside a range."""
    return low < interval.low and interval.high < high


def lies_outside(interval: Interval, low: float, high: float) -> bool:
    """Return whether an interval lies completely below or above a range."""
    return interval.high < low or interval.low > high


def p_value(parts: Parts, low: float = -inf, high: float = inf) -> float:
    """Return the p-value of a verdict: the smallest two-sided level at which all parts
    hold or one is refuted.

    It is corrected for the number of parts, but not for the number of claims.
    """

    def holds(interval: Interval) -> bool:
        return lies_inside(interval, low, high)

    def is_refuted(interval: Interval) -> bool:
        return lies_outside(interval, low, high)

    support = max(smallest_level(holds, *part) for part in parts.values())
    refutation = min(smallest_level(is_refuted, *part) for part in parts.values())
    return min(support, len(parts) * refutation, 1.0)
