"""The figures of the MLPs' activations, without and with an insertion and with ARM.

run: a profile; tables: as `lib.measurement.activation_tables` makes them.
"""

import pandas as pd

from lib.figures import draw
from lib.figures.layout import Layout, in_model_order, page, panels
from lib.figures.looks import EVEN, LOOKS, from_zero, ratio_axis

CHANGE = "with / without"
COMPARED = ["none", "mless", "arm"]  # whose histograms and classes are drawn
MEASURES_IN_A_ROW = 3


def fig04(run, table, measured):
    """Draw the activations of the first MLPs: a histogram per model, and below a panel
    per measure that says how many times as large it becomes, a row per model.

    measured: by model a Dataset with `counts` (network, condition, layer, bin), whose
    first and last bin hold what lies outside.
    """
    histograms = pd.concat([_histogram(of_model) for of_model in measured.values()])
    of_tokens = (table.layer == 1) & (table.condition != "arm")
    tokens = in_model_order(run, table[of_tokens])
    models = list(dict.fromkeys(tokens.model))
    measures = list(dict.fromkeys(tokens.measure))
    layout = Layout(
        panels=len(models) + len(measures),
        mosaic=_rows_of_fig04(len(models), len(measures)),
        height=1.5,
        note="Layer 1. ARM's own measures are in the table. ",
    )
    with page(run, "fig04", [table, histograms], "attention", layout) as axes:
        for ax, model in zip(axes[: len(models)], models, strict=True):
            _draw_histogram(ax, histograms[histograms.model == model])
            ax.set_title(model)
        axes[0].set_ylabel("share of activations (%)")
        for ax, measure in zip(axes[len(models) :], measures, strict=True):
            _draw_measure(ax, tokens, measure, models)
        for place, ax in enumerate(axes[len(models) :]):
            is_first_of_row = place % MEASURES_IN_A_ROW == 0
            ax.tick_params(axis="y", labelleft=is_first_of_row)


def _draw_measure(ax, tokens, measure, models):
    """Draw how many times as large a measure becomes, a row per model, on the x axis
    that all measures have.
    """
    ax.axvline(1, **EVEN)
    draw.model_rows(ax, tokens[tokens.measure == measure], "ratio", models)
    ratio_axis(ax, tokens.low.min(), tokens.high.max(), axis="x")
    ax.set_title(f"{measure}, {CHANGE}")


def _rows_of_fig04(models, measures):
    """Return a mosaic: a row of a panel per model, below rows of three measures, each
    row as wide as the page.
    """
    rows = [[place // MEASURES_IN_A_ROW for place in range(MEASURES_IN_A_ROW * models)]]
    for first in range(0, measures, MEASURES_IN_A_ROW):
        row = []
        for place in range(first, first + MEASURES_IN_A_ROW):
            row += [models + place if place < measures else "."] * models
        rows.append(row)
    return rows


def _draw_histogram(ax, shares):
    """Draw the histogram of a model's activations, a curve per condition."""
    for condition in COMPARED:
        look = LOOKS[condition]
        style = draw.WIDE_AND_PALE if condition == "none" else {"linewidth": 0.8}
        ax.plot(
            shares.activation,
            shares[condition],
            color=look.colour,
            label=look.name,
            **style,
        )
    ax.set(xlabel="activation", yscale="log")


def _histogram(measured):
    """Return a row per bin of a model's first layer, with the bin's middle as
    `activation`, and a column per condition: its share of the activations in %.
    """
    places = {"network": "trained", "condition": COMPARED, "layer": 1}
    counts = measured.counts.sel(places, drop=True)
    shares = 100 * counts / counts.sum("bin")
    starts = counts.bin.values.astype(float)
    middles = (starts[1:-1] + starts[2:]) / 2
    inner = shares[..., 1:-1].assign_coords(bin=middles)
    by_condition = inner.rename(bin="activation").to_dataset("condition")
    rows = by_condition.to_dataframe().reset_index()
    return rows.assign(model=measured.model, layer=1)


def fig07(run, table):
    """Draw the share of near-zero activations of each class of tokens, a point per
    condition.
    """
    drawn = table[table.condition.isin(COMPARED)]
    layout = Layout(
        ylabel="near-zero activations (%)",
        note="Layer 1; near zero: within the bound of the prompt without insertion. ",
    )
    for (ax,), rows in panels(
        run, "fig07", drawn, ["model"], layout=layout, saved=[table]
    ):
        draw.estimates(ax, rows, "class", "near zero")
        from_zero(ax)
