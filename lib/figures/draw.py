"""What several figures draw on one panel: estimates with their intervals, the curves of
a head, bars of accuracies. What stands pair by pair is in `forest`.

Every function takes axes and a table; the modules that end in `_figures` say which
figure is made of what.
"""

import textwrap
from numbers import Number
from typing import NamedTuple

import numpy as np

from lib.figures.looks import (
    EVEN,
    INTERVAL,
    PAPER_HATCH,
    from_zero,
    integer_axis,
    look_of,
    ratio_axis,
)

# Of the curve without an insertion: it is seen where the others lie on it.
WIDE_AND_PALE = {"linewidth": 2.2, "alpha": 0.5}
LEAST_RATIO = 0.1  # of the axis: a token that receives almost nothing may have any
THIN_TICKS = 3  # of a panel that is not high
BAR_NAMES = {"none": "w/o", "mless": "w/ Mless", "mful": "w/ Mful"}


class SeriesStyle(NamedTuple):
    """How the points of a series stand."""

    gap: float = 0.2  # from the series beside it, on the x axis
    line: bool = False  # joins the points
    size: float = 3.5  # of the markers, in points


class HeadCurves(NamedTuple):
    """Which conditions a panel of one head compares, and how."""

    names: dict[str, str]  # of a condition: what the legend calls it
    title: str = "{model}\nLayer {layer} Head {head}"
    shade: str = ""  # what is written where the inserted tokens stand
    fill: bool = False  # down to 0

    def same_tokens(self):
        """Return whether the inserted tokens are taken out: one curve has none."""
        return "none" in self.names


POINT_STYLE = SeriesStyle()
LINES = SeriesStyle(gap=0, line=True)


def estimates(ax, table, x, y, by="condition", looks=None, style=POINT_STYLE):
    """Draw estimates with their intervals over the column x, a series per value of
    `by`, and return the series.

    table: a row per point; the two columns behind y are its ends. An x of texts gives
    places in their order. looks: of what is no condition.
    """
    ends = _ends_of(table, y)
    names = list(dict.fromkeys(table[x]))
    are_numbers = all(isinstance(name, Number) for name in names)
    groups = list(table.groupby(by, sort=False))
    series = []
    for index, (key, rows) in enumerate(groups):
        look, label = (looks[key], key) if looks else look_of(key)
        places = rows[x].astype(float) if are_numbers else rows[x].map(names.index)
        places = places + style.gap * _from_middle(index, len(groups))
        intervals = rows[ends].to_numpy(float)
        ax.plot([places, places], intervals.T, color=look.colour, **INTERVAL)
        line = "-" if style.line else "none"
        series += ax.plot(
            places,
            rows[y],
            label=label,
            linestyle=line,
            marker=look.marker,
            markersize=style.size,
            fillstyle=look.fill,
            color=look.colour,
        )
    if not are_numbers:
        texts = names
        if x == by:
            texts = [look_of(name)[1] for name in names]
        _named_places(ax, texts)
    return series


def _ends_of(table, estimate):
    """Return the names of the two columns behind an estimate's: its ends."""
    place = table.columns.get_loc(estimate)
    return list(table.columns[place + 1 : place + 3])


def _from_middle(index, count):
    """Return how many steps the index-th of so many stands from their middle."""
    return index - (count - 1) / 2


def _named_places(ax, names):
    """Name the places 0, 1, ... of the x axis; the more there are, the narrower."""
    if len(names) <= 3:
        width = 12
    elif len(names) <= 5:
        width = 8
    else:
        width = 5
    texts = [textwrap.fill(name, width, break_long_words=False) for name in names]
    ax.set_xticks(range(len(names)), texts)
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.grid(False, axis="x")


def received(ax, head, curves):
    """Draw what the tokens of one prompt receive in a head, a curve per condition of
    HeadCurves.

    head: a row per condition and token. The first token, which takes most of the mass,
    is left out.
    """
    for condition, name in curves.names.items():
        tokens = head[head.condition == condition]
        if curves.same_tokens():
            tokens = tokens[tokens.part != "inserted"]
        weights = tokens.received[1:]
        look, _ = look_of(condition)
        places = range(1, len(weights) + 1)
        style = WIDE_AND_PALE if condition == "none" else {}
        ax.plot(places, weights, color=look.colour, label=name, **style)
        if curves.fill:
            area = {"color": look.colour, "alpha": 0.12, "linewidth": 0}
            ax.fill_between(places, weights, **area)
    from_zero(ax)
    integer_axis(ax.xaxis, "Token position")
    model, layer, number = head[["model", "layer", "head"]].iloc[0]
    ax.set_title(curves.title.format(model=model, layer=layer, head=number))
    if curves.shade:
        slashes = (head.part == "inserted") & (head.condition == "mless")
        positions = head.position[slashes]
        shade_positions(ax, positions)
        middle = (positions.min() + positions.max()) / 2
        ax.annotate(
            curves.shade,
            (middle, 0.98),
            xycoords=ax.get_xaxis_transform(),
            ha="center",
            va="top",
            size="small",
        )


