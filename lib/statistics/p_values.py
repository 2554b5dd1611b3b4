"""Compute p-values from confidence intervals, and correct them for multiple tests."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lib.statistics.intervals import ClusteredMean, Interval

# Range of the p-values that are searched.
SMALLEST_P = 1e-6
LARGEST_P = 0.99


def smallest_level(reached: Callable[[Interval], Any], *part: Any) -> float:
    """Return the p-value of a statement about an interval: the smallest alpha at which
    the statement is true.

    reached: whether the statement is true of an interval. part: the arguments of
    `ClusteredMean`. The p-value is found by bisection on a logarithmic scale from 1e-6
    to 0.99, with a relative precision of a hundredth; it is 1 if the statement is not
    even true at 0.99.
    """
    mean = ClusteredMean(*part)
    below = SMALLEST_P
    above = LARGEST_P
    if not reached(mean.interval(above)):
        return 1.0
    while above / below > 1.01:
        middle = sqrt(below * above)
        if reached(mean.interval(middle)):
            above = middle
        else:
            below = middle
    return above


def holm(p_values: ArrayLike) -> np.ndarray:
    """Return p-values (M,) with Holm's correction, in the same order.

    Raises ValueError for a number that is no p-value.
    """
    p_values = np.asarray(p_values, dtype=float)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError("expected p-values between 0 and 1")
    order = p_values.argsort()
    factors = np.arange(p_values.size, 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.maximum.accumulate(factors * p_values[order]).clip(max=1)
    return adjusted
