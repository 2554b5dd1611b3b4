"""How a number is told: with as many decimals as its interval has a use for."""

from math import isfinite, isinf
from typing import Any

MOST_DECIMALS = 6  # whatever an end would need
# Of a number's size: an interval that is narrower is rounding, which differs between
# processors, and counts as none.
NARROWEST = 1e-5


def rounded(value: Any, low: Any, high: Any, sign: str = "") -> str:
    """Return a number with as many decimals as its interval has a use for.

    Half of the interval's width is told with two digits; a number without an interval
    has two decimals. That of a difference which lies beside 0 has as many more
    as show that.
    `sign` "+": also before what is not negative. A zero is never negative.
    """
    decimals = 2
    if low is not None and high is not None:
        half = (high - low) / 2
        if isfinite(half) and _has_width(low, high):
            exponent = int(f"{half:.1e}".split("e")[1])
            decimals = max(0, 1 - exponent)
        # Of differences, which may lie on either side of 0.
        nearest = high if high < 0 else max(low, 0) if sign else 0
        while nearest and round(nearest, decimals) == 0 and decimals < MOST_DECIMALS:
            decimals += 1
    return f"{value:{sign}z.{decimals}f}"


def _has_width(low: Any, high: Any) -> bool:
    """Say whether an interval is wider than NARROWEST."""
    largest = max(abs(low), abs(high))
    return high - low > NARROWEST * largest or isinf(largest)


def format_interval(estimate: Any, low: Any, high: Any, sign: str = "") -> str:
    """Return an estimate with its interval, all three rounded alike.

    It stands alone where it has no interval, or one without width.
    """
    text = rounded(estimate, low, high, sign)
    if low is None or high is None or not _has_width(low, high):
        return text
    low_text = rounded(low, low, high, sign)
    high_text = rounded(high, low, high, sign)
    return f"{text} [{low_text}, {high_text}]"
