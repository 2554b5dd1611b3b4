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
from matplotlib import colors, patches, ticker

from lib.errors import InputError

FULL_WIDTH, ROW_HEIGHT = 7.2, 2.6  # inches: a printed page, and what the longest y label needs
HATCH, LAMBDA_LABEL = "/////", "λ = received attention with / without"
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
# Okabe and Ito's palette, in an order whose grey values differ: 0.34, 0.47, 0.62, 0.
CONDITION_STYLES = {
    "none": Look("#0072B2", "-", "o", ("None", "w/o Meaningless tokens", "w/o")),
    "mless": Look("#D55E00", (0, (4, 1)), "s", ("Mless", "w/ Meaningless tokens", "Meaningless tokens")),
    "mful": Look("#56B4E9", (0, (5, 1, 1, 1)), "^", ("Mful", "w/ Meaningful tokens", "Meaningful tokens")),
    "random": Look("#000000", (0, (1, 1)), "D", ("Random sentence", "w/ Random sentence")),
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
    _integer_axis(ax.xaxis, "Token position")
    _legend_above(ax)
    return lines + fills


def shade_span(ax, start, stop, label="Meaningless tokens"):
    """Shade tokens start to stop - 1 in grey, name them in the legend, and return the patch: Figs 13, 18."""
    patch = ax.axvspan(start - 0.5, stop - 0.5, color="0.87", linewidth=0, zorder=0, label=label)
    _legend_above(ax)
    return patch


def _legend_above(ax):
    """Start the y axis at 0 and put the legend into room made above the data."""
    handles, labels = ax.get_legend_handles_labels()
    columns = len(labels) if len("".join(labels)) <= 16 else 1
    ax.legend(handles, labels, ncols=columns, loc="upper right", borderaxespad=0.2, labelspacing=0.3)
    highest = ax.dataLim.y1 if 0 < ax.dataLim.y1 < np.inf else 1
    ax.set_ylim(0, highest / (0.92 - 0.08 * len(labels) / columns))


def _integer_axis(axis, name):
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
        _intervals(ax, [x], [low], [high], "black")
    ends = np.array([accuracy, None if paper else high], dtype=float)
    place = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
    text = f"{accuracy:.1f}" if np.isfinite(accuracy) else "n/a"
    ax.annotate(text, (x, np.nan_to_num(ends).max()), rotation=rotation, **place)
    return rectangle


def _intervals(ax, x, lows, highs, colour):
    """Draw a capped bar from low to high at each x and return the lines; the arrays are (n,)."""
    ends = np.array([lows, highs], dtype=float)  # (2, n)
    look = {"color": colour, "marker": "_", "markersize": 4, "linestyle": "-", "linewidth": 0.9}
    return ax.plot(np.array([x, x], dtype=float), ends, **look)


def draw_lambda_by_head(ax, heads, estimates, lows, highs, title):
    """Draw λ and its interval (H,) against 1, `heads` counted from 1; return the points and intervals."""
    ax.set_title(title)
    look = CONDITION_STYLES["mless"]._replace(line="none")
    return _draw_lambda(ax, heads, estimates, lows, highs, look, "Head")


def draw_lambda_by_layer(ax, layers, estimates, lows, highs, label):
    """Draw λ and its interval (L,) over the layers against 1; return the curve and the intervals.

    `layers` counts from 1. Call it again to add a curve; a condition's name as label brings its look.
    """
    looks = CONDITION_STYLES.values()
    taken = {line.get_color() for line in ax.lines}
    free = [look for look in looks if look.colour not in taken] or list(looks)
    look = next((look for look in looks if label in look.names), free[0])
    artists = _draw_lambda(ax, layers, estimates, lows, highs, look, "Layer", label=label)
    _legend_above(ax)
    return artists


def _draw_lambda(ax, x, estimates, lows, highs, look, axis_name, **options):
    """Draw estimates and intervals (n,) and, once, the line λ = 1; return the estimates' line first."""
    if not ax.lines:
        ax.axhline(1, color="0.35", linestyle="--", linewidth=0.8, zorder=1)
    intervals = _intervals(ax, x, lows, highs, look.colour)
    (curve,) = ax.plot(x, estimates, color=look.colour, linestyle=look.line, marker=look.marker, **options)
    ax.set(ylabel=LAMBDA_LABEL, xmargin=0.02)  # a wider margin would show a layer or head 0
    _integer_axis(ax.xaxis, axis_name)
    return [curve, *intervals]


def draw_lambda_map(ax, values, title):
    """Draw λ (L, H) on a log colour scale centred on 1 and return the image; `image.colorbar` is its bar.

    NaN cells are hatched. Few cells carry their number, in many a dot marks λ > 1: grey print shows either.
    """
    values = np.ma.masked_invalid(np.asarray(values, dtype=float))
    reach = float(np.exp(np.abs(np.log(values.compressed())).max(initial=np.log(1.1))))
    extent = (0.5, values.shape[1] + 0.5, values.shape[0] + 0.5, 0.5)  # layers and heads count from 1
    ax.patch.set(hatch="xxxx", edgecolor="0.8")
    norm = colors.LogNorm(1 / reach, reach)
    image = ax.imshow(values, cmap="PuOr_r", norm=norm, extent=extent, aspect="auto", interpolation="none")
    ax.set_title(title)
    ax.grid(False)
    _integer_axis(ax.xaxis, "Head")
    _integer_axis(ax.yaxis, "Layer")
    _mark_cells(ax, values, reach)
    ticks = reach ** np.linspace(-1, 1, 5)
    ax.figure.colorbar(image, ax=ax, label=LAMBDA_LABEL, ticks=ticks, format="%.2f").minorticks_off()
    return image


def _mark_cells(ax, values, reach):
    """Write the numbers into a small map (L, H), or put dots on the cells above 1 of a large one."""
    if values.size > 60:
        layers, heads = np.nonzero(values.filled(0) > 1)
        ax.scatter(heads + 1, layers + 1, s=3, color="black", linewidths=0)
        ax.set_xlabel("Head (dot: λ > 1)")
        return
    for layer, head in np.argwhere(~np.ma.getmaskarray(values)):
        value = values[layer, head]
        colour = "white" if abs(np.log(value)) > 0.6 * np.log(reach) else "black"
        ax.text(head + 1, layer + 1, f"{value:.2f}", ha="center", va="center", color=colour)


def draw_flatness(ax, conditions, estimates, lows, highs):
    """Draw the inserted span's coefficient of variation, a point per condition, and return the points.

    The arrays are (n,). The paper calls the attention to Mless flat: near 0.
    """
    points = []
    for index, condition in enumerate(conditions):
        look = look_of(condition)[0]
        _intervals(ax, [index], [lows[index]], [highs[index]], look.colour)
        points += ax.plot([index], [estimates[index]], color=look.colour, marker=look.marker, markersize=5)
    names = [textwrap.fill(look_of(condition)[1], 12) for condition in conditions]
    ax.set_xticks(range(len(names)), names)
    ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(0, None), ylabel="Coefficient of variation of the span")
    ax.grid(False, axis="x")
    return points


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
