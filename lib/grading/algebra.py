"""Compare by algebra, with math-verify, two answers that no typed rule tells apart.

It may take any time and memory: `pool` calls it, in a process that may be killed.
"""

import logging
import re
from fractions import Fraction
from functools import lru_cache

from math_verify import LatexExtractionConfig, parse, verify
from sympy import And, Expr, FiniteSet, Ge, Gt, I, Le, Lt, Or, Symbol, simplify

from lib.grading.equal import SEPARATORS

# math-verify warns, once per process, that its time limits are off: they count whole
# seconds, need the main thread and end as a silent "wrong".
logging.getLogger("math_verify").setLevel(logging.ERROR)


# The samples of one problem give the same few answers again and again.
@lru_cache(maxsize=4096)
def equal_by_algebra(gold: str, answer: str) -> bool:
    """Compare what `settle` left.

    Raises whatever math-verify raises, MemoryError included.
    """
    expected = _parse(gold)
    parsed = _parse(answer)
    # math-verify compares a lone letter by name only, and takes abc for a word; 2x - x
    # is x all the same.
    if expected and parsed and isinstance(expected[0], Symbol):
        letter = expected[0]
        term = parsed[0]
        if isinstance(term, Expr) and term.free_symbols == {letter}:
            return simplify(letter - term) == 0
    return verify(
        expected,
        parsed,
        allow_set_relation_comp=True,
        timeout_seconds=None,
        raise_on_error=True,
    )


@lru_cache(maxsize=4096)
def _parse(answer: str) -> list:
    """Parse an answer with exact decimals, for floats are compared to six places only,
    and 2(3) as a product.
    """
    text = SEPARATORS.sub(",", answer)
    text = re.sub(r"((?<![_^\d])\d+|(?<=\d)\)) ?(?=\(-?\d+\))", r"\1 \\cdot ", text)
    text = re.sub(r"(?<![\d.])\d*\.\d+(?![\d.])", _as_fraction, text)
    parsed = parse(
        rf"\boxed{{{text}}}",
        [LatexExtractionConfig(boxed_match_priority=0)],
        parsing_timeout=None,
        raise_on_error=True,
    )
    joined = And if re.search(r"and|\\land|\\wedge", answer) else Or
    return [_sympified(value, joined) for value in parsed]


def _as_fraction(decimal: re.Match[str]) -> str:
    numerator, denominator = Fraction(decimal[0]).as_integer_ratio()
    return rf"\frac{{{numerator}}}{{{denominator}}}"


def _sympified(value, joined: type[And] | type[Or]):
    """Return what math-verify parsed, with several inequalities joined and i the
    imaginary unit.
    """
    if isinstance(value, str):
        return value
    inequalities = Ge | Gt | Le | Lt | And
    if isinstance(value, FiniteSet) and all(isinstance(p, inequalities) for p in value):
        return joined(*value).as_set()
    letters = [letter for letter in value.free_symbols if letter.name == "i"]
    return value.xreplace(dict.fromkeys(letters, I))
