r"""Decide whether two answers are equal: one spelling, typed rules, and math-verify
where those settle nothing.

`settle` grades or, where only algebra can tell, gives the two answers as far as the
rules have simplified them. `equal_by_algebra` takes those; it is to be called only
where the process may be killed.
"""

import itertools
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from math_verify import LatexExtractionConfig, parse, verify
from sympy import And, Expr, FiniteSet, Ge, Gt, I, Le, Lt, Or, Symbol, simplify

from lib.grading.answer import (
    NAMED,
    UNITS,
    clean,
    cut_run_on,
    evaluated,
    last_box,
    parse_number,
    split_unit,
    value_of,
)

# No answer of the MATH test set has more than 100 characters or six levels of brackets.
MAX_CHARACTERS, MAX_DEPTH = 1000, 40
# Methods that say why nothing was decided; an answer with one of them counts as not
# correct, and apart.
STATUSES = frozenset({"no-box", "empty-box", "refused", "timeout", "crash"})
Verdict = tuple[bool, str]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Grade:
    """Whether a response is correct, the content of its last box, and the rule,
    "math-verify" or status that decided.

    evaluated: False when the gold answer is a number and the box still holds an
    operation to carry out.
    """

    correct: bool
    extracted: str | None
    method: str
    evaluated: bool = True


def settle(gold: str, response: str) -> tuple[Grade, Pair | None]:
    """Return the grade, and what only algebra can compare: gold and answer as far as
    rules simplify them, or None.
    """
    extracted = last_box(cut_run_on(response)[0])
    if extracted is None:
        return Grade(False, None, "no-box"), None
    if extracted.strip() == gold.strip() and extracted.strip():
        return Grade(True, extracted, "equal"), None
    if _too_large(extracted) or _too_large(gold):
        return Grade(False, extracted, "refused"), None
    cleaned, answer = clean(gold), clean(extracted)
    if not re.sub(r"\\text|[\s{}~$]", "", answer):
        return Grade(False, extracted, "empty-box"), None
    worked_out = evaluated(cleaned, answer)
    for left in _simplified(
        cleaned, re.split(r"\\approx(?![a-z])", answer)[0].strip() or answer
    ):
        if _key(left[0]) == _key(left[1]):
            return Grade(True, extracted, "equal", worked_out), None
        for rule in (_base, _choice, _word, _number, _items):
            if verdict := rule(*left):
                return Grade(verdict[0], extracted, verdict[1], worked_out), None
    return Grade(False, extracted, "math-verify", worked_out), left


def _too_large(answer: str) -> bool:
    steps = (
        1 if bracket in "([{" else -1 for bracket in re.findall(r"[()\[\]{}]", answer)
    )
    return (
        len(answer) > MAX_CHARACTERS
        or max(itertools.accumulate(steps), default=0) > MAX_DEPTH
    )


def _key(cleaned: str) -> str:
    """Return a cleaned answer without spaces and braces that do not print; equal keys
    are equal answers.
    """
    return re.sub(
        r"([\^_])\{(\w)\}", r"\1\2", re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", cleaned)
    )


def _words(cleaned: str) -> str:
    r"""Return a cleaned answer with every `\text{...}` replaced by its content."""
    return re.sub(r"\\text\{([^{}]*)\}", r"\1", cleaned).strip()


_RELATION = re.compile(r"[=<>]|\\(?:leq|geq|neq|in)(?![a-z])")
_OR = re.compile(
    r"\\text\{ ?,? ?(?:or|and) ?,?"
    r" ?\}|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|\\(?:lor|land|vee|wedge)(?![a-z])|;"
)


def _simplified(gold: str, answer: str) -> Iterator[Pair]:
    r"""Yield both with a row or column and `\langle 1, 2 \rangle` as tuples, then
    without names, then without units.
    """
    if not (r"\begin" in gold and r"\begin" in answer):
        gold, answer = _as_tuple(gold), _as_tuple(answer)
    yield gold, answer
    # Names go where both sides have the same or only one has any: y and f(x) name the
    # same curve, x and y do not.
    names = {
        _key(match[1]) for text in (gold, answer) if (match := NAMED.fullmatch(text))
    }
    values = value_of(gold), value_of(answer)
    if (len(names) < 2 or any(name.endswith(")") for name in names)) and not any(
        map(_RELATION.search, values)
    ):
        gold, answer = values
    yield gold, answer
    yield _without_units(gold), _without_units(answer)


