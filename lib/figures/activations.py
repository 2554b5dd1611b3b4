"""What insertions and ARM do to activations and answers: the paper's Figs. 4, 6, 7 and 12 with intervals."""

import numpy as np
from matplotlib import colors, patches

from lib.figures.style import CONDITION_STYLES, beside, even_line, integer_axis, legend_above, look_of
from lib.statistics import told

CHANGE_LABEL = "with / without (log scale)"


def draw_redistribution(axes, starts, counts, changes, title):
    """Draw a column per layer, histograms above and what changed below, each row on one scale, and return it: Fig. 4.

    `axes` is (2, L), `counts` maps a condition to (L, bins), `changes` has each layer's names and curves of measures.
    """
    reach = [end for _, curves in changes for _, *ends in curves.values() for end in np.ravel(ends)]
    for index, (names, curves) in enumerate(changes):
        top, bottom = axes[:, index]
        top.sharey(axes[0, 0])
        layer = {condition: numbers[index] for condition, numbers in counts.items()}
        draw_histograms(top, starts, layer, f"{title}, layer {index + 1}")
        draw_changes(bottom, names, curves, f"layer {index + 1}", (min(reach), max(reach)))
    axes[1, 0].legend(loc="best", borderaxespad=0.2)
    return axes


def draw_histograms(ax, starts, counts, title):
    """Draw the share of activations in each bin, a line per condition, on a log scale; return the lines: Fig. 4.

    `starts` (bins,) is where each bin begins, `counts` maps a condition to numbers (bins,), whose ends hold what lies
    outside: left out.
    """
    lines = []
    for condition, numbers in counts.items():
        look, text = look_of(condition)
        share = 100 * np.asarray(numbers, dtype=float)[1:-1] / np.sum(numbers)
        centres = (np.asarray(starts)[1:-1] + np.asarray(starts)[2:]) / 2
        lines += ax.plot(centres, share, color=look.colour, linestyle=look.line, linewidth=0.8, label=text)
    ax.set(title=title, xlabel="activation", ylabel="share of activations (%)", yscale="log")
    ax.legend(loc="upper right", borderaxespad=0.2)
    return lines


def draw_changes(ax, names, curves, title, reach):
    """Draw how many times as large each measure is as without, and its interval; return the points: Fig. 4.

    `curves` maps a condition to (estimates, lows, highs), (n,) each; `reach` is the lowest and highest value to make
    room for, so that several axes can be equal.
    """
    even_line(ax)
    drawn = beside(ax, range(len(names)), curves, 0.17)
    ax.set_xticks(range(len(names)), [name.replace("variance", "var.").replace(" ", "\n") for name in names])
    ax.set(title=title, ylabel=CHANGE_LABEL, yscale="log", xlim=(-0.6, len(names) - 0.4))
    _plain_log_ticks(ax, reach)
    ax.grid(False, axis="x")
    return drawn


def _plain_log_ticks(ax, values):
    """Give a log axis of ratios room and ticks in plain numbers, few enough to read."""
    low, high = min(0.9, *values), max(1.1, *values)
    low, high = low / (high / low) ** 0.06, high * (high / low) ** 0.06
    round_ones = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    ticks = [step for step in sorted([*round_ones, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, 3]) if low <= step <= high]
    if len(ticks) > 8:
        ticks = [step for step in ticks if step in round_ones]
    ax.set_ylim(low, high)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def draw_change_by_layer(ax, layers, curves, title):
    """Draw one measure with / without over the layers, counted from 1, a line per condition; return the lines.

    `curves` maps a condition to (estimates, lows, highs), (L,) each.
    """
    lines = []
    even_line(ax)
    for condition, (estimates, lows, highs) in curves.items():
        look, text = look_of(condition)
        ax.fill_between(layers, lows, highs, color=look.colour, alpha=0.2, linewidth=0)
        lines += ax.plot(layers, estimates, color=look.colour, linestyle=look.line, marker=look.marker, label=text)
    ax.set(title=title, ylabel=CHANGE_LABEL, yscale="log", xmargin=0.02)
    _plain_log_ticks(ax, [value for curve in curves.values() for part in curve for value in part])
    integer_axis(ax.xaxis, "Layer")
    ax.legend(loc="best", borderaxespad=0.2)
    return lines


def draw_classes(ax, names, curves, title):
    """Draw the near-zero share in % of n classes, by condition (estimates, lows, highs); return the points: Fig. 7."""
    drawn = beside(ax, range(len(names)), curves, 0.2)
    ax.set_xticks(range(len(names)), names)
    ax.set(title=title, ylabel="near-zero activations (%)", xlim=(-0.6, len(names) - 0.4))
    legend_above(ax)
    ax.grid(False, axis="x")
    return drawn


def draw_arm_map(ax, rows, columns, effects, lows, highs, title):
    """Draw the effect of ARM in points (c, p1), its interval as text, framed where 0 is outside; return the image."""
    effects, lows, highs = (np.asarray(values, dtype=float) for values in (effects, lows, highs))
    reach = max(1.0, float(np.abs(effects).max()))
    image = ax.imshow(effects, cmap="PuOr_r", norm=colors.Normalize(-reach, reach), aspect="auto")
    for (row, column), effect in np.ndenumerate(effects):
        low, high = lows[row, column], highs[row, column]
        colour = "white" if abs(effect) > 0.6 * reach else "black"
        text = told(effect, low, high, "+").replace(" [", "\n[")
        ax.text(column, row, text, ha="center", va="center", color=colour)
        if low > 0 or high < 0:
            place = (column - 0.47, row - 0.47)
            ax.add_patch(patches.Rectangle(place, 0.94, 0.94, fill=False, edgecolor="black", linewidth=1.5))
    ax.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    ax.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    ax.set(title=title, xlabel="p1 (percentile)", ylabel="c")
    ax.grid(False)
    ax.figure.colorbar(image, ax=ax, label="ARM - none (points)")
    return image


def draw_pass_at_k(ax, ks, curves, title):
    """Draw pass@k in % at n values of k, a line per condition -> (estimates, lows, highs); return the lines: Fig. 6."""
    lines = beside(ax, range(len(ks)), curves, 0.08, line=None)
    ax.set_xticks(range(len(ks)), map(str, ks))
    ax.set(title=title, xlabel="k", ylabel="pass@k (%)")
    legend_above(ax)
    return lines


def draw_effects(ax, labels, effects, lows, highs, title):
    """Draw differences (n,) to none in points with their intervals, a row per label from the top; return the points."""
    places, look = np.arange(len(labels))[::-1], CONDITION_STYLES["arm"]
    ax.axvline(0, color="0.35", linestyle="--", linewidth=0.8, zorder=1)
    ax.hlines(places, lows, highs, color=look.colour, linewidth=0.9)
    (points,) = ax.plot(effects, places, color=look.colour, linestyle="none", marker=look.marker)
    ax.set_yticks(places, labels)
    ax.set(title=title, xlabel="against none (points)", ylim=(-0.6, len(labels) - 0.4))
    ax.grid(False, axis="y")
    return points
