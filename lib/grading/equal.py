r"""Decide whether two answers are equal: by typed rules, and by algebra where they end.

A list, a point or an interval is compared value by value, by the same rules. All of it
may take any time: `pool` calls it in a process that may be ended.
"""

import re
from fractions import Fraction

from lib.grading.algebra import equal_by_algebra
from lib.grading.spelling import spelled
from lib.grading.values import (
    KNOWN_UNITS,
    NAMED_VALUE,
    SEPARATORS,
    changing_words,
    key,
    named,
    parse_number,
    split_unit,
    without_words,
)

_COMPARISON = re.compile(r"[=<>]|\\(?:leq|geq|neq|in)(?![a-z])")
_SET = re.compile(r"[<>]|\\(?:leq|geq|neq|in|cup|cap|setminus|mathbb)(?![a-z])")


def compare(gold: str, answer: str) -> tuple[bool, str]:
    """Return whether two answers are equal, and what decided.

    Raises UnreadableGold, and whatever math-verify raises, MemoryError included.
    """
    given = spelled(answer)
    exact = re.split(r"\\approx(?![a-z])", given)[0].strip()
    asked = spelled(gold)
    return _decided(asked, _without_lead(asked, exact or given))


def _without_lead(gold: str, answer: str) -> str:
    r"""Return an answer without words before it, as of `\text{The point is } (2, 4)`,
    that change nothing, beside a gold answer that begins with none.
    """
    if gold.startswith(r"\text") or changing_words(answer):
        return answer
    return re.sub(r"^\\text\{[^{}\d]*\} ?(?=[(\[\\\d])", "", answer)


def _decided(gold: str, answer: str) -> tuple[bool, str]:
    gold, answer = _without_names(gold, answer)
    gold, answer = _shaped(gold, answer), _shaped(answer, gold)
    for method, rule in _RULES.items():
        verdict = rule(gold, answer)
        if verdict is not None:
            return verdict, method
    return equal_by_algebra(_for_algebra(gold), _for_algebra(answer)), "math-verify"


