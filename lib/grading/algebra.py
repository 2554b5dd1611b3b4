"""Compare two answers that no typed rule decides by algebra, with math-verify."""

import logging
import re
from fractions import Fraction

from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify
from sympy import And, Expr, FiniteSet, I, MatrixBase, Or, Rational
from sympy import preorder_traversal as parts_of
from sympy.logic.boolalg import Boolean

from lib.grading.numbers_and_units import SEPARATORS

# math-verify warns once per process that its time limits are off. They are off because
# they need the main thread and whole seconds, and grade an answer as wrong without a
# message when time runs out.
logging.getLogger("math_verify").setLevel(logging.ERROR)
# Units are removed before, because math-verify reads the letters of 2ab as a unit.
_NORMAL = NormalizationConfig(basic_latex=True, malformed_operators=True, nits=True)
BOX = [LatexExtractionConfig(boxed_match_priority=0, normalization_config=_NORMAL)]
EPSILON = Rational(1, 10**50)  # tolerance for numbers that are not fractions
# Powers with larger exponents are compared by their first digits: writing one out takes
# so long that the processor would decide whether time runs out.
MAX_EXPONENT = 10**5
# Values of the variables at which two expressions are compared; they are unlikely to be
# a root or a pole.
TEST_VALUES = [Rational(n, 7) for n in (-23, -11, -5, -2, 2, 3, 5, 9, 13, 37)]


class UnreadableGold(ValueError):
    """Raised if the gold answer cannot be parsed."""


def equal_by_algebra(gold: str, answer: str) -> bool:
    """Return whether two answers in the spelling of `spelled` are equal.

    Raises UnreadableGold if the gold answer cannot be parsed, and any exception of
    math-verify, including MemoryError.
    """
    gold, answer = _with_distinct_letters(gold, answer)
    expected = _parsed(gold)
    parsed = _parsed(answer)
    if not expected or isinstance(expected[0], str):
        raise UnreadableGold(gold)
    is_equal = _same(expected[0], parsed[0]) if parsed else None
    if is_equal is not None:
        return is_equal
    return verify(
        expected,
        parsed,
        allow_set_relation_comp=True,
        timeout_seconds=None,
        raise_on_error=True,
    )


# The name of a command or environment, or a letter (in the group).
_LETTER = re.compile(
    r"\\(?:begin|end|text|operatorname|mathbb) ?\{[^{}]*\}|\\[a-zA-Z]+|([a-zA-Z])"
)


def _with_distinct_letters(gold: str, answer: str) -> tuple[str, str]:
    """Return two answers in which capitals that also occur as small letters are
    replaced by letters that neither answer has, because math-verify ignores case.
    """
    letters = set(filter(None, _LETTER.findall(gold + " " + answer)))
    both = sorted(
        letter for letter in letters if letter.isupper() and letter.lower() in letters
    )
    if not both:
        return gold, answer
    taken = {letter.lower() for letter in letters}
    free = [letter for letter in "abcghjklmnpqrstuvwxyz" if letter not in taken]
    renamed = dict(zip(both, free, strict=False))

    def rename(match: re.Match[str]) -> str:
        return renamed.get(match[1], match[0])

    return _LETTER.sub(rename, gold), _LETTER.sub(rename, answer)


def _parsed(answer: str) -> list:
    """Return the parsed values of an answer; empty if it cannot be parsed.

    Decimals are read as fractions, because math-verify compares floats only to six
    decimals. 2(3) is a product, and i is the imaginary unit. Several inequalities are
    joined into one value.
    """
    text = SEPARATORS.sub(",", answer)
    text = re.sub(r"((?<![_^\d])\d+|(?<=\d)\)) ?(?=\(-?\d+\))", r"\1 \\cdot ", text)
    text = re.sub(r"(?<![\d.])\d*\.\d+(?![\d.])", _as_fraction, text)
    parsed = parse(rf"\boxed{{{text}}}", BOX, parsing_timeout=None, raise_on_error=True)
    # The names of other commands, such as \lfloor, are no words.
    words = re.sub(r"\\l(and|or)(?![a-zA-Z])|\\[a-zA-Z]+", r" \1 ", answer)
    is_and = "and" in words or r"\wedge" in answer
    is_or = "or" in words or r"\vee" in answer
    return [_sympified(value, is_and, is_or) for value in parsed]


