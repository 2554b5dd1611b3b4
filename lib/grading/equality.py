r"""Decide whether two answers are equal: by typed rules, or else by algebra.

A list, a point or an interval is compared value by value, by the same rules. A
comparison can take arbitrarily long, so `worker_pool` runs it in a process that
can be killed.
"""

import re
from fractions import Fraction
from operator import itemgetter

from lib.grading.algebra import equal_by_algebra
from lib.grading.latex_spelling import spelled
from lib.grading.numbers_and_units import key, named, parse_number, split_unit, unit
from lib.grading.words_and_lists import (
    changing_words,
    choice,
    in_digits,
    split_values,
    word,
)

_COMPARISON = re.compile(r"[=<>]|\\(?:leq|geq|neq|in)(?![a-z])")
_SET = re.compile(r"[<>]|\\(?:leq|geq|neq|in|cup|cap|setminus|mathbb)(?![a-z])")
_APPROXIMATELY = re.compile(r"\\approx(?![a-z])")
# Letters of scripts in which only a few words are known.
_OTHER_SCRIPT = re.compile(r"[\u0400-\u1fff\u3040-\ua4cf\uac00-\ud7af]")


def compare(gold: str, answer: str) -> tuple[bool, str]:
    r"""Return whether two answers are equal, and the rule that decided.

    Of an answer with \approx, either side may equal the gold answer. Raises
    UnreadableGold if the gold answer cannot be parsed, and any exception of
    math-verify, including MemoryError.
    """
    expected = _in_radians(in_digits(spelled(gold)))
    given = _in_radians(in_digits(spelled(answer)))
    sides = [side.strip() for side in _APPROXIMATELY.split(given) if side.strip()]
    decisions = (
        _decided(expected, _without_lead(expected, side)) for side in sides or [given]
    )
    correct, method = max(decisions, key=itemgetter(0))
    if correct:
        return True, method
    is_read = not _OTHER_SCRIPT.search(split_unit(given)[0]) or changing_words(given)
    return False, method if is_read else "unreadable-answer"


