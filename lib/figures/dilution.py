"""What is measured over many problems beside the paper's pictures: λ by head and layer, its map, the span, causes."""

import textwrap

import numpy as np
from matplotlib import colors

from lib.figures.style import (
    CONDITION_STYLES,
    WHOLE,
    beside,
    even_line,
    integer_axis,
    intervals,
    legend_above,
    look_of,
    panel_title,
)

LAMBDA_LABEL = "λ = received attention with / without"
SPAN_LABELS = {
    "mass": "Attention mass of the span",
    "flatness": "Coefficient of variation",
    "dispersion": "Dispersion of values",
}


def draw_lambda_by_head(ax, heads, estimates, lows, highs, title):
    """Draw λ and its interval (H,) against 1, `heads` counted from 1; return the points and intervals."""
    panel_title(ax, title)
    look = CONDITION_STYLES["mless"]._replace(line="none")
    return _draw_lambda(ax, heads, estimates, lows, highs, look, "Head")


def draw_lambda_by_layer(ax, layers, estimates, lows, highs, condition):
    """Add λ and its interval (L,) over the layers, counted from 1, against 1; return the curve and the intervals."""
    look, label = look_of(condition)
    artists = _draw_lambda(ax, layers, estimates, lows, highs, look, "Layer", label=label)
    legend_above(ax)
    return artists


def _draw_lambda(ax, x, estimates, lows, highs, look, axis_name, **options):
    """Draw estimates and intervals (n,) and, once, the line λ = 1; return the estimates' line first."""
    if not ax.lines:
        even_line(ax)
    drawn = intervals(ax, x, lows, highs, look.colour)
    (curve,) = ax.plot(x, estimates, color=look.colour, linestyle=look.line, marker=look.marker, **options)
    first, last = ax.dataLim.intervalx.round()
    # Half a step on either side: no mark is cut, and no layer or head 0 is shown.
    ax.set(ylabel=LAMBDA_LABEL, xlim=(first - 0.5, last + 0.5))
    integer_axis(ax.xaxis, axis_name)
    return [curve, *drawn]


def draw_controls(ax, controls, width=None):
    """Draw behind the data what the shape shows without training, and name it in the legend once.

    `controls` has a row per layer and control: untrained networks, a band from `lowest` to `highest`, or uniform
    attention, a line. A layer has its place on the x axis, or all `width` heads of a panel.
    """
    for row in controls.itertuples():
        ends = (0.5, width + 0.5) if width else (row.layer - 0.5, row.layer + 0.5)
        name = f"{row.control}{' attention' if row.control == 'uniform' else ' networks'}"
        label = None if name in ax.get_legend_handles_labels()[1] else name
        if row.control == "uniform":
            ax.plot(ends, [row.lowest] * 2, color="0.45", linestyle=":", linewidth=1.4, zorder=0.9, label=label)
        else:
            ax.fill_between(ends, row.lowest, row.highest, color="0.85", linewidth=0, zorder=0.5, label=label)
    legend_above(ax)


def draw_lambda_map(ax, values, title):
    """Draw λ (L, H) on a log colour scale centred on 1, NaN hatched, with numbers or dots (λ > 1); return the image."""
    values = np.ma.masked_invalid(np.asarray(values, dtype=float))
    reach = float(np.exp(np.abs(np.log(values.compressed())).max(initial=np.log(1.1))))
    extent = (0.5, values.shape[1] + 0.5, values.shape[0] + 0.5, 0.5)  # layers and heads count from 1
    ax.patch.set(hatch="xxxx", edgecolor="0.8")
    norm = colors.LogNorm(1 / reach, reach)
    image = ax.imshow(values, cmap="PuOr_r", norm=norm, extent=extent, aspect="auto", interpolation="none")
    ax.set_title(title)
    ax.grid(False)
    integer_axis(ax.xaxis, "Head")
    integer_axis(ax.yaxis, "Layer")
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
        text = ax.text(head + 1, layer + 1, f"{value:.2f}", ha="center", va="center", color=colour)
        text.set_rotation(90 * (values.shape[1] > 9))  # level numbers would touch


def draw_by_condition(ax, conditions, estimates, lows, highs, label):
    """Draw a measure (n,) of the inserted span with its interval, a point per condition, from 0 up; return them."""
    points, names = [], []
    for index, (condition, estimate, low, high) in enumerate(zip(conditions, estimates, lows, highs, strict=True)):
        look, text = look_of(condition)
        intervals(ax, [index], [low], [high], look.colour)
        points += ax.plot([index], [estimate], color=look.colour, marker=look.marker, markersize=5, **WHOLE)
        names.append(textwrap.fill(text, 12))
    ax.set_xticks(range(len(names)), names)
    highest = np.nanmax([*estimates, *highs, 0])
    ax.set(xlim=(-0.6, len(names) - 0.4), ylim=(0, 1.1 * highest or 1), ylabel=label)
    ax.grid(False, axis="x")
    return points


def draw_causes(ax, heads, curves, title):
    """Draw λ of each cause, (estimates, lows, highs), (H,) each, side by side at each head; return the points."""
    even_line(ax)
    drawn = beside(ax, heads, curves, 0.22)
    ax.set(title=title, ylabel=LAMBDA_LABEL, xlim=(min(heads) - 0.5, max(heads) + 0.5))
    integer_axis(ax.xaxis, "Head")
    legend_above(ax)
    return drawn
