"""Where a claim's interval, its range and the paper's number stand in a drawing."""

import math

from lib.claims.verdict import UNTRAINED, Estimate, Verdict

# Of the drawing, and what it leaves free on either side, for half a number.
AXIS_WIDTH = 360
AXIS_EDGE = 14


def axis(verdict: Verdict) -> dict | None:
    """Return where a claim's interval stands from left to right in a drawing.

    In units of the drawing; None without an interval. `shade`: the claimed range;
    `bar`, `control`: (low, effect, high); `paper`; `ticks`: (place, text).
    """
    if verdict.estimate.low is None:
        return None
    untrained = verdict.controls.get(UNTRAINED)
    bar = _bar(verdict.estimate)
    control = _bar(untrained) if untrained else None
    numbers = [*bar, *(control or ()), *verdict.range, verdict.paper]
    shown = [number for number in numbers if number is not None]
    low, high = min(shown), max(shown)
    room = 0.08 * (high - low) or 0.1 * abs(low) or 1
    low, high = low - room, high + room

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return round(AXIS_EDGE + (AXIS_WIDTH - 2 * AXIS_EDGE) * share, 1)

    # Two to six round numbers between low and high.
    power = 10 ** math.floor(math.log10((high - low) / 4))
    steps = [power * factor for factor in (1, 2, 5, 10)]
    step = next(step for step in steps if step >= (high - low) / 4)
    counts = range(math.ceil(low / step), math.floor(high / step) + 1)
    ticks = [round(step * count, 12) for count in counts]
    ends = (
        low if verdict.range[0] is None else verdict.range[0],
        high if verdict.range[1] is None else verdict.range[1],
    )
    return {
        "bar": tuple(map(place, bar)),
        "control": tuple(map(place, control)) if control else None,
        "shade": tuple(map(place, ends)),
        "paper": None if verdict.paper is None else place(verdict.paper),
        "ticks": [(place(value), f"{value:g}") for value in ticks],
    }


def _bar(estimate: Estimate) -> tuple:
    return estimate.low, estimate.effect, estimate.high
