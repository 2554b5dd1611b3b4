"""What all figures share: sizes, colours, hatches, axes and how a figure of panels is laid out."""

import textwrap
from collections import namedtuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker

FULL_WIDTH, ROW_HEIGHT = 7.2, 2.6  # inches: a printed page, and what the longest y label needs
PAGE_CHARACTERS = 130  # of the figures' font, beside each other on a page
TITLE_CHARACTERS = 32  # of a title, above a third of a page

WHOLE = {"clip_on": False, "zorder": 3}  # a mark at 0 lies in front of the axis
HATCH = "/////"
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
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "patch.linewidth": 0.7,
    "pdf.fonttype": 42,  # TrueType: text stays selectable, and publishers refuse Type 3
}
# How a condition looks and what it is called, its short name first.
Look = namedtuple("Look", "colour line marker names")
# Okabe and Ito's palette, in an order whose grey values differ: 0.34, 0.47, 0.62, 0, 0.59 with a mark of its own.
CONDITION_STYLES = {
    "none": Look("#0072B2", "-", "o", ("None", "w/o Meaningless tokens", "w/o")),
    "mless": Look("#D55E00", (0, (4, 1)), "s", ("Mless", "w/ Meaningless tokens", "Meaningless tokens")),
    "mful": Look("#56B4E9", (0, (5, 1, 1, 1)), "^", ("Mful", "w/ Meaningful tokens", "Meaningful tokens")),
    "random": Look("#000000", (0, (1, 1)), "D", ("Random sentence", "w/ Random sentence")),
    "arm": Look("#CC79A7", (0, (6, 2)), "v", ("ARM", "w/ ARM")),
}
CAUSE_LOOKS = {
    "both": Look("#D55E00", "none", "s", ("as inserted",)),
    "terms": Look("#0072B2", "none", "o", ("terms only: old distance",)),
    "distance": Look("#000000", "none", "D", ("distance only: no insertion",)),
}


def style():
    """Return the context manager under which the figures are made, with the settings of `STYLE`."""
    return plt.rc_context(STYLE)


def look_of(label):
    """Return (Look, text for the legend) of a condition's or cause's key or of any of its names."""
    for key, look in (CONDITION_STYLES | CAUSE_LOOKS).items():
        if label == key or label in look.names:
            return look, look.names[0] if label == key else label
    raise ValueError(f"unknown condition {label!r}: use one of {', '.join(CONDITION_STYLES)} or their names")


def figure_with_rows(rows, columns, height=ROW_HEIGHT):
    """Return (figure, axes (rows, columns)) of page width, rows `height` inches high; a long row is folded in pairs."""
    shape = (-(-columns // 2), 2) if rows == 1 and columns > 3 else (rows, columns)
    size = FULL_WIDTH, height * shape[0]
    figure, axes = plt.subplots(*shape, squeeze=False, figsize=size, layout="constrained")
    for spare in axes.flat[rows * columns :]:
        spare.remove()
    return figure, axes.flat[: rows * columns].reshape(rows, columns)


def name_models(axes, models):
    """Write each model under its panel, the last of the axes; return a caption when all panels have the same."""
    if len(set(models)) <= 1:
        return "".join(f"{model}. " for model in set(models))
    width = PAGE_CHARACTERS // np.ravel(axes)[0].get_gridspec().ncols - 8  # of a long row that was folded, too
    for ax, model in zip(np.ravel(axes)[-len(models) :], models, strict=True):
        lines = [ax.get_xlabel(), *textwrap.wrap(model, width, break_on_hyphens=False)]
        ax.set_xlabel("\n".join(line for line in lines if line))
    return ""


def panel_title(ax, title):
    """Write the title of a panel that names a model and a layer, in two lines where one would leave the panel."""
    ax.set_title(title.replace(" Layer", "\nLayer") if len(title) > TITLE_CHARACTERS else title)


def legend_above(ax):
    """Start the y axis at 0 and put the legend into room made above the data."""
    handles, labels = ax.get_legend_handles_labels()
    columns = len(labels) if len("".join(labels)) <= 16 else 1
    ax.legend(handles, labels, ncols=columns, loc="upper right", borderaxespad=0.2, labelspacing=0.3)
    highest = ax.dataLim.y1 if 0 < ax.dataLim.y1 < np.inf else 1
    ax.set_ylim(0, highest / (0.92 - 0.08 * len(labels) / columns))


def integer_axis(axis, name):
    """Label an axis that counts tokens, layers or heads."""
    axis.set_label_text(name)
    axis.set_major_locator(ticker.MaxNLocator(10, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def beside(ax, x, curves, gap, line="none"):
    """Draw estimates with intervals, each condition's beside the others' at each x, and return the points or lines.

    `curves` maps a condition to (estimates, lows, highs), (n,) each; `line` None: the condition's own.
    """
    drawn = []
    for index, (condition, (estimates, lows, highs)) in enumerate(curves.items()):
        look, text = look_of(condition)
        places = np.asarray(x, dtype=float) + gap * (index - (len(curves) - 1) / 2)
        intervals(ax, places, lows, highs, look.colour)
        linestyle = line or look.line
        drawn += ax.plot(places, estimates, label=text, color=look.colour, linestyle=linestyle, marker=look.marker)
    return drawn


def even_line(ax):
    """Draw the line at 1, where nothing changes."""
    ax.axhline(1, color="0.35", linestyle="--", linewidth=0.8, zorder=1)


def intervals(ax, x, lows, highs, colour):
    """Draw a capped bar from low to high at each x and return the lines; the arrays are (n,)."""
    ends = np.array([lows, highs], dtype=float)  # (2, n)
    look = {"color": colour, "marker": "_", "markersize": 4, "linestyle": "-", "linewidth": 0.9}
    return ax.plot(np.array([x, x], dtype=float), ends, **look)
