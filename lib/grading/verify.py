r"""Algebraic equality by math-verify, to be called only where the process may be killed.

Its own time limits are off: they count whole seconds, need the main thread and end as a silent "wrong".
"""

import logging
import re
from functools import lru_cache

from math_verify import LatexExtractionConfig, parse, verify
from sympy import I

from lib.grading.shortcuts import Parsed, proved

# It warns, once per process, that time limits are off.
logging.getLogger("math_verify").setLevel(logging.ERROR)

_BOX_FIRST = [LatexExtractionConfig(boxed_match_priority=0)]
# The parser reads 2(3) as a mixed number, 5.
_PRODUCT = re.compile(r"((?<![_^\d])\d+|(?<=\d)\)) ?(?=\(-?\d+\))")
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])")


# The samples of one problem give the same few answers again and again.
@lru_cache(maxsize=4096)
def equal_by_algebra(gold: str, answer: str) -> tuple[bool, str]:
    """Compare two cleaned answers; raises whatever math-verify raises, MemoryError included."""
    expected, given = _parse(gold), _parse(answer)
    correct = proved(expected[0], given[0]) if expected and given else False
    if correct is None:
        options = {"allow_set_relation_comp": True, "timeout_seconds": None, "raise_on_error": True}
        correct = bool(verify(expected, given, **options))
    return correct, "math-verify"


@lru_cache(maxsize=4096)
def _parse(answer: str) -> list[Parsed]:
    r"""Parse an answer: decimals exact, for floats are compared to six places only, and `i` imaginary."""
    exact = _DECIMAL.sub(
        lambda d: rf"\frac{{{int(d[1] + d[2])}}}{{{10 ** len(d[2])}}}", _PRODUCT.sub(r"\1 \\cdot ", answer)
    )
    found = parse(rf"\boxed{{{exact}}}", _BOX_FIRST, parsing_timeout=None, raise_on_error=True)
    # The parser leaves i a real variable: replaced, (1+i)(1-i) is 2.
    return [
        one if isinstance(one, str) else one.xreplace({i: I for i in one.free_symbols if i.name == "i"})
        for one in found
    ]
