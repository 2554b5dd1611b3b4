"""How a condition, a cause, a model or a verdict looks, and what several figures draw:
estimates, curves, forests.

Every function that draws takes axes and a table; `catalogue` says which figure is made
of what.
"""

import re
import textwrap
from itertools import cycle
from numbers import Number
from typing import NamedTuple

import numpy as np
from matplotlib import ticker

from lib.statistics import format_interval

WIDTH, HEIGHT = 7.2, 1.9  # inches: a printed page, and a panel on it
STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 7,
    "figure.constrained_layout.use": True,
    "font.size": 6.5,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "patch.linewidth": 0.7,
    "pdf.fonttype": 42,  # TrueType: text stays selectable, and publishers refuse Type 3
}
LAMBDA, RECEIVED = "λ = received with / without", "Average attention weight"
EVEN = {
    "color": "0.35",
    "linestyle": "--",
    "linewidth": 0.8,
    "zorder": 1,
}  # the line at which nothing changes
BAND, HATCH = "#D5E8E1", "/////"
INTERVAL = {"marker": "_", "markersize": 4, "linewidth": 0.9}
NATS = (0.5, 1, 3, 10, 30, 100)  # ticks


class Look(NamedTuple):
    """How a series looks, and what it is called; of a verdict also the colour of its
    cell.
    """

    colour: str
    marker: str
    name: str = ""
    tint: str = ""


# Okabe and Ito's palette, but for a lighter green, in an order whose grey values
# differ: 0.34, 0.47, 0.62, 0, 0.59.
LOOKS = {
    "none": Look("#0072B2", "o", "None"),
    "mless": Look("#D55E00", "s", "Mless"),
    "mful": Look("#5FBF9B", "^", "Mful"),
    "random": Look("#000000", "D", "Random sentence"),
    "arm": Look("#CC79A7", "v", "ARM"),
    "both": Look("#D55E00", "s", "both: as inserted"),
    "terms": Look("#0072B2", "o", "terms: inserted at the old distance"),
    "distance": Look("#000000", "D", "distance: moved on, nothing inserted"),
}
SERIES = [
    LOOKS[name] for name in ("none", "mless", "random", "mful", "arm")
]  # of models, in their order
# What is contradicted has the darkest cell in grey, what is undecided a nearly white
# one.
VERDICTS = {
    "supported": Look("#0072B2", "o", tint="#BFDDEE"),
    "in part": Look("#E69F00", "P", tint="#F6DFA9"),
    "contradicted": Look("#D55E00", "X", tint="#EFAE7F"),
    "no effect of that size": Look("#009E73", "s", tint="#D5E8E1"),
    "undecided": Look("#000000", "d", tint="#F4F4F4"),
}


def look_of(label):
    """Return (Look, text for the legend) of a condition or cause; mless:25 looks like
    mless. Raises ValueError.
    """
    key = re.split("[:@+]", label)[0]
    if key not in LOOKS:
        raise ValueError(f"unknown condition {label!r}: use one of {', '.join(LOOKS)}")
    return LOOKS[key], LOOKS[key].name if label == key else label


def from_zero(ax):
    """Let the y axis begin at 0, and leave room above the highest mark."""
    ax.set_ylim(0, 1.08 * ax.dataLim.y1)


def integer_axis(axis, name):
    """Label an axis that counts tokens, layers or heads."""
    axis.set_label_text(name)
    axis.set_major_locator(
        ticker.MaxNLocator(10, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])
    )


