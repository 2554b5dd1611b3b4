"""Small counts, ranges and shares, as a sentence has them."""

from collections.abc import Iterable

COUNTS = ("none", "one", "two", "three", "four", "five", "six", "seven")


def in_words(count: int) -> str:
    """Return a small count as a word, a larger one in digits."""
    return COUNTS[count] if count < len(COUNTS) else str(count)


def some_models(count: int) -> str:
    """Return so many models, as "one model" or "three models"."""
    return f"{in_words(count)} {'model' if count == 1 else 'models'}"


def of_models(count: int, total: int) -> str:
    """Return in how many of some models something was seen."""
    if total == 1:
        return "the one model" if count else "none of the models"
    if total == 2 and not count:
        return "neither of the two models"
    if count == total:
        return f"all {in_words(total)} models"
    return f"{in_words(count)} of the {in_words(total)} models"


def range_of(values: Iterable[float], digits: int = 2) -> str:
    """Return the lowest and the highest of some numbers, as "0.54 to 0.61"."""
    values = list(values)
    low = f"{min(values):.{digits}f}"
    high = f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"