_OF_ANGLES = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])|e ?\^ ?\{ ?i")


def _in_radians(spelled: str) -> str:
    """Return an answer with the arguments of trigonometric functions in radians."""
    if r"\circ" not in spelled or not _OF_ANGLES.search(spelled):
        return spelled
    return re.sub(r"(\d+(?:\.\d+)?) ?\^\\circ ?", r"\\frac{\1 \\pi}{180}", spelled)


def _without_lead(gold: str, answer: str) -> str:
    r"""Return an answer without introductory words, as in `\text{The point is } (2, 4)`
    and `\text{Area} = 15`.

    They are kept if they change its meaning or the gold answer begins with words, too.
    """
    if gold.startswith(r"\text") or changing_words(answer):
        return answer
    return re.sub(r"^\\text\{[^{}\d]*\} ?(?:= ?|(?=[(\[\\\d]))", "", answer)


def _decided(gold: str, answer: str) -> tuple[bool, str]:
    """Return whether two spelled answers are equal, and the rule that decided."""
    gold, answer = _without_names(gold, answer)
    gold, answer = _shaped(gold, answer), _shaped(answer, gold)
    for method, rule in _RULES.items():
        is_equal = rule(gold, answer)
        if is_equal is not None:
            return is_equal, method
    return equal_by_algebra(_for_algebra(gold), _for_algebra(answer)), "math-verify"


def _without_names(gold: str, answer: str) -> tuple[str, str]:
    """Return the values of two answers, without names such as `x =`, if the names agree
    or only one answer has one; y and f(x) agree, x and y do not.
    """
    gold_name, gold_value = named(gold)
    name, value = named(answer)
    are_alike = (
        not gold_name or not name or gold_name == name or ")" in gold_name + name
    )
    if not are_alike or _COMPARISON.search(gold_value + value):
        return gold, answer
    return gold_value, value


def _shaped(text: str, other: str) -> str:
    """Return a vector in the form of the other answer: a tuple becomes a row or column
    if the other answer is a matrix.
    """
    text = text.replace(r"\langle", "(").replace(r"\rangle", ")")
    if r"\begin{" not in other:
        # A set of one value is the value, but for the empty set in it.
        return re.sub(r"^\\\{ ?((?!\\emptyset)[^,;|:]+|\([^()]*\)) ?\\\}$", r"\1", text)
    brackets, values = split_values(_BINOMIAL.sub(r"(\1,\2)", text))
    if brackets not in ("()", "[]"):
        return text
    rows = [split_values(value) for value in values]
    between = " & " if "&" in other else r" \\ "
    if all(inner == brackets for inner, _ in rows):  # a matrix in rows: [[1,2],[3,4]]
        values = [" & ".join(row) for _, row in rows]
        between = r" \\ "
    return rf"\begin{{pmatrix}}{between.join(values)}\end{{pmatrix}}"


_BINOMIAL = re.compile(r"^\\binom ?\{([^{}]*)\} ?\{([^{}]*)\}$")


def _same(gold: str, answer: str) -> bool | None:
    """Return True if two answers have the same text apart from spaces, else None."""
    return True if key(gold) == key(answer) else None


_IN_BASE = re.compile(r"([\dA-F]+)(?: ?_ ?\{? ?(\d+) ?\}?)?", re.IGNORECASE)


def _base(gold: str, answer: str) -> bool | None:
    """Compare digits and base as written: `52_8` is not `52_9` or 42.

    A missing base matches any.
    """
    expected = _IN_BASE.fullmatch(gold)
    given = _IN_BASE.fullmatch(answer)
    # Without a digit first, C_2 is a variable.
    if not expected or not expected[1][0].isdigit():
        return None
    if not (expected[2] or (given and given[2])):
        return None
    if not given:
        return False
    same_base = expected[2] == given[2] or None in (expected[2], given[2])
    return expected[1].upper() == given[1].upper() and same_base


# Between the parts of a ratio or time, and of an angle in degrees, minutes, seconds.
_BETWEEN = re.compile(r" ?(?:\\text\{ ?(?:is )?to ?\}|:|(?<=\d) (?:is )?to (?=\d)) ?")
_QUOTIENT = re.compile(r"^\\frac ?\{([^{}]*)\} ?\{([^{}]*)\}$|^(\d+) ?/ ?(\d+)$")
_PART = re.compile(r"(?!.*\\[{}])[^a-zA-Z:=<>]*(?:\\?[a-zA-Z]+[^:=<>]*)?")
_ANGLE = re.compile(r"(\d+) ?\^\\circ ?(\d+) ?'(?: ?(\d+) ?'')?")


def _parts(gold: str, answer: str) -> bool | None:
    r"""Compare times, ratios and angles part by part: 2:4 is not 1:2.

    \frac{1}{2} equals 1:2. None if the gold answer is none of these.
    """
    angle, other = _ANGLE.fullmatch(gold), _ANGLE.fullmatch(answer)
    if angle:
        return bool(other) and angle.groups() == other.groups()
    expected = _BETWEEN.split(split_unit(gold)[0])
    if len(expected) < 2 or not all(map(_PART.fullmatch, expected)):
        return None
    value = split_unit(answer)[0].rpartition("=")[2].strip()
    given = _BETWEEN.split(_QUOTIENT.sub(r"\1\3:\2\4", value))
    pairs = zip(expected, given, strict=False)
    return len(expected) == len(given) and all(_decided(*pair)[0] for pair in pairs)


def _number(gold: str, answer: str) -> bool | None:
    """Compare two plain numbers exactly.

    A percent sign on one side only may count or not.
    """
    gold_text, gold_units = split_unit(gold)
    text, units = split_unit(answer)
    expected = parse_number(gold_text)
    value = parse_number(text)
    if value is None and text.endswith(r"\dots") and r"\dots" not in gold:
        return False  # a decimal whose further digits are unknown
    if expected is None or value is None:
        return None
    percents = ("%" in gold_units) - ("%" in units)
    return value in (expected, expected * Fraction(100) ** -percents)


def _values(gold: str, answer: str) -> bool | None:
    """Compare lists in any order, and points and intervals in order, value by value."""
    if _SET.search(gold + answer):
        return None
    gold_brackets, expected = split_values(gold)
    brackets, given = split_values(answer)
    if max(len(expected), len(given)) < 2:
        return False if r"\dots" in (gold, answer) else None
    if len(expected) == 1 and _OR.search(answer):
        return all(_decided(gold, value)[0] for value in given)
    # Three or more values are a point whatever the brackets; two may be an interval.
    both = {gold_brackets, brackets}
    is_point = len(expected) > 2 and both == {"()", "[]"}
    is_named = "=" in both and both <= {"=", "()", ""}
    alike = len(both) == 1 or is_point or is_named
    if len(expected) != len(given) or not alike:
        return False
    if "" not in both:
        return all(_decided(*pair)[0] for pair in zip(expected, given, strict=True))
    return all(_taken(value, given) for value in expected)


_OR = re.compile(
    r"\\text\{ ?,? ?or ?\}|(?<![a-zA-Z\\])or(?![a-zA-Z])|\\(?:lor|vee)(?![a-z])"
)


def _taken(value: str, left: list[str]) -> bool:
    """Remove the first of the values `left` that equals a value, and return whether
    there was one.
    """
    for index, other in enumerate(left):
        if _decided(value, other)[0]:
            del left[index]
            return True
    return False


# The rules by their name in `Grade.method`, in the order in which they are tried. Each
# returns None if it does not apply.
_RULES = {
    "equal": _same,
    "base": _base,
    "choice": choice,
    "word": word,
    "unit": unit,
    "parts": _parts,
    "decimal": _number,
    "sequence": _values,
}


def _for_algebra(spelled: str) -> str:
    """Return an answer without the words and units around it; a plain number becomes a
    fraction, so that a mixed number is not read as a product.
    """
    text = re.sub(r"^\\text\{[^{}\d]*\} ?(?=\S)", "", split_unit(spelled)[0])
    text = re.sub(r"(?<=\S) ?\\text\{[^{}]*\}(?: ?\^ ?\{?\d\}?)?$", "", text)
    number = parse_number(text)
    if number is None:
        return text
    return rf"\frac{{{number.numerator}}}{{{number.denominator}}}"
