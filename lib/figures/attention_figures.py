"""The figures of attention: curves of single heads on one prompt, and λ over all
problems.

    figures.fig13(run, curves)  # draws it, saves png, pdf and csv, and shows it

run: a profile; tables: as `lib.measurement.measured_tables` makes them. What a figure
shows and how to read it is in data/figures.yaml.
"""

from itertools import product

import numpy as np
from matplotlib import colors

from lib.figures import draw
from lib.figures.draw import HeadCurves
from lib.figures.looks import (
    EVEN,
    LAMBDA,
    LOOKS,
    RECEIVED,
    Look,
    from_zero,
    integer_axis,
)
from lib.figures.page import Layout, page, panels

# The panels of a head, by figure.
HEAD_CURVES = {
    "fig09": [HeadCurves({"none": "None", "mless": "Mless"})],
    "fig10_right": [
        HeadCurves(
            {"none": "None", "mless": "Mless", "mful": "Mful"},
            title=": original tokens",
            fill=True,
        ),
        HeadCurves({"mless": "Mless", "mful": "Mful"}, title=": whole prompt"),
    ],
    "fig11": [
        HeadCurves(
            {"random": "Random sentence", "mless": "Meaningless tokens"},
            shade="inserted tokens",
        )
    ],
    "fig13": [
        HeadCurves(
            {"none": "w/o Meaningless tokens", "mless": "w/ Meaningless tokens"}
        ),
        HeadCurves({"mless": "w/ Meaningless tokens"}, shade="Meaningless tokens"),
    ],
}
HEAD_CURVES["fig18"] = HEAD_CURVES["fig13"]  # heads of another model
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


def _head_curves(run, name, curves, spans=None):
    """Draw for each head that the table of curves has the panels of HEAD_CURVES; the
    csv has the same heads' spans, too.
    """
    heads = [head for _, head in curves.groupby(["model", "layer", "head"], sort=False)]
    saved = [curves]
    if spans is not None:
        saved.append(spans[spans.figure == name.removesuffix("_right")])
    layout = Layout(
        panels=len(HEAD_CURVES[name]) * len(heads),
        columns=len(heads) if spans is None else None,
        ylabel=RECEIVED,
        note=f"One prompt, of problem {curves.problem.iloc[0]}. ",
    )
    with page(run, name, saved, "attention", layout) as axes:
        of_panels = product(HEAD_CURVES[name], heads)
        for ax, (compared, head) in zip(axes, of_panels, strict=True):
            draw.received(ax, head, compared)
            if not ax.get_subplotspec().is_last_row():
                ax.set_xlabel("")


def fig09(run, curves, spans):
    """Draw the same head in layers 1, 2 and 3: its original tokens without and with the
    slashes.
    """
    _head_curves(run, "fig09", curves, spans)


def fig10_right(run, curves, spans):
    """Draw one head: its original tokens under three conditions, and the whole prompt
    with either insertion.
    """
    _head_curves(run, "fig10_right", curves, spans)


def fig11(run, curves, spans):
    """Draw whole prompts, with slashes and with a random sentence as long."""
    _head_curves(run, "fig11", curves, spans)


def fig13(run, curves):
    """Draw heads of layer 1, a column each: the original tokens without and with, below
    the whole prompt with it.
    """
    _head_curves(run, "fig13", curves)


def fig18(run, curves):
    """Draw heads of another model as `fig13` does."""
    _head_curves(run, "fig18", curves)


def lambda_by_head(run, table, controls):
    """Draw λ of every head of the first layers under the slashes, with what untrained
    networks of the shape give.
    """
    slashes = table[table.condition == "mless"]
    slashes = slashes.assign(place="layer " + slashes.layer.astype(str))
    layout = Layout(ylabel=LAMBDA)
    saved = [table, controls]
    for (ax,), rows in panels(
        run, "lambda_by_head", slashes, ["model", "place"], layout=layout, saved=saved
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
    same = (controls.model == rows.model.iloc[0]) & controls.layer.isin(rows.layer)
    for control in controls[same].itertuples():
        ends = (rows[x].min() - 0.5, rows[x].max() + 0.5)
        if x == "layer":
            ends = (control.layer - 0.5, control.layer + 0.5)
        if control.control == "uniform":
            even = [control.lowest, control.lowest]
            ax.plot(ends, even, label="attention spread evenly", **UNIFORM_STYLE)
        else:
            area = (control.lowest, control.highest)
            ax.fill_between(ends, *area, label="untrained networks", **UNTRAINED_STYLE)


def lambda_map(run, table):
    """Draw λ of every layer and head under the slashes as a map, all models on one log
    scale of colours.

    What lies beyond 0.5 to 2 has the colour of the end, NaN is hatched, and a dot marks
    λ above 1.
    """
    models = table[table.condition == "mless"].groupby("model", sort=False)
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
    """Draw what the inserted tokens of layer 1 receive and carry, a row per model and a
    column per measure.
    """
    first = table[table.layer == 1]
    first = first.assign(what=first.measure.map(SPAN_MEASURES))
    layout = Layout(ylabel="layer 1, mean over heads")
    for (ax,), rows in panels(
        run, "inserted_span", first, ["model", "what"], layout=layout, saved=[table]
    ):
        draw.estimates(ax, rows, "condition", "mean", style=draw.SeriesStyle(gap=0))
        from_zero(ax)
