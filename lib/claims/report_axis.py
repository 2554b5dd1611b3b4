"""A claim's interval on a small axis with the claimed range shaded: positions for the template to draw."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from lib.claims.report_claims import Measured, Row

WIDTH, EDGE = 360, 14  # of the drawing, and what its axis leaves free on either side, for half a number


@dataclass(frozen=True)
class Axis:
    """Where things stand from left to right, in units of the drawing; a bar is (low, middle, high)."""

    shade: tuple[float, float]
    bar: tuple[float, float, float]
    control: tuple[float, float, float] | None
    paper: float | None
    ticks: list[tuple[float, str]]


def axis(row: Row) -> Axis | None:
    """Return the axis of a claim, None when it has no interval."""
    if row.effect is None or row.low is None:
        return None
    shown = [row.low, row.effect, row.high, *row.range, row.paper.value if row.paper else None]
    control = row.control if row.control and row.control.low is not None else None
    shown += [control.low, control.high] if control else []
    known = [value for value in shown if value is not None]
    low, high = min(known), max(known)
    room = 0.08 * (high - low) or 0.1 * abs(low) or 1
    low, high = low - room, high + room

    def place(value) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * (value - low) / (high - low), 1)

    ends = (low if row.range[0] is None else row.range[0], high if row.range[1] is None else row.range[1])
    return Axis(
        (place(ends[0]), place(ends[1])),
        _bar(row, place),
        _bar(control, place) if control else None,
        place(row.paper.value) if row.paper else None,
        [(place(value), f"{value:g}") for value in _ticks(low, high)],
    )


def _bar(measured: Measured, place: Callable) -> tuple[float, float, float]:
    return place(measured.low), place(measured.effect), place(measured.high)


def _ticks(low: float, high: float) -> list[float]:
    """Return two to six round numbers between low and high."""
    rough = (high - low) / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [round(step * i, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
