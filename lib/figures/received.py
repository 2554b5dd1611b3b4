"""Received attention over the tokens of a prompt: Figs. 9, 10 right, 11, 13 and 18."""

import numpy as np

from lib.figures.style import integer_axis, legend_above, look_of, panel_title


def draw_received(ax, curves, title, *, first=0, fill=False):
    """Draw the received attention of each condition and return its lines, then the fills (of Fig. 10).

    `curves` maps a condition, by key or name, to weights (T,), NaN where undefined; x counts tokens from `first`.
    """
    lines, fills = [], []
    for label, weights in curves.items():
        look, text = look_of(label)
        tokens = np.arange(first, first + len(weights))
        marker = look.marker if np.isfinite(weights).sum() == 1 else None  # a lone point has no line
        lines += ax.plot(tokens, weights, color=look.colour, linestyle=look.line, marker=marker, label=text)
        if fill:
            fills.append(ax.fill_between(tokens, weights, color=look.colour, alpha=0.12, linewidth=0))
    panel_title(ax, title)
    ax.set_ylabel("Average attention weight (received)")
    integer_axis(ax.xaxis, "Token position")
    legend_above(ax)
    return lines + fills


def draw_heads(axes, heads):
    """Draw a column per head and return the lines: Figs. 13 and 18.

    `axes` is (2, n). A head is (title, before, after, whole, span): its original tokens without and with the insertion
    (T,), drawn above, and the whole prompt with it (T + inserted,), below, where the slice `span` is shaded.
    """
    lines = []
    for top, bottom, (title, before, after, whole, span) in zip(*axes, heads, strict=True):
        curves = {"w/o Meaningless tokens": before, "w/ Meaningless tokens": after}
        lines += draw_received(top, curves, title, first=1)
        lines += draw_received(bottom, {"w/ Meaningless tokens": whole}, title, first=1)
        ends = span.start - 0.5, span.stop - 0.5
        bottom.axvspan(*ends, color="0.87", linewidth=0, zorder=0, label="Meaningless tokens")
        legend_above(bottom)
    return lines
