"""The rule that decides a claim.

A claim has one or several parts and one range for them, fixed in advance. A part holds
if its 95 % interval lies inside the range. It is refuted if its interval lies outside
at a level corrected for the number of parts (Bonferroni). The verdict is

    supported      if every part holds,
    in part        if some parts hold and some are refuted,
    contradicted   if no part holds and some are refuted,
    undecided      otherwise, or with fewer than ENOUGH problems.

So a wrong verdict of either kind has a probability of about 2.5 % at the edge of the
range; simulations check that it is below MAX_ERROR_RATE
(tests/claims/test_wrong_verdicts.py). The reported interval is always that of 95 %.
"""

from collections.abc import Mapping
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
)
from lib.statistics.p_values import smallest_level

# The simulated rate of a wrong verdict of either kind must be below this.
MAX_ERROR_RATE = 0.05
# Parts whose distances to the range differ by less than this share are tied.
TIE_TOLERANCE = 0.01
# By label: the values of the problems, their ids and the kind, for `interval`.
Parts = Mapping[str, tuple]


class Untestable(ValueError):
    """The reason why the evidence cannot test a claim."""


class Decision(NamedTuple):
    """A verdict with the part that decides it, the least favourable one."""

    verdict: str
    part: str
    interval: Interval  # of 95 %, of that part
    holds: list[str]  # the parts inside the range
    refuted: list[str]


def parts_of(values: xr.DataArray) -> dict[str, tuple]:
    """Return the parts of a claim from one network's values (component, problem).

    All components of the kind "largest" are one part. Raises Untestable for a part with
    values of fewer than two independent problems.
    """
    kind = values.attrs.get("kind", "mean")
    every_problem = values.problem.values
    if kind == "largest":
        labelled = {f"best of {len(values)}": values.values.T}
    else:
        labelled = dict(
            zip(map(str, values.component.values), values.values, strict=True)
        )

    parts = {}
    for label, numbers in labelled.items():
        is_known = np.isfinite(numbers).reshape(len(numbers), -1).all(1)
        problems = every_problem[is_known]
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
    few = [label for label, shown in intervals.items() if shown.n < ENOUGH]
    if not few:  # a part of too few problems leaves the claim undecided
        alpha = ALPHA / len(parts)
        for label, mean in means.items():
            if lies_inside(intervals[label], low, high):
                holds.append(label)
            if lies_outside(mean.interval(alpha), low, high):
                refuted.append(label)

    if len(holds) == len(parts):
        verdict = "supported"
    elif refuted:
        verdict = "in part" if holds else "contradicted"
    else:
        verdict = "undecided"
    decisive = {label: intervals[label] for label in few or refuted or parts}
    part = _least_favourable(decisive, low, high)
    return Decision(verdict, part, intervals[part], holds, refuted)


def _least_favourable(
    intervals: Mapping[str, Interval], low: float, high: float
) -> str:
    """Return the part whose estimate lies least inside the range, or most outside it.

    Distances are in standard errors; of tied parts it is the first.
    """
    slacks = {}
    for label, shown in intervals.items():
        distance = distance_inside(shown.estimate, low, high)
        error = float(np.nan_to_num(shown.error))
        if error:
            slacks[label] = distance / error
        else:
            slacks[label] = inf * distance if distance else 0.0
    least = min(slacks.values())
    ties = [
        label
        for label in slacks
        if isclose(slacks[label], least, rel_tol=TIE_TOLERANCE)
    ]
    return ties[0]


def distance_inside(value: float, low: float, high: float) -> float:
    """Return the distance from a value to the nearer end of a range, negative for one
    outside.
    """
    return min(value - low, high - value)


def lies_inside(shown: Interval, low: float, high: float) -> bool:
    """Return whether an interval lies completely inside a range."""
    return low < shown.low and shown.high < high


def lies_outside(shown: Interval, low: float, high: float) -> bool:
    """Return whether an interval lies completely below or above a range."""
    return shown.high < low or shown.low > high


def p_value(parts: Parts, low: float = -inf, high: float = inf) -> float:
    """Return the p-value of a verdict: the smallest two-sided level at which all parts
    hold or one is refuted. It is not yet corrected for the number of claims.
    """

    def holds(shown: Interval) -> bool:
        return lies_inside(shown, low, high)

    def fails(shown: Interval) -> bool:
        return lies_outside(shown, low, high)

    supporting = max(smallest_level(holds, *part) for part in parts.values())
    against = min(smallest_level(fails, *part) for part in parts.values())
    return min(supporting, len(parts) * against, 1.0)
