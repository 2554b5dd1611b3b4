"""The figures of attention over all problems: λ by head and layer, and what the
inserted tokens take.

    figures.causes(run, table)  # draws it, saves png, pdf and csv, and shows it

run: a profile; tables: as `lib.measurement.measured_tables` makes them. What a figure
shows and how to read it is in data/figures.yaml.
"""

import numpy as np
from matplotlib import colors

from lib.figures import draw
from lib.figures.layout import Layout, in_model_order, page, panels
from lib.figures.looks import (
    EVEN,
    LAMBDA,
    LOOKS,
    Look,
    from_zero,
    integer_axis,
)

SPAN_MEASURES = {
    "mass": "Attention mass",
    "flatness": "Coefficient of variation",
    "dispersion": "Dispersion of values",
}
MASS_LOOKS = {
    "slashes": LOOKS["mless"],
    "a sentence as long": LOOKS["random"],
    "slashes, untrained networks": Look("0.6", "v"),
    "slashes, attention spread evenly": Look("0.35", "_"),
}
SPAN_NOTE = "Layer 1, means over heads. "
UNTRAINED_STYLE = {"color": "0.85", "linewidth": 0, "zorder": 0.5}
UNIFORM_STYLE = {"color": "0.45", "linestyle": ":", "linewidth": 1.4, "zorder": 0.9}
# The map's colours end at half and at twice the attention.
MAP_STYLE = {
    "cmap": "PuOr_r",
    "norm": colors.LogNorm(0.5, 2),
    "aspect": "auto",
    "interpolation": "none",
}
MAP_TICKS = [0.5, 0.7, 1, 1.4, 2]


def lambda_by_head(run, table, controls):
    """Draw λ of every head of layer 1 under the slashes, with what untrained networks
    of the shape give.
    """
    first = table[(table.condition == "mless") & (table.layer == 1)]
    layout = Layout(ylabel=LAMBDA, note="Layer 1. ")
    saved = [table, controls]
    for (ax,), rows in panels(
        run, "lambda_by_head", first, ["model"], layout=layout, saved=saved
    ):
        ax.axhline(1, **EVEN)
        draw.estimates(ax, rows, "head", "lambda")
        _controls(ax, rows, "head", controls)
        _lambda_axes(ax, rows, "head")


def lambda_by_layer(run, table, controls):
    """Draw λ, the mean over heads, over the layers, a curve per insertion."""
    means = table[table.measure == "lambda"]
    layout = Layout(ylabel=LAMBDA, note="Means over heads. ")
    saved = [table, controls]
    for (ax,), rows in panels(
        run, "lambda_by_layer", means, ["model"], layout=layout, saved=saved
    ):
        ax.axhline(1, **EVEN)
        draw.estimates(ax, rows, "layer", "mean", style=draw.LINES)
        _controls(ax, rows, "layer", controls)
        _lambda_axes(ax, rows, "layer")


def mass_by_layer(run, table):
    """Draw the share of attention that the inserted tokens take over the layers."""
    layout = Layout(ylabel="% of later tokens' attention", note="Means over heads. ")
    for (ax,), rows in panels(run, "mass_by_layer", table, ["model"], layout=layout):
        draw.estimates(ax, rows, "layer", "mass", "inserted", MASS_LOOKS, draw.LINES)
        _lambda_axes(ax, rows, "layer")


def causes(run, table):
    """Draw λ of each cause side by side at each head of layer 1."""
    layout = Layout(ylabel=LAMBDA, note="Later original tokens only. ")
    for (ax,), rows in panels(run, "causes", table, ["model"], layout=layout):
        ax.axhline(1, **EVEN)
        draw.estimates(ax, rows, "head", "lambda", "cause")
        _lambda_axes(ax, rows, "head")


def _lambda_axes(ax, rows, x):
    """Let λ begin at 0, and the heads or layers of x have half a step of room."""
    ax.set_xlim(rows[x].min() - 0.5, rows[x].max() + 0.5)
    from_zero(ax)
    integer_axis(ax.xaxis, x.capitalize())


def _controls(ax, rows, x, controls):
    """Draw behind λ what each control shows in the same layers, from its lowest head to
    its highest.
    """
    of_model = controls[controls.model == rows.model.iloc[0]]
    of_layers = of_model[of_model.layer.isin(rows.layer)]
    for control in of_layers.itertuples():
        ends = (rows[x].min() - 0.5, rows[x].max() + 0.5)
        if x == "layer":
            ends = (control.layer - 0.5, control.layer + 0.5)
        if control.control == "uniform":
            even = [control.lowest, control.lowest]
            ax.plot(ends, even, label="attention spread evenly", **UNIFORM_STYLE)
        else:
            low = control.lowest
            high = control.highest
            label = "untrained networks"
            ax.fill_between(ends, low, high, label=label, **UNTRAINED_STYLE)


def lambda_map(run, table):
    """Draw λ of every layer and head under the slashes as a map, all models on one log
    scale of colours.

    What lies beyond 0.5 to 2 has the colour of the end, NaN is hatched, and a dot marks
    λ above 1.
    """
    slashes = in_model_order(run, table[table.condition == "mless"])
    models = slashes.groupby("model", sort=False)
    layout = Layout(panels=len(models))
    with page(run, "lambda_map", [table], "attention", layout) as axes:
        for ax, (model, rows) in zip(axes, models, strict=True):
            ratios = rows.pivot(index="layer", columns="head", values="lambda")
            image = _map(ax, ratios.to_numpy(float))
            ax.set_title(f"{model}, 55 slashes")
        bar = axes[0].figure.colorbar(
            image,
            ax=list(axes),
            ticks=MAP_TICKS,
            extend="both",
            format="%g",
            label=LAMBDA,
        )
        bar.minorticks_off()


def _map(ax, ratios):
    """Draw λ (L, H) as a map whose layers and heads count from 1, and return it."""
    layers, heads = ratios.shape
    extent = (0.5, heads + 0.5, layers + 0.5, 0.5)
    ax.patch.set(hatch="xxxx", edgecolor="0.8")
    image = ax.imshow(np.ma.masked_invalid(ratios), extent=extent, **MAP_STYLE)
    layer, head = np.nonzero(ratios > 1)
    ax.scatter(head + 1, layer + 1, s=3, color="black", linewidths=0, label="λ > 1")
    ax.grid(False)
    integer_axis(ax.xaxis, "Head")
    integer_axis(ax.yaxis, "Layer")
    return image


def inserted_span(run, table):
    """Draw what the inserted tokens of layer 1 receive and carry, a panel per measure
    and a row per model.
    """
    first = in_model_order(run, table[table.layer == 1])
    models = list(dict.fromkeys(first.model))
    layout = Layout(
        panels=len(SPAN_MEASURES), height=0.5 + 0.3 * len(models), note=SPAN_NOTE
    )
    with page(run, "inserted_span", [table], "attention", layout) as axes:
        for ax, (measure, title) in zip(axes, SPAN_MEASURES.items(), strict=True):
            rows = first[first.measure == measure]
            draw.model_rows(ax, rows, "mean", models)
            # Of few problems there is no interval.
            farthest = rows[["mean", "high"]].max(axis=None)
            ax.set_xlim(0, 1.08 * farthest)
            ax.set_title(title)
        for ax in axes[1:]:
            ax.tick_params(axis="y", labelleft=False)