def shade_positions(ax, positions, grey="0.87", label=None):
    """Shade a run of positions from the middle before it to the middle behind it."""
    first = positions.min() - 0.5
    last = positions.max() + 0.5
    ax.axvspan(first, last, color=grey, linewidth=0, zorder=0, label=label)


def token_ratios(ax, head, conditions):
    """Draw what each original token of a head receives with an insertion over what it
    receives without, on a log axis that ends at a tenth and at ten times.

    head: a row per condition and token with its `ratio`. The first token is left out.
    """
    ax.axhline(1, **EVEN)
    for condition in conditions:
        tokens = head[(head.condition == condition) & (head.part != "inserted")]
        ratios = tokens.ratio[1:]
        look, _ = look_of(condition)
        ax.plot(range(1, len(ratios) + 1), ratios, color=look.colour)
    low, high = np.clip([ax.dataLim.y0, ax.dataLim.y1], LEAST_RATIO, 1 / LEAST_RATIO)
    ratio_axis(ax, low, high, most=THIN_TICKS)
    integer_axis(ax.xaxis, "Token position")


def model_rows(ax, table, x, models):
    """Draw estimates with their intervals along the x axis, a row per model from the
    top and a series per condition.

    table: a row per model and condition; the two columns behind x are its ends.
    """
    low, high = _ends_of(table, x)
    groups = list(table.groupby("condition", sort=False))
    step = 0.6 / len(groups)
    for index, (condition, rows) in enumerate(groups):
        look, label = look_of(condition)
        rows_of_models = rows.model.map(models.index).to_numpy()
        places = rows_of_models + step * _from_middle(index, len(groups))
        ax.hlines(places, rows[low], rows[high], color=look.colour)
        style = {"linestyle": "none", "marker": look.marker, "color": look.colour}
        ax.plot(rows[x], places, label=label, clip_on=False, **style)
    ax.set_yticks(range(len(models)), models)
    ax.set_ylim(len(models) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")


def bars(ax, table):
    """Draw accuracies in % with their intervals, a group per source and model, and
    return the bars: Fig. 10 left.

    table: columns source, model, condition, accuracy, low, high; of what is "the
    paper"'s the bars are hatched.
    """
    groups = list(table.groupby(["source", "model"], sort=False))
    width = 0.84 / max(len(rows) for _, rows in groups)
    rotation = 90 if len(table) > 9 else 0  # level numbers would touch
    room = max(9, 40 // len(groups))
    drawn = []
    labels = []
    for place, ((source, model), rows) in enumerate(groups):
        labels.append(f"{textwrap.fill(model, room)}\n({source})")
        for index, row in enumerate(rows.itertuples()):
            x = place + width * _from_middle(index, len(rows))
            look, _ = look_of(row.condition)
            fill = _bar_fill(source, look.colour)
            drawn += ax.bar(x, row.accuracy, 0.9 * width, **fill)
            ax.plot([x, x], [row.low, row.high], color="black", **INTERVAL)
            _write_above(ax, x, row, rotation)

    ax.set_xticks(range(len(groups)), labels)
    ax.set(ylabel="Accuracy (%)", ylim=(0, 100))
    ax.grid(False, axis="x")
    _legend_of_bars(ax, table)
    return drawn


def _legend_of_bars(ax, table):
    """Give the legend a bar per condition, and one for what the paper reports."""
    for condition in dict.fromkeys(table.condition):
        look, name = look_of(condition)
        label = BAR_NAMES.get(condition, name)
        ax.bar([np.nan], [np.nan], color=look.colour, label=label)
    if "the paper" in set(table.source):
        fill = _bar_fill("the paper", "0.3")
        ax.bar([np.nan], [np.nan], label="reported in the paper", **fill)


def _bar_fill(source, colour):
    """Return a bar's colours: hatched where the paper reports it."""
    if source == "the paper":
        return {"facecolor": "white", "edgecolor": colour, "hatch": PAPER_HATCH}
    return {"color": colour}


def _write_above(ax, x, row, rotation):
    """Write an accuracy above its bar and its interval, turned by so many degrees."""
    text = f"{row.accuracy:.1f}" if np.isfinite(row.accuracy) else "n/a"
    top = np.nanmax([row.high, row.accuracy, 0])
    ax.annotate(
        text,
        (x, top),
        (0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        size="small",
        rotation=rotation,
    )