def ratio_axis(ax, low, high):
    """Make the y axis one of ratios, from low to high with room, with ticks in plain
    numbers, few enough to read.
    """
    low, high = min(0.9, low), max(1.1, high)
    low, high = low / (high / low) ** 0.08, high * (high / low) ** 0.08
    coarse = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    ticks = [
        step
        for step in sorted([*coarse, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, 3])
        if low <= step <= high
    ]
    ticks = ticks if len(ticks) <= 8 else [step for step in ticks if step in coarse]
    ax.set(yscale="log", ylim=(low, high))
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def estimates(
    ax,
    table,
    x,
    y,
    by="condition",
    *,
    gap=0.2,
    line=False,
    band=False,
    even=None,
    looks=None,
):
    """Draw estimates with their intervals over the column x, a series per value of
    `by`, and return the series.

    table: a row per point; the two columns behind y are its ends. An x of texts gives
    places in their order. Series stand `gap` apart; a `line` joins their points, a
    `band` is their interval. looks: of what is no condition.
    """
    low, high = table.columns[table.columns.get_loc(y) + 1 :][:2]
    names = (
        None
        if all(isinstance(value, Number) for value in table[x])
        else list(dict.fromkeys(table[x]))
    )
    groups, series = list(table.groupby(by, sort=False)), []
    if even is not None:
        ax.axhline(even, **EVEN)
    for index, (key, part) in enumerate(groups):
        look, text = (looks[key], key) if looks else look_of(key)
        at = part[x].map(names.index) if names else part[x].astype(float)
        at = at + gap * (index - (len(groups) - 1) / 2)
        if band:
            ax.fill_between(
                at, part[low], part[high], color=look.colour, alpha=0.2, linewidth=0
            )
        else:
            ax.plot(
                [at, at],
                part[[low, high]].to_numpy(float).T,
                color=look.colour,
                **INTERVAL,
            )
        style = {
            "linestyle": "-" if line else "none",
            "marker": look.marker,
            "color": look.colour,
        }
        series += ax.plot(at, part[y], label=text, **style)
    if names:
        texts = [look_of(name)[1] if x == by else name for name in names]
        width = 12 if len(names) <= 3 else 8 if len(names) <= 5 else 5
        ax.set_xticks(
            range(len(names)),
            [textwrap.fill(text, width, break_long_words=False) for text in texts],
        )
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.grid(False, axis="x")
    return series


def received(ax, head, names, what="", shade="", fill=False):
    """Draw what the tokens of one prompt receive in a head, a curve per condition;
    `what` is added to the title.

    head: a row per condition and token; names: a condition's key -> what the legend
    calls it. Beside none the inserted tokens are taken out, so that curves compare the
    same tokens; else `shade` names their positions. The first token, which takes most
    of the mass, is left out.
    """
    for condition, name in names.items():
        tokens = head[head.condition == condition]
        tokens = (tokens[tokens.part != "inserted"] if "none" in names else tokens)[1:]
        colour, x = look_of(condition)[0].colour, range(1, len(tokens) + 1)
        ax.plot(x, tokens.received, color=colour, label=name)
        if fill:
            ax.fill_between(x, tokens.received, color=colour, alpha=0.12, linewidth=0)
    from_zero(ax)
    integer_axis(ax.xaxis, "Token position")
    model, layer, number = head[["model", "layer", "head"]].iloc[0]
    ax.set_title(f"{model}\nLayer {layer} Head {number}{what}")
    if shade:
        inserted = head.position[
            (head.part == "inserted") & (head.condition == "mless")
        ]
        ax.axvspan(
            inserted.min() - 0.5,
            inserted.max() + 0.5,
            color="0.87",
            linewidth=0,
            zorder=0,
            label=shade,
        )


