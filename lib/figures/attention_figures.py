"""The figures of attention: curves of single heads on one prompt, and λ over all
problems.

    figures.fig13(run, curves)  # draws it, saves png, pdf and csv, and shows it

run: a profile; tables: as `lib.measurement.measured_tables` makes them, and curves as
`lib.measurement.head_curves`. What a figure shows and how to read it is in
data/figures.yaml.
"""

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
from lib.figures.page import Layout, in_model_order, page, panels

# The panels of a head, by figure: those of the same original tokens, which may have
# their ratios below them, then those of whole prompts.
HEAD_CURVES = {
    "fig09": [HeadCurves({"none": "None", "mless": "Mless"})],
    "fig10_right": [
        HeadCurves(
            {"none": "w/o", "mless": "w/ Mless", "mful": "w/ Mful"},
            title="Average attention on Head {head}: original tokens\n"
            "{model}, layer {layer}",
            fill=True,
        ),
        HeadCurves(
            {"mless": "w/ Mless", "mful": "w/ Mful"},
            title="Average attention on Head {head}: whole prompt\n"
            "{model}, layer {layer}",
        ),
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
FIRST_TOKEN = "The first token takes most of the attention and is left out. "
RATIO = "with / without"
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


def fig09(run, curves, spans):
    """Draw the same head in layers 1, 2 and 3: its original tokens without and with the
    slashes, and below them the ratio.
    """
    curves = with_ratios(curves)
    heads = _draw_heads(run, curves)
    above = list(range(len(heads)))
    below = [place + len(heads) for place in above]
    layout = Layout(
        panels=2 * len(heads),
        mosaic=[above, below],
        height=1.3,
        heights=(1, 0.5),
        note=_note_of(curves),
    )
    (compared,) = HEAD_CURVES["fig09"]
    saved = [curves, spans[spans.figure == "fig09"]]
    with page(run, "fig09", saved, "attention", layout) as axes:
        for top, bottom, head in zip(*axes.reshape(2, -1), heads, strict=True):
            draw_with_ratios(top, bottom, head, compared)
        axes[0].set_ylabel(RECEIVED)
        axes[len(heads)].set_ylabel(RATIO)
        _share_y(axes[len(heads) :])


def fig10_right(run, curves, spans):
    """Draw one head: its original tokens under three conditions with the ratio below,
    and the whole prompt with either insertion.
    """
    layout = Layout(
        panels=3,
        mosaic=[[0, 2], [1, 2]],
        height=1.3,
        heights=(1, 0.5),
        note=_note_of(curves),
    )
    head = with_ratios(curves)
    saved = [head, spans[spans.figure == "fig10"]]
    with page(run, "fig10_right", saved, "attention", layout) as axes:
        draw_fig10_right(axes, head)


def draw_fig10_right(axes, head):
    """Draw what fig10 has at its right: original tokens, their ratios, whole prompt."""
    originals, whole = HEAD_CURVES["fig10_right"]
    top, ratios, bottom = axes
    draw_with_ratios(top, ratios, head, originals)
    draw.received(bottom, head, whole)
    for ax in (top, bottom):
        ax.set_ylabel(RECEIVED)
    ratios.set_ylabel(RATIO)


def fig11(run, curves, spans):
    """Draw whole prompts, with slashes and with a random sentence as long."""
    heads = _draw_heads(run, curves)
    layout = Layout(panels=len(heads), ylabel=RECEIVED, note=_note_of(curves))
    (compared,) = HEAD_CURVES["fig11"]
    saved = [curves, spans[spans.figure == "fig11"]]
    with page(run, "fig11", saved, "attention", layout) as axes:
        for ax, head in zip(axes, heads, strict=True):
            draw.received(ax, head, compared)


def fig13(run, curves, name="fig13"):
    """Draw heads of layer 1, a column each: the original tokens without and with, below
    the whole prompt with it, on the same y axis.
    """
    heads = _draw_heads(run, curves)
    originals, whole = HEAD_CURVES[name]
    layout = Layout(
        panels=2 * len(heads),
        columns=len(heads),
        ylabel=RECEIVED,
        note=_note_of(curves),
    )
    with page(run, name, [curves], "attention", layout) as axes:
        for top, bottom, head in zip(*axes.reshape(2, -1), heads, strict=True):
            draw.received(top, head, originals)
            draw.received(bottom, head, whole)
            top.set_xlabel("")
            _share_y([top, bottom])


def fig18(run, curves):
    """Draw heads of another model as `fig13` does."""
    fig13(run, curves, name="fig18")


def _draw_heads(run, curves):
    """Return the rows of each head, models in the order of every figure."""
    ordered = in_model_order(run, curves)
    groups = ordered.groupby(["model", "layer", "head"], sort=False)
    return [head for _, head in groups]


def _note_of(curves):
    return f"One prompt, of problem {curves.problem.iloc[0]}. {FIRST_TOKEN}"


def with_ratios(curves):
    """Return curves with a column `ratio`: what an original token receives with an
    insertion over what it receives without.
    """
    curves = curves.assign(ratio=np.nan)
    original = curves[curves.part != "inserted"]
    for _, rows in original.groupby(["model", "layer", "head"], sort=False):
        without = rows.received[rows.condition == "none"].to_numpy()
        for condition in set(rows.condition) - {"none"}:
            received = rows.received[rows.condition == condition]
            curves.loc[received.index, "ratio"] = received / without
    return curves


def draw_with_ratios(top, bottom, head, compared):
    """Draw the curves of the same original tokens, and their ratios below."""
    draw.received(top, head, compared)
    top.set_xlabel("")
    insertions = [condition for condition in compared.names if condition != "none"]
    draw.token_ratios(bottom, head, insertions)
    bottom.set_xlim(top.get_xlim())


def _share_y(axes):
    """Give panels the lowest and the highest end of their y axes."""
    ends = [ax.get_ylim() for ax in axes]
    low = min(low for low, _ in ends)
    high = max(high for _, high in ends)
    for ax in axes:
        ax.set_ylim(low, high)


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
