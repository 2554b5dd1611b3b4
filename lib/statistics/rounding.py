"""Format a number with as many decimals as its interval justifies."""

from math import isfinite, isinf
from typing import Any

MOST_DECIMALS = 6  # to which an interval near 0 adds decimals
# Relative width: a narrower interval is rounding error, which differs between
# processors, and counts as none.
NARROWEST = 1e-5


def decimals_of(low: Any, high: Any, sign: str = "", usual: int | None = None) -> int:
    """Return how many decimals an interval justifies: half of its width has two
    significant digits, and a number without an interval has two decimals.

    usual: the number of decimals of a table's column, which is used instead, but drops
    at most one decimal. If the interval of a difference excludes 0, decimals are added
    until the printed interval excludes it, too, at most MOST_DECIMALS.
    """
    decimals = 2
    if low is None or high is None:
        return decimals
    half = (high - low) / 2
    if isfinite(half) and _has_width(low, high):
        exponent = int(f"{half:.1e}".split("e")[1])
        decimals = max(0, 1 - exponent)
    if usual is not None:
        decimals = max(usual, decimals - 1)
    nearest = 0  # to 0, of the bounds of an interval that excludes 0
    if high < 0:
        nearest = high
    elif low > 0 and sign:  # a positive number that is no difference always excludes 0
        nearest = low
    while nearest and round(nearest, decimals) == 0 and decimals < MOST_DECIMALS:
        decimals += 1
    return decimals


def _has_width(low: Any, high: Any) -> bool:
    """Return whether an interval is wider than NARROWEST."""
    largest = max(abs(low), abs(high))
    return high - low > NARROWEST * largest or isinf(largest)


def format_interval(
    estimate: Any, low: Any, high: Any, sign: str = "", usual: int | None = None
) -> str:
    """Format an estimate with its interval, all three with the decimals of
    `decimals_of`.

    The estimate is alone if it has no interval, or one without width. `sign` "+" adds a
    plus sign to numbers that are not negative; zero is never printed as -0.
    """
    decimals = decimals_of(low, high, sign, usual)
    text = f"{estimate:{sign}z.{decimals}f}"
    if low is None or high is None or not _has_width(low, high):
        return text
    return f"{text} [{low:{sign}z.{decimals}f}, {high:{sign}z.{decimals}f}]"
