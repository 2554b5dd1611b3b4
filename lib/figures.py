"""Draws the paper's figures: every function takes axes and arrays and returns what it drew.

Nothing is loaded or computed here, and only `save_figure` touches the disk. A condition has one colour, line
style, marker and set of names, in `CONDITION_STYLES`. Make the figures under `with style():`.
"""

import io
import os
import textwrap
from collections import namedtuple
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patches, ticker

from lib.errors import InputError

FULL_WIDTH, ROW_HEIGHT = 7.2, 2.6  # inches: a printed page, and what the longest y label needs
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
# One model's bars: (condition, accuracy, low, high) each, in %; `paper` marks reported numbers.
Group = namedtuple("Group", "label bars paper", defaults=(False,))


def style():
    """Return the context manager under which the figures are made, with the settings of `STYLE`."""
    return plt.rc_context(STYLE)


def look_of(label):
    """Return (Look, text for the legend) of a condition's key or of any of its names."""
    for key, look in CONDITION_STYLES.items():
        if label == key or label in look.names:
            return look, look.names[0] if label == key else label
    raise ValueError(f"unknown condition {label!r}: use one of {', '.join(CONDITION_STYLES)} or their names")


def figure_with_rows(rows, columns):
    """Return (figure, axes (rows, columns)) of page width: the grid of Figs 9, 11, 13 and 18."""
    options = {"figsize": (FULL_WIDTH, ROW_HEIGHT * rows), "layout": "constrained"}
    return plt.subplots(rows, columns, squeeze=False, **options)


def fig10_layout():
    """Return (figure, (left, upper right, lower right)): bars beside two stacked curves, as in Fig. 10."""
    options = {"figsize": (FULL_WIDTH, 2 * ROW_HEIGHT), "width_ratios": (1.25, 1), "layout": "constrained"}
    figure, axes = plt.subplot_mosaic([["left", "upper"], ["left", "lower"]], **options)
    return figure, (axes["left"], axes["upper"], axes["lower"])


def draw_received(ax, curves, title, *, first=0, fill=False):
    """Draw the received attention of each condition and return its lines, then the fills.

    `curves` maps a condition, by key or name, to weights (T,), NaN where undefined; x counts tokens from
    `first`. Figs 9, 11, 13 and 18; Fig. 10 right with `fill`.
    """
    lines, fills = [], []
    for label, weights in curves.items():
        look, text = look_of(label)
        tokens = np.arange(first, first + len(weights))
        marker = look.marker if np.isfinite(weights).sum() == 1 else None  # a lone point has no line
        lines += ax.plot(tokens, weights, color=look.colour, linestyle=look.line, marker=marker, label=text)
        if fill:
            fills.append(ax.fill_between(tokens, weights, color=look.colour, alpha=0.12, linewidth=0))
    ax.set(title=textwrap.fill(title, 32), ylabel="Average attention weight (received)")
    integer_axis(ax.xaxis, "Token position")
    legend_above(ax)
    return lines + fills


def shade_span(ax, start, stop, label="Meaningless tokens"):
    """Shade tokens start to stop - 1 in grey, name them in the legend, and return the patch: Figs 13, 18."""
    patch = ax.axvspan(start - 0.5, stop - 0.5, color="0.87", linewidth=0, zorder=0, label=label)
    legend_above(ax)
    return patch


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


