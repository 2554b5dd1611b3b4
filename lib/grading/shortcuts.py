"""Cheap proofs that two parsed answers are equal or different, tried before algebra simplifies them."""

from math import isfinite
from zlib import crc32

from sympy import Basic, Eq, Expr, Limit, MatrixBase, Poly, PolynomialError, Rational, Symbol, simplify
from sympy.concrete.expr_with_limits import ExprWithLimits

Parsed = Basic | MatrixBase | str


def proved(gold: Parsed, answer: Parsed) -> bool | None:
    """Return whether two answers are equal when a shortcut proves it either way, else None."""
    if isinstance(gold, Eq) and isinstance(answer, Eq):
        return _same_line(gold, answer)
    if not (isinstance(gold, Expr) and isinstance(answer, Expr)):
        return None
    if isinstance(gold, Symbol) or isinstance(answer, Symbol):
        # math-verify compares a lone letter by name only, and takes abc for a word; 2x - x is x all the same.
        same_letters = gold.free_symbols == answer.free_symbols
        return True if same_letters and simplify(gold - answer) == 0 else None
    return False if _differ_at_a_point(gold, answer) else None


def _same_line(gold: Eq, answer: Eq) -> bool | None:
    """Compare two equations of lines or planes, equal up to a factor; None for other equations."""
    letters = sorted(gold.free_symbols | answer.free_symbols, key=str)
    try:
        sides = [Poly((side.lhs - side.rhs).doit(), *letters, domain="QQ") for side in (gold, answer)]
    except (PolynomialError, ValueError, TypeError, AttributeError):
        return None
    if len(letters) < 2 or any(side.total_degree() != 1 for side in sides):
        return None
    return sides[0].monic() == sides[1].monic()


def _differ_at_a_point(gold: Expr, answer: Expr) -> bool:
    """Tell whether two expressions differ clearly where their letters are small positive numbers.

    Costs a tenth of simplifying their difference. Numerical integrals and sums are not exact enough.
    """
    if any(side.has(ExprWithLimits, Limit) for side in (gold, answer)):
        return False
    try:
        first, second = (complex(side.xreplace(_point(side)).evalf(15)) for side in (gold, answer))
    except (TypeError, ValueError, ArithmeticError):
        return False
    gap = abs(first - second)
    return isfinite(gap) and gap > 1e-9 * max(abs(first), abs(second))


def _point(expression: Expr) -> dict[Basic, Rational]:
    """Give each letter a value that depends on its name alone."""
    return {letter: Rational(1 + crc32(letter.name.encode()) % 9973, 4999) for letter in expression.free_symbols}
