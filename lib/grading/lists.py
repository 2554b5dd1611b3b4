"""Split lists, points and intervals into their brackets and their values."""

import re

from lib.grading.numbers_and_units import NAMED_VALUE, SEPARATORS

_BOTH_SIGNS = re.compile(r"\\pm(?![a-z])")
MAX_VALUES = 100  # of a list with dots


def split_values(text: str) -> tuple[str, list[str]]:
    r"""Return the brackets around a text ("" for none and for braces) and its values.

    If every value has a different name, as in x = 3, y = 4, the brackets are "=" and
    the values are in the order of the names.
    """
    text = SEPARATORS.sub(",", text).strip()
    enclosed = re.fullmatch(r"(\(|\[|\\\{)(.*)(\)|\]|\\\})", text)
    # (\pm 3, 0) is a list of two points, but \{\pm 3, 0\} a set of three values.
    is_list = text[:1] in "([" and _BOTH_SIGNS.search(text)
    if enclosed and not is_list and (inside := _between_commas(enclosed[2])):
        return (enclosed[1] + enclosed[3]).replace(r"\{\}", ""), inside
    values = _between_commas(text)
    matches = [NAMED_VALUE.fullmatch(value) for value in values]
    names = {match[1] for match in matches if match}
    if not len(names) == len(values) > 1:
        return "", values
    # Only letters of the alphabet are sorted: r and \theta stay in their order.
    return "=", values if any(name[0] == "\\" for name in names) else sorted(values)


def _between_commas(text: str) -> list[str]:
    """Return the values of a list; none if it closes a bracket that is not open."""
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
    return _continued([value for value in signed if value])


def _continued(values: list[str]) -> list[str]:
    r"""Return a list in which \dots between integers is replaced by the values that it
    omits.
    """
    if r"\dots" not in values[1:-1]:
        return values
    dots = values.index(r"\dots", 1)
    before, after = values[:dots], values[dots + 1 :]
    if not all(re.fullmatch(r"-?\d{1,9}", value) for value in [*before, after[0]]):
        return values
    first, *others = map(int, before)
    step = (others[0] - first if others else 1) or 1
    sequence = range(first, int(after[0]) + step, step)
    is_even = sequence[-1:] == range(int(after[0]), int(after[0]) + step, step)
    if (
        not is_even
        or len(sequence) > MAX_VALUES
        or list(map(int, before)) != list(sequence[: len(before)])
    ):
        return values
    return [*map(str, sequence), *after[1:]]


def _with_both_signs(value: str) -> list[str]:
    r"""Return both values of an expression with `\pm`; `\mp` has the opposite sign."""
    if not _BOTH_SIGNS.search(value):
        return [value]
    both = []
    for sign, other in ("+-", "-+"):
        signed = value.replace(r"\pm", sign, 1).replace(r"\mp", other, 1)
        both += _with_both_signs(signed)
    return both