def bars(ax, table):
    """Draw accuracies in % with their intervals, a group per source and model, and
    return the bars: Fig. 10 left.

    table: columns source, model, condition, accuracy, low, high; of what is "the
    paper"'s the bars are hatched.
    """
    groups, drawn = table.groupby(["source", "model"], sort=False), []
    width = 0.84 / groups.size().max()
    rotation = 90 * (len(table) > 9)  # level numbers would touch
    style = {
        "textcoords": "offset points",
        "ha": "center",
        "va": "bottom",
        "size": "small",
        "rotation": rotation,
    }
    for place, ((source, _), part) in enumerate(groups):
        for index, row in enumerate(part.itertuples()):
            x, colour = (
                place + width * (index - (len(part) - 1) / 2),
                look_of(row.condition)[0].colour,
            )
            hatched = {"facecolor": "white", "edgecolor": colour, "hatch": HATCH}
            drawn += ax.bar(
                x,
                row.accuracy,
                0.9 * width,
                **(hatched if source == "the paper" else {"color": colour}),
            )
            ax.plot([x, x], [row.low, row.high], color="black", **INTERVAL)
            text = f"{row.accuracy:.1f}" if np.isfinite(row.accuracy) else "n/a"
            ax.annotate(
                text, (x, np.nanmax([row.high, row.accuracy, 0])), (0, 2), **style
            )
    labels = [
        textwrap.fill(model, max(9, 40 // len(groups))) + f"\n({source})"
        for (source, model), _ in groups
    ]
    ax.set_xticks(range(len(groups)), labels)
    ax.set(ylabel="Accuracy (%)", ylim=(0, 100))
    ax.grid(False, axis="x")
    for condition in dict.fromkeys(table.condition):
        look, name = look_of(condition)
        ax.bar([np.nan], [np.nan], color=look.colour, label=name)
    if "the paper" in set(table.source):
        ax.bar(
            [np.nan],
            [np.nan],
            facecolor="white",
            edgecolor="0.3",
            hatch=HATCH,
            label="reported in the paper",
        )
    return drawn


def forest(ax, table):
    """Draw differences in nats with their intervals and what counts as none, pairs of
    conditions from the top.

    table: columns model, curve (what is asked), x (the pair), effect, low, high, n,
    band. The axis is linear to 1 nat, then logarithmic. Returns the points of each
    model.
    """
    places = -(np.arange(len(table)) + (table.x != table.x.shift()).cumsum())
    table, bands, points = table.assign(y=places), table.band.fillna(0), []
    ax.barh(places, 2 * bands, 1.0, -bands, color=BAND, linewidth=0, zorder=0.5)
    for look, (model, rows) in zip(
        cycle(SERIES), table.groupby("model", sort=False), strict=False
    ):
        ax.hlines(rows.y, rows.low, rows.high, color=look.colour, linewidth=1.1)
        style = {
            "color": look.colour,
            "marker": look.marker,
            "linestyle": "none",
            "markersize": 4,
        }
        points += ax.plot(rows.effect, rows.y, label=model, **style)
    for row in table.itertuples():
        text = format_interval(row.effect, row.low, row.high, "+").replace(
            "-", "\N{MINUS SIGN}"
        )
        text = f"{text}, n = {row.n}"
        ax.text(
            1.01,
            row.y,
            text,
            transform=ax.get_yaxis_transform(),
            va="center",
            size="small",
        )
    middles = table.groupby(["curve", "x"], sort=False).y.mean()
    ax.set_yticks(
        middles.to_numpy(), [f"{asks}\n({pair})" for asks, pair in middles.index]
    )
    ax.set_xlabel(
        "less likely  \N{LEFTWARDS ARROW}  nats  \N{RIGHTWARDS ARROW}  likelier"
    )
    reach = 1.15 * max(1.0, table[["low", "high", "band"]].abs().max(axis=None))
    ticks = [
        tick
        for tick in (*(-tick for tick in NATS[::-1]), 0, *NATS)
        if abs(tick) <= reach
    ]
    ax.set_xscale("symlog", linthresh=1, linscale=1)
    ax.set_xticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    ax.minorticks_off()
    ax.set(xlim=(-reach, reach), ylim=(places.min() - 0.8, -0.2))
    ax.axvline(0, **EVEN)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    if table.band.notna().any():
        ax.barh(
            [np.nan],
            [np.nan],
            color=BAND,
            label="a tenth of what a worked example gives: within it, no effect",
        )
    return points
