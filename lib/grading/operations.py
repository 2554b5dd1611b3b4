r"""Whether an answer is worked out: `8 + 4` equals 12, and says no more than the question did.

Fractions, roots, multiples of \pi and i, units, percents and powers of ten write a number; sums, products, powers,
factorials and functions of numbers are still to be carried out.
"""

import re

from lib.grading.normalise import clean
from lib.grading.quantity import parse_number, split_unit
from lib.grading.rules import value_of

_NUMBER = re.compile(r"(?:[\d\s.{}\[\]/-]|\\(?:frac|sqrt|pi|overline)(?![a-zA-Z])|(?<![a-zA-Z])i(?![a-zA-Z]))+")
# What may stand between a number and the root, \pi or i that it multiplies.
_MULTIPLE = re.compile(r"(?<=[\d}]) ?(?:\\cdot|\\times|\*) ?(?=\\sqrt|\\pi|i(?![a-zA-Z]))")
_OPERATION = re.compile(
    r"(?<=[^\s{(\[^]) ?[+-]"  # a sum; a sign stands at the beginning
    r"|\\(?:cdot|times|div|ast|pm)(?![a-zA-Z])|[*!|:÷]|/[^/]*/"
    r"|(?<=[\d)}i]) ?\^(?! ?\{? ?\\circ)"  # a power
    r"|(?<=[\d)}]) ?\(|\) ?(?=[\d\\])"  # factors side by side
    r"|\\(?:gcd|lcm|[dt]?binom|log|ln|exp|sin|cos|tan|sum|prod|max|min|lfloor|lceil|lvert|b?mod|pmod|operatorname)"
    r"|(?<![a-zA-Z\\])[a-zA-Z]+(?:_\w)? ?\("  # a function by its name
    r"|(?<![a-zA-Z])(?:gcd|lcm|mod|plus|minus|times|divided)(?![a-zA-Z])"
)


def evaluated(gold: str, extracted: str | None) -> bool:
    """Return False when the gold answer is a number and no side of the extracted one is worked out. About 0.1 ms."""
    if extracted is None or not _is_number(clean(gold)):
        return True
    sides = re.split(r"=|\\approx(?![a-zA-Z])", value_of(clean(extracted)))
    return any(not _holds_operation(side) for side in sides if re.search(r"\d|\\pi", side) or len(sides) == 1)


def _is_number(cleaned: str) -> bool:
    value = split_unit(value_of(cleaned))[0]
    written = _NUMBER.fullmatch(value) is not None and not _holds_operation(value)
    return written or parse_number(value) is not None


def _holds_operation(text: str) -> bool:
    value = split_unit(text.strip())[0]
    return parse_number(value) is None and _OPERATION.search(_MULTIPLE.sub("", value)) is not None