def _as_tuple(text: str) -> str:
    text = text.replace(r"\langle", "(").replace(r"\rangle", ")")
    matrix = re.fullmatch(r"(.*)\\begin\{([pbB]?matrix)\}(.*)\\end\{\2\}", text)
    if matrix is None or ("&" in matrix[3] and r"\\" in matrix[3]):
        return text
    return matrix[1] + "(" + re.sub(r"&|\\\\", ",", matrix[3]) + ")"


def _without_units(text: str) -> str:
    brackets, items = _split(text)
    if brackets or len(items) < 2:
        return split_unit(text)[0]
    values = [split_unit(item)[0] for item in items]
    return text if values == items else ", ".join(values)


def _split(text: str) -> tuple[str, list[str]]:
    """Return the brackets round a text, "" for none or braces, and its parts between
    commas, "or" and "and".
    """
    tokens = re.findall(r"\\.|.", _OR.sub(",", text))
    depths = list(
        itertools.accumulate(
            (t in ("(", "[", "{", r"\{")) - (t in (")", "]", "}", r"\}"))
            for t in tokens
        )
    )
    outer = (
        "".join(tokens[:1] + tokens[-1:])
        if 0 not in depths[:-1] and depths[-1:] == [0]
        else ""
    )
    parts, inside = [""], int(bool(outer))
    for token, depth in list(zip(tokens, depths, strict=True))[
        inside : len(tokens) - inside
    ]:
        if token == "," and depth == inside:
            parts.append("")
        else:
            parts[-1] += token
    return outer.replace(r"\{\}", ""), [part.strip() for part in parts if part.strip()]


_BASES = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
}


def _base(gold: str, answer: str) -> Verdict | None:
    r"""Compare digits and base as written, `52_8` is not `52_9` or 42; a base left out
    is as asked.
    """

    def split(cleaned: str) -> tuple[str | None, str | None]:
        text = _key(re.sub(r"_?[{(]? ?base ?", "_", _words(cleaned))).rpartition("=")[2]
        match = re.fullmatch(r"\(?(\d[0-9A-Z]*)\)?_\{?\(?(\d+|[a-z]+)\)?\}?", text)
        if match and (base := _BASES.get(match[2], match[2])).isdecimal():
            return match[1], base
        return (text if text.isdecimal() else None), None

    (gold_digits, gold_base), (digits, base) = split(gold), split(answer)
    if gold_base is None and (base is None or gold_digits is None):
        return None
    return (
        digits == gold_digits and (None in (gold_base, base) or gold_base == base),
        "base",
    )


def _choice(gold: str, answer: str) -> Verdict | None:
    r"""Compare the letter of a multiple choice; `(C)` may be followed by what it stands
    for.
    """
    letter = re.fullmatch(r"\(?([A-Z])\)?", _words(gold).replace(" ", ""))
    if not letter or not (r"\text" in gold or "(" in gold):
        return None
    given = _words(answer)
    found = re.fullmatch(
        r"\(?([A-Z])\)?", given.upper().replace(" ", "")
    ) or re.fullmatch(r"\(([A-Z])\)[^()]*", given)
    return found is not None and found[1] == letter[1], "choice"


def _word(gold: str, answer: str) -> Verdict | None:
    r"""Compare words without case, articles and the order of a list; a gold in `\text`
    is settled by this.
    """

    def listed(cleaned: str) -> list[str] | None:
        plain = _words(cleaned).casefold()
        if not re.fullmatch(r"[a-z][a-z .,'-]{2,}", plain) and not re.fullmatch(
            r"\\text\{[^{}\d]*\}", cleaned
        ):
            return None
        parts = re.split(r",|\band\b|\bor\b", re.sub(r"\b(?:the|an?) ", "", plain))
        return sorted(
            re.sub(r"[ .-]+", " ", part).strip() for part in parts if part.strip()
        )

    expected = listed(gold)
    same = expected == listed(answer)
    return (
        (same, "word")
        if expected is not None and (same or re.fullmatch(r"\\text\{[^{}]*\}", gold))
        else None
    )