def _without_names(gold: str, answer: str) -> tuple[str, str]:
    """Return two answers without names where both have the same or only one has any: y
    and f(x) name the same curve, x and y do not.
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
    r"""Return a vector as the other side writes it: beside a matrix a tuple becomes a
    row or column of one, and 3i - j is (3, -1).
    """
    text = text.replace(r"\langle", "(").replace(r"\rangle", ")")
    if r"\basis" in text:
        axes = "ijk" if r"\basisk" in text + other or other.count(",") > 1 else "ij"
        text = f"({','.join(_component(text, axis) for axis in axes)})"
    brackets, values = _split(text)
    if r"\begin{" in other and brackets in ("()", "[]"):
        between = " & " if "&" in other else r" \\ "
        return rf"\begin{{pmatrix}}{between.join(values)}\end{{pmatrix}}"
    return text


def _component(text: str, axis: str) -> str:
    return re.sub(r"\\basis[ijk] ?", "(0)", re.sub(rf"\\basis{axis} ?", "(1)", text))


def _same(gold: str, answer: str) -> bool | None:
    """Compare them as they are printed."""
    return True if key(gold) == key(answer) else None


def _words(spelled: str) -> str:
    plain = re.sub(r"\\text\{([^{}]*)\}", r"\1", spelled).strip()
    lead = r"^(?i:(?:the )?(?:correct )?(?:answer|choice|option) is:? )"
    return re.sub(lead, "", plain)


_IN_BASE = re.compile(r"\(?(\d[\dA-Z]*)\)?(?: ?_ ?\{? ?(\d+) ?\}?)?")


def _base(gold: str, answer: str) -> bool | None:
    """Compare digits and base as written: `52_8` is not `52_9` or 42.

    A base left out is as asked.
    """
    expected = _IN_BASE.fullmatch(gold)
    given = _IN_BASE.fullmatch(answer)
    if not expected or not (expected[2] or (given and given[2])):
        return None
    if not given:
        return False
    same_base = expected[2] == given[2] or None in (expected[2], given[2])
    return expected[1] == given[1] and same_base


def _choice(gold: str, answer: str) -> bool | None:
    """Compare the letter of a multiple choice, which what it stands for may follow."""
    letter = re.fullmatch(r"\(?([A-Z])\)?", _words(gold))
    if not letter or gold == letter[1]:
        return None
    chosen = re.match(r"\([A-Za-z]\)|[A-Za-z]$", _words(answer))
    return bool(chosen) and letter[1] in chosen[0].upper()


def _word(gold: str, answer: str) -> bool | None:
    r"""Compare words without case, articles and the order of a list.

    A gold answer in `\text` is settled by this, and so are words that change what is
    said, as in "12 or more", if gold lacks them.
    """
    expected = _listed_words(gold)
    if expected is not None and expected == _listed_words(answer):
        return True
    is_text = re.fullmatch(r"\\text\{[^{}\d]*\}", gold)
    is_changed = changing_words(gold) != changing_words(answer)
    return False if is_text or is_changed else None


def _listed_words(spelled: str) -> list[str] | None:
    plain = re.sub(r"\b(?:the|an?) ", "", _words(spelled).casefold())
    if not re.fullmatch(r"[a-z][^\d\\(]{2,}", plain):
        return None
    parts = re.split(r",|\band\b|\bor\b", re.sub(r"[ .-]+", " ", plain))
    return sorted(part.strip() for part in parts if part.strip())


_POWER = re.compile(r"\^ ?\{? ?(-?\d) ?\}?$")


def _unit(gold: str, answer: str) -> bool | None:
    """Tell known units apart, and their powers where both are written; a unit that is
    unknown or left out may be any.
    """
    expected = split_unit(gold)[1]
    given = split_unit(answer)[1]
    if not (expected and given) or not KNOWN_UNITS.issuperset(expected + given):
        return None
    power, other = _POWER.search(gold), _POWER.search(answer)
    differ = expected != given or (power and other and power[1] != other[1])
    return False if differ else None


def _number(gold: str, answer: str) -> bool | None:
    """Compare two plain numbers exactly.

    A percent sign on one side only may count or not.
    """
    gold_text, gold_unit = split_unit(gold)
    text, unit = split_unit(answer)
    expected = parse_number(gold_text)
    value = parse_number(text) or parse_number(without_words(text))
    if expected is None or value is None:
        return None
    percents = ("%" in gold_unit) - ("%" in unit)
    return value in (expected, expected * Fraction(100) ** -percents)


def _values(gold: str, answer: str) -> bool | None:
    """Compare lists without their order, points and intervals in it, value by value."""
    if _SET.search(gold + answer):
        return None
    gold_brackets, expected = _split(gold)
    brackets, given = _split(answer)
    if max(len(expected), len(given)) < 2:
        return None
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


def _taken(value: str, left: list[str]) -> bool:
    """Take the first equal value out of those left, and return whether there is one."""
    for place, other in enumerate(left):
        if _decided(value, other)[0]:
            del left[place]
            return True
    return False


def _split(text: str) -> tuple[str, list[str]]:
    r"""Return the brackets round a text, "" for none and for braces, and its values.

    Where each has a name of its own, as in x = 3, y = 4, the brackets are "=", and the
    values stand in the order of the names.
    """
    text = SEPARATORS.sub(",", text).strip()
    enclosed = re.fullmatch(r"(\(|\[|\\\{)(.*)(\)|\]|\\\})", text)
    inside = (
        _between_commas(enclosed[2])
        if enclosed and not _BOTH_SIGNS.search(text)
        else []
    )
    if enclosed and inside:
        return (enclosed[1] + enclosed[3]).replace(r"\{\}", ""), inside
    values = _between_commas(text)
    matches = [NAMED_VALUE.fullmatch(value) for value in values]
    names = {match[1] for match in matches if match}
    return ("=", sorted(values)) if len(names) == len(values) > 1 else ("", values)


def _between_commas(text: str) -> list[str]:
    """Return the values of a list, none where a bracket closes that it did not open."""
    depth = 0
    parts = [""]
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", text):
        depth += token in ("(", "[", "{", r"\{")
        depth -= token in (")", "]", "}", r"\}")
        if depth < 0:
            return []
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    signed = [value for part in parts for value in _with_both_signs(part.strip())]
    return [value for value in signed if value]


_BOTH_SIGNS = re.compile(r"\\pm(?![a-z])")


def _with_both_signs(value: str) -> list[str]:
    r"""Return the values that `\pm` stands for; `\mp` is the other sign."""
    if not _BOTH_SIGNS.search(value):
        return [value]
    both = []
    for sign, other in ("+-", "-+"):
        signed = value.replace(r"\pm", sign, 1).replace(r"\mp", other, 1)
        both += _with_both_signs(signed)
    return both


# By what `Grade.method` calls them, in the order in which they are asked. Each returns
# None where it does not apply.
_RULES = {
    "equal": _same,
    "base": _base,
    "choice": _choice,
    "word": _word,
    "unit": _unit,
    "decimal": _number,
    "sequence": _values,
}


def _for_algebra(spelled: str) -> str:
    """Return an answer without words before it and units behind it, a plain number as a
    fraction: a mixed number is no product.
    """
    text = re.sub(r"^\\text\{[^{}\d]*\} ?(?=\S)", "", split_unit(spelled)[0])
    number = parse_number(text)
    if number is None:
        return text
    return rf"\frac{{{number.numerator}}}{{{number.denominator}}}"
