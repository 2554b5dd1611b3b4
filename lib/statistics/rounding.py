"""Format a number with as many decimals as its interval justifies."""

from math import isfinite, isinf
from typing import Any

MOST_DECIMALS = 6  # even if a bound would need more
# Relative width: a narrower interval is rounding error, which differs between
# processors, and counts as none.
NARROWEST = 1e-5


def rounded(value: Any, low: Any, high: Any, sign: str = "") -> str:
    """Format a number with as many decimals as its interval justifies.

    Half of the interval's width has two significant digits; a number without an
    interval has two decimals. If the interval of a difference excludes 0, decimals are
    added until the printed interval excludes it, too. `sign` "+" adds a plus sign to
    numbers that are not negative; zero is never printed as -0.
    """
    decimals = 2
    if low is not None and high is not None:
        half = (high - low) / 2
        if isfinite(half) and _has_width(low, high):
            exponent = int(f"{half:.1e}".split("e")[1])
            decimals = max(0, 1 - exponent)
        # Only for differences, which may be positive or negative.
        nearest = high if high < 0 else max(low, 0) if sign else 0
        while nearest and round(nearest, decimals) == 0 and decimals < MOST_DECIMALS:
            decimals += 1
    return f"{value:{sign}z.{decimals}f}"


def _has_width(low: Any, high: Any) -> bool:
    """Return whether an interval is wider than NARROWEST."""
    largest = max(abs(low), abs(high))
    return high - low > NARROWEST * largest or isinf(largest)


def format_interval(estimate: Any, low: Any, high: Any, sign: str = "") -> str:
    """Format an estimate with its interval, all three with the same decimals.

    The estimate is alone if it has no interval, or one without width.
    """
    text = rounded(estimate, low, high, sign)
    if low is None or high is None or not _has_width(low, high):
        return text
    low_text = rounded(low, low, high, sign)
    high_text = rounded(high, low, high, sign)
    return f"{text} [{low_text}, {high_text}]"
