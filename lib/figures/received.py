"""Draws the paper's figures: every function takes axes and arrays and returns what it drew.

Nothing is loaded or computed here, and only `save_figure` touches the disk. A condition has one colour, line
style, marker and set of names, in `CONDITION_STYLES`. Make the figures under `with style():`.
"""

import textwrap
from collections import namedtuple

import numpy as np

from lib.figures.style import integer_axis, legend_above, look_of

# One model's bars: (condition, accuracy, low, high) each, in %; `paper` marks reported numbers.
Group = namedtuple("Group", "label bars paper", defaults=(False,))


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
