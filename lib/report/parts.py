"""Where a claim's interval, its range and the paper's number stand in a drawing."""

import math

# Of the drawing, and what it leaves free on either side, for half a number.
WIDTH = 360
EDGE = 14


def axis(row: dict) -> dict | None:
    """Return where a claim's interval stands from left to right, in units of the
    drawing; None without an interval.

    `shade`: the claimed range; `bar`, `control`: (low, effect, high); `paper`; `ticks`:
    (place, text).
    """
    if row["effect"] is None or row["low"] is None:
        return None
    bars = {"bar": [row["low"], row["effect"], row["high"]]}
    bars["control"] = [row["control_low"], row["control_effect"], row["control_high"]]
    shown = [
        *bars["bar"],
        *bars["control"],
        row["low_end"],
        row["high_end"],
        row["paper"],
    ]
    low, high = (
        end(value for value in shown if value is not None) for end in (min, max)
    )
    room = 0.08 * (high - low) or 0.1 * abs(low) or 1
    low, high = low - room, high + room

    def place(value: float | None) -> float | None:
        return (
            None
            if value is None
            else round(EDGE + (WIDTH - 2 * EDGE) * (value - low) / (high - low), 1)
        )

    ends = (
        low if row["low_end"] is None else row["low_end"],
        high if row["high_end"] is None else row["high_end"],
    )
    power = 10 ** math.floor(
        math.log10((high - low) / 4)
    )  # two to six round numbers between low and high
    step = next(
        power * factor for factor in (1, 2, 5, 10) if power * factor >= (high - low) / 4
    )
    ticks = [
        round(step * i, 12)
        for i in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]
    found: dict = {
        name: None if None in bar else tuple(map(place, bar))
        for name, bar in bars.items()
    }
    found |= {"shade": tuple(map(place, ends)), "paper": place(row["paper"])}
    return found | {"ticks": [(place(value), f"{value:g}") for value in ticks]}