def draw_accuracy_bars(ax, groups, *, top=100):
    """Draw accuracies in % with their 95% intervals, a `Group` per model, and return the bars: Fig. 10 left.

    The paper's own numbers are hatched and carry no interval. `top` is the last tick of the y axis in %.
    """
    groups = [Group(*group) for group in groups]
    counts = [len(group.bars) for group in groups]
    width, rotation = 0.84 / max(counts), 90 * (sum(counts) > 9)  # level numbers would touch
    drawn = []
    for position, group in enumerate(groups):
        left = position - width * (len(group.bars) - 1) / 2
        for index, bar in enumerate(group.bars):
            drawn.append(_draw_bar(ax, left + index * width, 0.9 * width, *bar, group.paper, rotation))
    wrap = max(9, 40 // len(groups))
    names = [textwrap.fill(group.label, wrap) + "\n(paper)" * group.paper for group in groups]
    ax.set_xticks(range(len(groups)), names)
    ax.set(ylabel="Accuracy (%)", ylim=(0, 1.16 * top), yticks=np.linspace(0, top, 6))
    ax.grid(False, axis="x")
    looks = [look_of(name) for name in dict.fromkeys(bar[0] for group in groups for bar in group.bars)]
    handles = [patches.Patch(color=look.colour, label=text) for look, text in looks]
    reported = patches.Patch(facecolor="white", edgecolor="0.3", hatch=HATCH, label="reported in the paper")
    handles += [reported] * any(group.paper for group in groups)
    ax.legend(handles=handles, ncols=2, loc="upper right", borderaxespad=0.2)
    return drawn


def _draw_bar(ax, x, width, condition, accuracy, low, high, paper, rotation):
    """Draw one accuracy in %, with its interval and its number above, and return the rectangle."""
    colour = look_of(condition)[0].colour
    look = {"facecolor": "white", "edgecolor": colour, "hatch": HATCH} if paper else {"color": colour}
    (rectangle,) = ax.bar(x, accuracy, width, **look)
    if not paper:
        intervals(ax, [x], [low], [high], "black")
    ends = np.array([accuracy, None if paper else high], dtype=float)
    place = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
    text = f"{accuracy:.1f}" if np.isfinite(accuracy) else "n/a"
    ax.annotate(text, (x, np.nan_to_num(ends).max()), rotation=rotation, **place)
    return rectangle


def draw_accuracy_points(ax, labels, estimates, lows, highs, title, *, reported=None):
    """Draw accuracies in % with their 95% intervals at evenly spaced labels; return this run's points.

    `reported` holds the paper's numbers, NaN where it gives none: hollow, without intervals. Fig. 8, Tables 4, 5.
    """
    places, look = np.arange(len(labels)), CONDITION_STYLES["mless"]
    intervals(ax, places, lows, highs, look.colour)
    (points,) = ax.plot(places, estimates, color=look.colour, linestyle="none", marker=look.marker, label="this run")
    if reported is not None and np.isfinite(reported).any():
        ax.plot(places, reported, color="0.3", linestyle="none", marker="o", fillstyle="none", label="the paper, 7B")
    ax.set_xticks(places, [textwrap.fill(label, 9, break_long_words=False) for label in labels])
    ax.set(title=title, ylabel="Accuracy (%)", xmargin=0.1)
    legend_above(ax)
    return points


def intervals(ax, x, lows, highs, colour):
    """Draw a capped bar from low to high at each x and return the lines; the arrays are (n,)."""
    ends = np.array([lows, highs], dtype=float)  # (2, n)
    look = {"color": colour, "marker": "_", "markersize": 4, "linestyle": "-", "linewidth": 0.9}
    return ax.plot(np.array([x, x], dtype=float), ends, **look)


def caption(figure, text):
    """Write a small line below the axes (model, revision, n, dtype) and return the text."""
    wrapped = textwrap.fill(text, int(22 * figure.get_figwidth()))
    figure.set_figheight(figure.get_figheight() + 0.12 * (wrapped.count("\n") + 1))  # the axes keep theirs
    return figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=6, color="0.3")


def save_figure(figure, folder, name, table):
    """Write name.png, name.pdf and name.csv (the DataFrame `table`) and return the three paths.

    The same data give the same bytes. Raises InputError naming the folder when it cannot be written.
    """
    folder, contents = Path(folder), {}
    for kind, varying in (("png", "Software"), ("pdf", "CreationDate")):
        buffer = io.BytesIO()
        with style():
            figure.savefig(buffer, format=kind, dpi=160, metadata={varying: None})
        contents[kind] = buffer.getvalue()
    contents["csv"] = table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_replace(folder / f"{name}.{kind}", data) for kind, data in contents.items()]
    except OSError as error:
        raise InputError(f"cannot write figure {name} to {folder}: {error.strerror or error}") from error


def _replace(path, data):
    """Write bytes beside `path` and move them over it, so that a reader never meets half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_bytes(data)
        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
