"""Accuracies as bars beside the paper's (Fig. 10 left), and as points over settings (Fig. 8)."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patches

from lib.figures.style import (
    CONDITION_STYLES,
    FULL_WIDTH,
    HATCH,
    ROW_HEIGHT,
    WHOLE,
    intervals,
    legend_above,
    look_of,
)

PAPER = {"linestyle": "none", "marker": "o", "fillstyle": "none", **WHOLE}


def fig10_layout():
    """Return (figure, (left, upper right, lower right)): bars beside two stacked curves, as in Fig. 10."""
    options = {"figsize": (FULL_WIDTH, 2 * ROW_HEIGHT), "width_ratios": (1.25, 1), "layout": "constrained"}
    figure, axes = plt.subplot_mosaic([["left", "upper"], ["left", "lower"]], **options)
    return figure, (axes["left"], axes["upper"], axes["lower"])


def draw_accuracy_bars(ax, groups):
    """Draw accuracies in % with their 95% intervals and return the bars: Fig. 10 left.

    A group is (label, bars, paper), a bar (condition, accuracy, low, high); the paper's are hatched, without intervals.
    """
    counts = [len(bars) for _, bars, _ in groups]
    width, rotation = 0.84 / max(counts), 90 * (sum(counts) > 9)  # level numbers would touch
    drawn = []
    for position, (_, bars, paper) in enumerate(groups):
        left = position - width * (len(bars) - 1) / 2
        for index, bar in enumerate(bars):
            drawn.append(_draw_bar(ax, left + index * width, 0.9 * width, *bar, paper=paper, rotation=rotation))
    wrap = max(9, 40 // len(groups))
    ax.set_xticks(range(len(groups)), [textwrap.fill(name, wrap) + "\n(paper)" * paper for name, _, paper in groups])
    ax.set(ylabel="Accuracy (%)", ylim=(0, 116), yticks=range(0, 101, 20))
    ax.grid(False, axis="x")
    looks = [look_of(name) for name in dict.fromkeys(bar[0] for _, bars, _ in groups for bar in bars)]
    handles = [patches.Patch(color=look.colour, label=text) for look, text in looks]
    reported = patches.Patch(facecolor="white", edgecolor="0.3", hatch=HATCH, label="reported in the paper")
    handles += [reported] * any(paper for *_, paper in groups)
    ax.legend(handles=handles, ncols=2, loc="upper right", borderaxespad=0.2)
    return drawn


def _draw_bar(ax, x, width, condition, accuracy, low, high, paper, rotation):
    colour = look_of(condition)[0].colour
    look = {"facecolor": "white", "edgecolor": colour, "hatch": HATCH} if paper else {"color": colour}
    (rectangle,) = ax.bar(x, accuracy, width, **look)
    if not paper:
        intervals(ax, [x], [low], [high], "black")
    ends = np.array([accuracy, None if paper else high], dtype=float)
    text, place = f"{accuracy:.1f}" if np.isfinite(accuracy) else "n/a", (x, np.nan_to_num(ends).max())
    ax.annotate(text, place, (0, 2), textcoords="offset points", ha="center", va="bottom", rotation=rotation)
    return rectangle


def draw_accuracy_points(ax, labels, estimates, lows, highs, title, *, reported=None):
    """Draw accuracies in % with their 95% intervals, `reported` ones hollow (NaN: none); return the points: Fig. 8."""
    places, look = np.arange(len(labels)), CONDITION_STYLES["mless"]
    intervals(ax, places, lows, highs, look.colour)
    (points,) = ax.plot(places, estimates, color=look.colour, linestyle="none", marker=look.marker, label="this run")
    if reported is not None and np.isfinite(reported).any():
        ax.plot(places, reported, color="0.3", label="the paper, 7B", **PAPER)
    ax.set_xticks(places, [textwrap.fill(label, 9, break_long_words=False) for label in labels])
    ax.set(title=title, ylabel="Accuracy (%)", xmargin=0.1)
    legend_above(ax)
    return points
