"""What all figures share: sizes, marks, axes, and how a condition, a cause, a model or a verdict looks."""

import re
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib import ticker

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


class Look(NamedTuple):
    """How a series looks, and what it is called, its short name first."""

    colour: str
    marker: str
    names: tuple[str, ...] = ()


# Okabe and Ito's palette, but for a lighter green, in an order whose grey values differ: 0.34, 0.47, 0.62, 0, 0.59.
LOOKS = {
    "none": Look("#0072B2", "o", ("None", "w/o Meaningless tokens")),
    "mless": Look("#D55E00", "s", ("Mless", "w/ Meaningless tokens", "Meaningless tokens")),
    "mful": Look("#5FBF9B", "^", ("Mful",)),
    "random": Look("#000000", "D", ("Random sentence",)),
    "arm": Look("#CC79A7", "v", ("ARM",)),
    "both": Look("#D55E00", "s", ("both: as inserted",)),
    "terms": Look("#0072B2", "o", ("terms: inserted at the old distance",)),
    "distance": Look("#000000", "D", ("distance: moved on, nothing inserted",)),
}
SERIES = [LOOKS[name] for name in ("none", "mless", "random", "mful", "arm")]  # of models, in their order
VERDICTS = {
    "supported": Look("#0072B2", "o"),
    "in part": Look("#E69F00", "P"),
    "contradicted": Look("#D55E00", "X"),
    "no effect of that size": Look("#009E73", "s"),
    "undecided": Look("#000000", "d"),
}
# Of a verdict's cell: what is contradicted is the darkest in grey, what is undecided nearly white.
TINTS = dict(zip(VERDICTS, ("#BFDDEE", "#F6DFA9", "#EFAE7F", "#D5E8E1", "#F4F4F4"), strict=True))


def style():
    """Return the context manager under which the figures are made, with the settings of `STYLE`."""
    return plt.rc_context(STYLE)


def look_of(label):
    """Return (Look, text for the legend) of a condition or cause, by its key or a name; mless:25 looks like mless."""
    for key, look in LOOKS.items():
        if label == key or label in look.names or re.split("[:@+]", label)[0] == key:
            return look, look.names[0] if label == key else label
    raise ValueError(f"unknown condition {label!r}: use one of {', '.join(LOOKS)} or their names")


def even_line(ax, value, across=True):
    """Draw the dashed line at which nothing changes."""
    (ax.axhline if across else ax.axvline)(value, color="0.35", linestyle="--", linewidth=0.8, zorder=1)


def from_zero(ax):
    """Let the y axis begin at 0, and leave room above the highest mark."""
    ax.set_ylim(0, 1.08 * ax.dataLim.y1)


def integer_axis(axis, name):
    """Label an axis that counts tokens, layers or heads."""
    axis.set_label_text(name)
    axis.set_major_locator(ticker.MaxNLocator(10, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def ratio_axis(ax, low, high):
    """Make the y axis one of ratios, from low to high with room, with ticks in plain numbers, few enough to read."""
    low, high = min(0.9, low), max(1.1, high)
    low, high = low / (high / low) ** 0.08, high * (high / low) ** 0.08
    coarse = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
    ticks = [step for step in sorted([*coarse, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, 3]) if low <= step <= high]
    ticks = ticks if len(ticks) <= 8 else [step for step in ticks if step in coarse]
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def symlog_axis(ax, values, ticks):
    """Make the x axis linear to 1 and logarithmic from there, even on both sides of 0, and wide enough for values."""
    reach = 1.15 * max([1.0, *(abs(value) for value in values if value == value)])
    ticks = [tick for tick in (*(-tick for tick in ticks[::-1]), 0, *ticks) if abs(tick) <= reach]
    ax.set_xscale("symlog", linthresh=1, linscale=1)
    ax.set_xticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(-reach, reach)
