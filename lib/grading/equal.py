r"""Decide by typed rules whether two answers are equal.

`settle` brings both into one spelling and compares them. Where only algebra can tell,
it gives the two answers as far as the rules have simplified them.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from lib.grading.answer import clean, cut_run_on, last_box
from lib.grading.values import (
    NAMED_VARIABLE,
    UNITS,
    evaluated,
    parse_number,
    split_unit,
    value_of,
)

# No answer of the MATH test set has more than 100 characters or six levels of brackets.
MAX_CHARACTERS, MAX_DEPTH = 1000, 40
# Methods that say why nothing was decided; an answer with one of them counts as not
# correct, and apart.
STATUSES = frozenset({"no-box", "empty-box", "refused", "timeout", "crash"})
Settled = tuple[bool, str]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Grade:
    """Whether a response is correct, and why."""

    correct: bool
    extracted: str | None  # the content of its last box
    method: str  # what decided: a rule, math-verify, or one of STATUSES
    # False when the gold is a number and the box holds an operation to carry out.
    evaluated: bool = True
    # Whether another problem follows the answer, which is not graded.
    run_on: bool = False


def settle(gold: str, response: str) -> tuple[Grade, Pair | None]:
    """Return the grade, and gold and answer, simplified, if only algebra can compare
    them.
    """
    own, run_on = cut_run_on(response)
    grade, undecided = _settle_box(gold, last_box(own))
    return replace(grade, run_on=run_on), undecided


def _settle_box(gold: str, extracted: str | None) -> tuple[Grade, Pair | None]:
    """Do what `settle` does for the content of the last box."""
    if extracted is None:
        return Grade(False, None, "no-box"), None
    if extracted.strip() == gold.strip() and extracted.strip():
        return Grade(True, extracted, "equal"), None
    if _too_large(extracted) or _too_large(gold):
        return Grade(False, extracted, "refused"), None

    expected = clean(gold)
    answer = clean(extracted)
    if not re.sub(r"\\text|[\s{}~$]", "", answer):
        return Grade(False, extracted, "empty-box"), None

    worked_out = evaluated(expected, answer)
    exact = re.split(r"\\approx(?![a-z])", answer)[0].strip() or answer
    for pair in _simplified(expected, exact):
        verdict = _by_rule(*pair)
        if verdict is not None:
            return Grade(verdict[0], extracted, verdict[1], worked_out), None
    return Grade(False, extracted, "math-verify", worked_out), pair


def _by_rule(gold: str, answer: str) -> Settled | None:
    """Return the verdict of the first rule that settles it, None if none does."""
    if _key(gold) == _key(answer):
        return True, "equal"
    for rule in (_base, _choice, _word, _number, _items):
        verdict = rule(gold, answer)
        if verdict is not None:
            return verdict
    return None


def _too_large(answer: str) -> bool:
    depth = deepest = 0
    for bracket in re.findall(r"[()\[\]{}]", answer):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return len(answer) > MAX_CHARACTERS or deepest > MAX_DEPTH


def _key(cleaned: str) -> str:
    """Return a cleaned answer without spaces and braces that do not print.

    Equal keys are equal answers.
    """
    without_spaces = re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", cleaned)
    return re.sub(r"([\^_])\{(\w)\}", r"\1\2", without_spaces)


def _words(cleaned: str) -> str:
    r"""Return a cleaned answer with every `\text{...}` replaced by its content."""
    return re.sub(r"\\text\{([^{}]*)\}", r"\1", cleaned).strip()


_RELATION = re.compile(r"[=<>]|\\(?:leq|geq|neq|in)(?![a-z])")
# What stands between the values of a list, beside a comma.
SEPARATORS = re.compile(
    r"\\text\{ ?,? ?(?:or|and) ?,? ?\}"
    r"|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])"
    r"|\\(?:lor|land|vee|wedge)(?![a-z])|;"
)


def _simplified(gold: str, answer: str) -> Iterator[Pair]:
    r"""Yield gold and answer with tuples alike, then without names, then without units.

    Of a row, a column and `\langle 1, 2 \rangle` each becomes a tuple.
    """
    if not (r"\begin" in gold and r"\begin" in answer):
        gold = _as_tuple(gold)
        answer = _as_tuple(answer)
    yield gold, answer

    # Names go where both sides have the same or only one has any: y and f(x) name the
    # same curve, x and y do not.
    matches = [NAMED_VARIABLE.fullmatch(gold), NAMED_VARIABLE.fullmatch(answer)]
    names = {_key(match[1]) for match in matches if match}
    same_name = len(names) < 2 or any(name.endswith(")") for name in names)
    values = value_of(gold), value_of(answer)
    if same_name and not any(map(_RELATION.search, values)):
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
    """Return the brackets round a text and its parts between commas, "or" and "and".

    The brackets are "" for none and for braces.
    """
    tokens = re.findall(r"\\.|.", SEPARATORS.sub(",", text))
    depths = list(itertools.accumulate(map(_depth_change, tokens)))
    enclosed = depths[-1:] == [0] and 0 not in depths[:-1]
    brackets = tokens[0] + tokens[-1] if enclosed else ""

    inside = 1 if enclosed else 0
    parts = [""]
    for place in range(inside, len(tokens) - inside):
        if tokens[place] == "," and depths[place] == inside:
            parts.append("")
        else:
            parts[-1] += tokens[place]
    stripped = [part.strip() for part in parts]
    return brackets.replace(r"\{\}", ""), [part for part in stripped if part]


def _depth_change(token: str) -> int:
    if token in ("(", "[", "{", r"\{"):
        return 1
    return -1 if token in (")", "]", "}", r"\}") else 0


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


def _base(gold: str, answer: str) -> Settled | None:
    """Compare digits and base as written: `52_8` is not `52_9` or 42.

    A base left out is as asked.
    """
    gold_digits, gold_base = _digits_and_base(gold)
    digits, base = _digits_and_base(answer)
    if gold_base is None and (base is None or gold_digits is None):
        return None
    same_base = gold_base == base or None in (gold_base, base)
    return digits == gold_digits and same_base, "base"


_IN_BASE = re.compile(r"\(?(\d[0-9A-Z]*)\)?_\{?\(?(\d+|[a-z]+)\)?\}?")


def _digits_and_base(cleaned: str) -> tuple[str | None, str | None]:
    subscripted = re.sub(r"_?[{(]? ?base ?", "_", _words(cleaned))
    text = _key(subscripted).rpartition("=")[2]
    match = _IN_BASE.fullmatch(text)
    base = _BASES.get(match[2], match[2]) if match else ""
    if match and base.isdecimal():
        return match[1], base
    return (text if text.isdecimal() else None), None


def _choice(gold: str, answer: str) -> Settled | None:
    """Compare the letter of a multiple choice, which what it stands for may follow."""
    letter = re.fullmatch(r"\(?([A-Z])\)?", _words(gold).replace(" ", ""))
    if not letter or not (r"\text" in gold or "(" in gold):
        return None
    text = _words(answer)
    alone = re.fullmatch(r"\(?([A-Z])\)?", text.upper().replace(" ", ""))
    chosen = alone or re.fullmatch(r"\(([A-Z])\)[^()]*", text)
    return chosen is not None and chosen[1] == letter[1], "choice"


def _word(gold: str, answer: str) -> Settled | None:
    r"""Compare words without case, articles and the order of a list.

    A gold answer in `\text` is settled by this.
    """
    expected = _listed_words(gold)
    if expected is None:
        return None
    same = expected == _listed_words(answer)
    if same or re.fullmatch(r"\\text\{[^{}]*\}", gold):
        return same, "word"
    return None


def _listed_words(cleaned: str) -> list[str] | None:
    plain = _words(cleaned).casefold()
    of_letters = re.fullmatch(r"[a-z][a-z .,'-]{2,}", plain)
    if not of_letters and not re.fullmatch(r"\\text\{[^{}\d]*\}", cleaned):
        return None
    without_articles = re.sub(r"\b(?:the|an?) ", "", plain)
    parts = re.split(r",|\band\b|\bor\b", without_articles)
    return sorted(
        re.sub(r"[ .-]+", " ", part).strip() for part in parts if part.strip()
    )


def _number(gold: str, answer: str) -> Settled | None:
    """Compare units, and two plain numbers exactly.

    A percent sign on one side only may count or not.
    """
    gold_text, gold_unit = split_unit(gold)
    text, unit = split_unit(answer)
    # A unit that is unknown or left out may be any.
    known = gold_unit and unit and {*gold_unit, *unit} <= UNITS
    if known and gold_unit != unit:
        return False, "unit"

    expected = parse_number(gold_text)
    value = parse_number(text)
    if expected is None or value is None:
        return None
    percents = ("%" in gold_unit) - ("%" in unit)
    return value in (expected, expected * Fraction(100) ** -percents), "decimal"


def _items(gold: str, answer: str) -> Settled | None:
    """Refuse a tuple or interval for a list, other brackets, and other numbers of
    values.
    """
    both = gold + answer
    if _RELATION.search(both) or re.search(r"\\(?:pm|cup|cap)(?![a-z])", both):
        return None
    gold_brackets, gold_items = _split(gold)
    brackets, items = _split(answer)
    if min(len(gold_items), len(items)) < 2:
        return None
    # Three or more values are a point or a vector whatever the brackets; two may be an
    # interval.
    of_point = len(gold_items) > 2 and {gold_brackets, brackets} == {"()", "[]"}
    alike = gold_brackets == brackets or of_point
    return None if alike and len(gold_items) == len(items) else (False, "sequence")