def _as_fraction(decimal: re.Match[str]) -> str:
    numerator, denominator = Fraction(decimal[0]).as_integer_ratio()
    return rf"\frac{{{numerator}}}{{{denominator}}}"


def _sympified(value, is_and: bool, is_or: bool):
    """Return a parsed value without math-verify's special conventions.

    A comma between inequalities means "and", but "or" between those that exclude each
    other.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, FiniteSet) and all(isinstance(p, Boolean) for p in value):
        both = And(*value).as_set()
        is_joined = is_and or not (is_or or both.is_empty)
        return both if is_joined else Or(*value).as_set()
    letters = [letter for letter in value.free_symbols if letter.name == "i"]
    return value.xreplace(dict.fromkeys(letters, I)).replace(_is_odd_root, _real_root)


def _is_odd_root(part) -> bool:
    exponent = part.exp if part.is_Pow else Rational(1)
    return bool(part.is_Pow and part.base.is_negative and exponent.q % 2 == 1)


def _real_root(part) -> Expr:
    """Return the real value of an odd root; sympy returns a complex one."""
    return (-1) ** part.exp.p * (-part.base) ** part.exp


def _same(gold, answer) -> bool | None:
    """Return whether two matrices or expressions are equal; None for other types.

    Replaces the comparison of math-verify, which accepts a difference of 1e-15 and
    reads letters as words.
    """
    if isinstance(gold, MatrixBase) and isinstance(answer, MatrixBase):
        pairs = zip(gold.flat(), answer.flat(), strict=False)
        return gold.shape == answer.shape and all(_same(*pair) for pair in pairs)
    if not (isinstance(gold, Expr) and isinstance(answer, Expr)):
        return None
    letters = sorted(gold.free_symbols | answer.free_symbols, key=str)
    if not letters:
        return _same_number(gold, answer)

    # Equal if they agree wherever both are defined: sqrt(1/k) is 1/sqrt(k), and |x| is
    # not x.
    is_equal = None
    for first in range(len(TEST_VALUES)):
        values = TEST_VALUES[first:] + TEST_VALUES[:first]
        at = dict(zip(letters, values, strict=False))
        if _is_defined(gold, at) and _is_defined(answer, at):
            is_equal = _same_number(gold.subs(at), answer.subs(at))
            if not is_equal:
                break
    return is_equal


def _is_defined(value: Expr, at: dict) -> bool:
    """Return whether all parts of an expression are real and finite at these values."""
    parts = [part.subs(at) for part in parts_of(value)]
    return all(part.is_real and part.is_finite for part in parts)


def _same_number(gold: Expr, answer: Expr) -> bool:
    """Return whether two numbers are equal: exactly if they are fractions or infinite,
    otherwise, or with a huge power, within EPSILON.
    """
    if not (_has_huge_power(gold) or _has_huge_power(answer)):
        gold, answer = gold.doit(), answer.doit()
        are_finite = gold.is_finite and answer.is_finite
        if not are_finite or (gold.is_Rational and answer.is_Rational):
            return gold == answer
    first, second = gold.evalf(60), answer.evalf(60)
    return bool(abs(first - second) <= EPSILON * max(abs(first), abs(second)))


def _has_huge_power(value: Expr) -> bool:
    exponents = [part.exp for part in parts_of(value) if part.is_Pow]
    return any(one.is_real and abs(one.evalf()) > MAX_EXPONENT for one in exponents)
