"""Answers of several values: lists, tuples, intervals, also as inequalities, columns, rows and matrices."""

import itertools
import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)
_OPENING = {"(": "(", "[": "[", r"\{": "{", r"\langle": "(", "{": "braces"}
_CLOSING = {")": ")", "]": "]", r"\}": "}", r"\rangle": ")", "}": "braces"}
_CONJUNCTION = re.compile(
    r"\\text\{ ?,? ?(?:or|and) ?,? ?\}|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|\\(?:lor|vee)(?![a-zA-Z])|;"
)
_FACTOR = r"-? ?(?:\\frac ?\{[^{}]*\} ?\{[^{}]*\}|[^&=+,-]*?)"
_MATRIX = re.compile(rf"({_FACTOR}) ?(?:\\cdot ?)?\\begin\{{([pbB]?matrix)\}}(.*)\\end\{{\2\}}", re.DOTALL)
_ASSIGNED = re.compile(r"([a-zA-Z]|\\[a-z]+) ?=([^=]*)", re.DOTALL)
_RELATION = re.compile(r"(\\leq|\\geq|<|>)")
_OPEN_OR_CLOSED = {"<": "()", ">": "()", r"\leq": "[]", r"\geq": "[]"}


@dataclass(frozen=True)
class Sequence:
    """Items and how they are held: "list" (any order), brackets such as "()" or "[)", "column" or "2x3"."""

    kind: str
    items: tuple[str, ...]


def parse_sequence(cleaned: str) -> Sequence | None:
    r"""Return the items of an answer, None for a single value; `a \pm b` is a list of two."""
    if match := _MATRIX.fullmatch(cleaned):
        factor, _, body = match.groups()
        return None if r"\begin" in body else _matrix(body, factor)
    kind, inner = _brackets(cleaned)
    items = _expand(split_top_level(inner))
    if not items or (inner == cleaned and len(items) == 1):
        return None
    if kind == "list" and (values := _coordinates(items)):
        return Sequence("()", values)
    # Three or more values are a point or a vector whatever the brackets; two may be an interval.
    return Sequence("()" if kind == "[]" and len(items) > 2 else kind, items)


def _coordinates(items: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the values of `x = 1, y = 2`, letters different and in order, None for other lists."""
    named = [match for item in items if (match := _ASSIGNED.fullmatch(item))]
    if len(items) < 2 or len(named) < len(items):
        return None
    letters = [name.group(1) for name in named]
    # Latin letters come before Greek ones, as in r, theta.
    in_order = sorted(set(letters), key=lambda letter: (letter.startswith("\\"), letter))
    return tuple(name.group(2).strip() for name in named) if letters == in_order else None


def split_top_level(text: str) -> tuple[str, ...]:
    """Split at commas, semicolons, "or" and "and" that stand outside every bracket."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(_CONJUNCTION.sub(",", text)):
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return tuple(part.strip() for part in parts if part.strip())


def _brackets(text: str) -> tuple[str, str]:
    """Return the kind and the inside of a text in one pair of brackets, "list" and the text itself if not."""
    tokens = _TOKEN.findall(text)
    if len(tokens) < 3 or tokens[0] not in _OPENING or tokens[-1] not in _CLOSING or tokens[0] == "{":
        return "list", text
    if 0 in itertools.accumulate((token in _OPENING) - (token in _CLOSING) for token in tokens[:-1]):
        return "list", text
    kind = _OPENING[tokens[0]] + _CLOSING[tokens[-1]]
    return "list" if kind == "{}" else kind, "".join(tokens[1:-1]).strip()


def _expand(items: tuple[str, ...]) -> tuple[str, ...]:
    r"""Replace each item with one `\pm` by its two values; several signs in one item are left alone."""
    expanded = []
    for item in items:
        if len(re.findall(r"\\pm(?![a-zA-Z])", item)) == 1:
            for plus, minus in ("+-", "-+"):
                signed = re.sub(r"\\pm(?![a-zA-Z])", plus, item)
                expanded.append(re.sub(r"\\mp(?![a-zA-Z])", minus, signed).removeprefix("+").strip())
        else:
            expanded.append(item)
    return tuple(expanded)


def _matrix(body: str, factor: str) -> Sequence:
    """Return the cells of a matrix row by row, each times the factor before the matrix."""
    rows = [row.split("&") for row in body.split("\\\\") if row.strip()]
    times = "-1" if factor == "-" else factor
    cells = [cell.strip() for row in rows for cell in row]
    items = tuple(rf"{times} \cdot ({cell})" if times else cell for cell in cells)
    if len({len(row) for row in rows}) != 1:
        return Sequence("ragged", items)
    columns = len(rows[0])
    return Sequence("column" if columns == 1 else f"{len(rows)}x{columns}", items)


def is_relation(cleaned: str) -> bool:
    """Tell whether an answer is an inequality."""
    return _RELATION.search(cleaned) is not None


def as_interval(cleaned: str) -> str | None:
    """Return the interval or union that inequalities of one letter describe, else None; "and" is for the algebra."""
    if re.search(r"(?<![a-zA-Z])and(?![a-zA-Z])|\\(?:land|wedge)", cleaned):
        return None
    items = split_top_level(cleaned)
    intervals = [interval for item in items if (interval := _one_interval(item))]
    return r" \cup ".join(intervals) if len(intervals) == len(items) else None


def _one_interval(text: str) -> str | None:
    parts = [part.strip() for part in _RELATION.split(text)]
    if len(parts) == 1:
        return text if _brackets(text)[0] != "list" else None
    if len(parts) > 5 or len({op in ("<", r"\leq") for op in parts[1::2]}) > 1:
        return None
    if parts[1] in (">", r"\geq"):
        parts = parts[::-1]
    if len(parts) == 3:
        parts = ["", "<", *parts] if parts[0].isalpha() and len(parts[0]) == 1 else [*parts, "<", ""]
    low, left, variable, right, high = parts
    if len(variable) != 1 or not variable.isalpha():
        return None
    opening, closing = _OPEN_OR_CLOSED[left][0], _OPEN_OR_CLOSED[right][1]
    return rf"{opening}{low or '-∞'},{high or '∞'}{closing}".replace("∞", r"\infty")
