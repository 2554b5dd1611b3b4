"""The claims as a table in a terminal."""

import textwrap
from collections.abc import Sequence


def page(rows: Sequence[dict], width: int = 118) -> str:
    """Return the claims as text: verdict, effect with interval, claimed range and n, the statement below."""
    lines = []
    for row in rows:
        lines.append(f"{row['verdict'].upper():12} {row['id']} ({row['source']}), {row['model']}")
        lines += textwrap.wrap(row["claim"] + ".", width, initial_indent=" " * 13, subsequent_indent=" " * 13)
        lines += textwrap.wrap(measured_text(row), width, initial_indent=" " * 13, subsequent_indent=" " * 13)
    return "\n".join(lines)


def measured_text(row: dict) -> str:
    """Return in one line what was measured, what was claimed, and the n that would decide."""
    if row["reason"]:
        return f"Not tested: {row['reason']}."
    text = f"{row['component']}: {_number(row['effect'])} [{_number(row['low'])}, {_number(row['high'])}] {row['unit']}"
    text += f", claimed {_range_text(*row['range'])}, n = {row['n']}"
    if row["components"] > 1:
        text += f", the least favourable of {row['components']}"
    if row["paper"]:
        text += f"; the paper {_number(row['paper']['value'])} ({row['paper']['of']})"
    if row["verdict"] == "undecided":
        size = "an effect of the paper's size" if row["paper"] else "an effect of this size"
        text += f"; {size} needs n = {row['needed']:,}" if row["needed"] else "; no n decides an effect at the edge"
    return text


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def _range_text(low: float | None, high: float | None) -> str:
    if low is None:
        return f"< {high:g}"
    return f"> {low:g}" if high is None else f"{low:g} to {high:g}"