def _number(gold: str, answer: str) -> Verdict | None:
    """Compare units, and two plain numbers exactly; a percent sign on one side only may
    count or not.
    """
    (gold_text, gold_unit), (text, unit) = split_unit(gold), split_unit(answer)
    if (
        gold_unit and unit and gold_unit != unit and {*gold_unit, *unit} <= UNITS
    ):  # unknown or left out it may be any
        return False, "unit"
    expected, value = parse_number(gold_text), parse_number(text)
    if expected is None or value is None:
        return None
    percents = ("%" in gold_unit) - ("%" in unit)
    return value in (expected, expected * Fraction(100) ** -percents), "decimal"


def _items(gold: str, answer: str) -> Verdict | None:
    """Refuse a tuple or interval for a list, other brackets, and another number of
    values.
    """
    if _RELATION.search(gold + answer) or re.search(
        r"\\(?:pm|cup|cap)(?![a-z])", gold + answer
    ):
        return None
    (brackets, items), (others, given) = _split(gold), _split(answer)
    # Three or more values are a point or a vector whatever the brackets; two may be an
    # interval.
    alike = brackets == others or (
        len(items) > 2 and {brackets, others} == {"()", "[]"}
    )
    return (
        None
        if min(len(items), len(given)) < 2 or (alike and len(items) == len(given))
        else (False, "sequence")
    )


# math-verify warns, once per process, that its time limits are off: they count whole
# seconds, need the main thread and end as a silent "wrong".
logging.getLogger("math_verify").setLevel(logging.ERROR)


# The samples of one problem give the same few answers again and again.
@lru_cache(maxsize=4096)
def equal_by_algebra(gold: str, answer: str) -> bool:
    """Compare what `settle` left; raises whatever math-verify raises, MemoryError
    included.
    """
    expected, given = _parse(gold), _parse(answer)
    letter = expected[0] if expected and given else None
    # math-verify compares a lone letter by name only, and takes abc for a word; 2x - x
    # is x all the same.
    if (
        isinstance(letter, Symbol)
        and isinstance(given[0], Expr)
        and given[0].free_symbols == {letter}
    ):
        return simplify(letter - given[0]) == 0
    return verify(
        expected,
        given,
        allow_set_relation_comp=True,
        timeout_seconds=None,
        raise_on_error=True,
    )


@lru_cache(maxsize=4096)
def _parse(answer: str) -> list:
    """Parse an answer: decimals exact, for floats are compared to six places only, and
    2(3) a product.
    """
    text = re.sub(
        r"((?<![_^\d])\d+|(?<=\d)\)) ?(?=\(-?\d+\))",
        r"\1 \\cdot ",
        _OR.sub(",", answer),
    )
    exact = r"\frac{{{}}}{{{}}}".format
    text = re.sub(
        r"(?<![\d.])\d*\.\d+(?![\d.])",
        lambda d: exact(*Fraction(d[0]).as_integer_ratio()),
        text,
    )
    first = [LatexExtractionConfig(boxed_match_priority=0)]
    joined = And if re.search(r"and|\\land|\\wedge", answer) else Or
    found = []
    for one in parse(
        rf"\boxed{{{text}}}", first, parsing_timeout=None, raise_on_error=True
    ):
        if isinstance(one, FiniteSet) and all(
            isinstance(part, Ge | Gt | Le | Lt | And) for part in one
        ):
            one = joined(*one).as_set()  # several inequalities
        elif not isinstance(one, str):
            one = one.xreplace(
                {letter: I for letter in one.free_symbols if letter.name == "i"}
            )
        found.append(one)
    return found
