"""Take lists, points and intervals apart: into their brackets and their values."""

import re

from lib.grading.values import NAMED_VALUE, SEPARATORS

_BOTH_SIGNS = re.compile(r"\\pm(?![a-z])")
MOST_VALUES = 100  # that dots may stand for


def split_values(text: str) -> tuple[str, list[str]]:
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
    if not len(names) == len(values) > 1:
        return "", values
    # Letters of the alphabet have an order, r and \theta do not.
    return "=", values if any(name[0] == "\\" for name in names) else sorted(values)


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
    return _continued([value for value in signed if value])


def _continued(values: list[str]) -> list[str]:
    r"""Return a list with the values for which \dots stands between whole numbers."""
    if r"\dots" not in values[1:-1]:
        return values
    place = values.index(r"\dots", 1)
    before, after = values[:place], values[place + 1 :]
    if not all(re.fullmatch(r"-?\d{1,9}", value) for value in [*before, after[0]]):
        return values
    first, *others = map(int, before)
    step = (others[0] - first if others else 1) or 1
    counted = range(first, int(after[0]) + step, step)
    is_even = counted[-1:] == range(int(after[0]), int(after[0]) + step, step)
    if (
        not is_even
        or len(counted) > MOST_VALUES
        or list(map(int, before)) != list(counted[: len(before)])
    ):
        return values
    return [*map(str, counted), *after[1:]]


def _with_both_signs(value: str) -> list[str]:
    r"""Return the values that `\pm` stands for; `\mp` is the other sign."""
    if not _BOTH_SIGNS.search(value):
        return [value]
    both = []
    for sign, other in ("+-", "-+"):
        signed = value.replace(r"\pm", sign, 1).replace(r"\mp", other, 1)
        both += _with_both_signs(signed)
    return both
