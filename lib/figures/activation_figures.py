"""The figures of the MLPs' activations, without and with an insertion and with ARM.

run: a profile; tables: as `lib.measurement.measured_tables` makes them.
"""

import pandas as pd

from lib.figures import draw
from lib.figures.looks import EVEN, LOOKS, from_zero, ratio_axis
from lib.figures.page import Layout, panels

CHANGE = "with / without (log scale)"
COMPARED = ["none", "mless", "arm"]  # whose histograms and classes are drawn
# A bin with a smaller share of the activations has no ratio: it would be noise.
RARE = 1e-3


def fig04(run, table, measured):
    """Draw the activations of the first MLPs: histograms, and how many times as large
    six measures become.

    measured: by model a Dataset with `counts` (network, condition, layer, bin), whose
    first and last bin hold what lies outside. In layer 1 the histogram is drawn as it
    is; in later ones, where nobody would see a difference, as ratio to that without
    insertion.
    """
    layers = sorted(set(table.layer))
    tokens = table[table.condition != "arm"]
    tokens = tokens.assign(measure=tokens.measure.str.replace("variance", "var."))
    histograms = pd.concat(
        [_histograms(of_model, layers) for of_model in measured.values()]
    )
    layout = Layout(
        each=2 * len(layers),
        columns=len(layers),
        note="ARM works in layer 1; its measures are in the table. ",
    )
    saved = [table, histograms]
    for axes, rows in panels(
        run, "fig04", tokens, ["model"], layout=layout, saved=saved
    ):
        model = rows.model.iloc[0]
        of_model = histograms[histograms.model == model]
        tops, bottoms = axes.reshape(2, -1)
        for ax, layer in zip(tops, layers, strict=True):
            _draw_histogram(ax, of_model[of_model.layer == layer], model, layer)
        for ax, layer in zip(bottoms, layers, strict=True):
            ax.axhline(1, **EVEN)
            draw.estimates(ax, rows[rows.layer == layer], "measure", "ratio")
            ax.set_title(f"{model}\nlayer {layer}: measures")
            ratio_axis(ax, tokens.low.min(), tokens.high.max())
        bottoms[0].set_ylabel(CHANGE)


def _draw_histogram(ax, shares, model, layer):
    """Draw the histogram of a layer, a curve per condition."""
    for condition in COMPARED:
        look = LOOKS[condition]
        ax.plot(
            shares.activation,
            shares[condition],
            color=look.colour,
            linewidth=0.8,
            label=look.name,
        )
    ax.set_xlabel("activation")
    if layer == 1:
        ax.set_title(f"{model}\nlayer {layer}: histogram")
        ax.set(yscale="log", ylabel="share of activations (%)")
    else:
        ax.set_title(f"{model}\nlayer {layer}: histogram / that of None")
        ax.set_ylim(0.8, 1.2)


def _histograms(measured, layers):
    """Return a row per layer and bin of a model, with the bin's middle as `activation`,
    and a column per condition: its share of the activations in %, in layers after the
    first over that under none.
    """
    places = {"network": "trained", "condition": COMPARED, "layer": layers}
    counts = measured.counts.sel(places, drop=True)
    shares = (counts / counts.sum("bin"))[..., 1:-1]
    none = shares.sel(condition="none", drop=True)
    ratios = (shares / none).where(none > RARE)
    values = (100 * shares).where(shares.layer == 1, ratios)

    starts = counts.bin.values.astype(float)
    values = values.assign_coords(bin=(starts[1:-1] + starts[2:]) / 2)
    values = values.rename(bin="activation").to_dataset("condition")
    rows = values.to_dataframe().dropna().reset_index()
    return rows.assign(model=measured.model)


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
