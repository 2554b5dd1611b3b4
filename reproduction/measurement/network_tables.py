"""Tabulate attention and activations over all problems: the numbers of notebooks 02, 04
and 08.

Each table takes the Datasets of `reproduction.measurement.measure`, by model. It has a
row for each model and combination of labels (layer, head, condition ...): the mean over
problems with its 95 % interval (low, high) and n, the number of problems. With
`all_layers`, a table has all layers, on the smaller sample of problems that passed
through them, instead of the first layers on all problems. `head_curves` has single
heads on one prompt.
"""

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr

from lib.statistics.intervals import POINTS, interval
from reproduction.measurement.dataset import (
    OTHERS,
    TRAINED,
    UNIFORM,
    UNTRAINED,
    VARIABLES,
)

# Attention sinks are counted from this layer on, after those that slashes dilute most.
FIRST_LATER_LAYER = 5
SINK_SHARE = 30  # % of its attention that a head gives to a sink
# The insertion of a condition, in words.
INSERTED = {"mless": "slashes", "mful": "55 times he", "random": "a sentence as long"}


def means_table(
    values: xr.DataArray, name: str = "mean", prefix: str = ""
) -> pd.DataFrame:
    """Return the mean over problems of values (problem, ...), for each cell, which is a
    combination of labels of the other dimensions.

    A row has the cell's labels, the mean in the column `name`, its interval in the
    columns low and high (after the prefix), and n. Cells without values have no row.
    """
    others = [dim for dim in values.dims if dim != "problem"]
    cells = values.stack(cell=others).transpose("cell", "problem")
    rows = []
    for of_cell in cells.values:
        measured = np.isfinite(of_cell)
        row = (np.nan, np.nan, np.nan, 0)
        if measured.any():
            mean = interval(of_cell[measured], cells.problem.values[measured])
            row = (mean.estimate, mean.low, mean.high, mean.n)
        rows.append(row)
    columns = [name, f"{prefix}low", f"{prefix}high", "n"]
    table = pd.DataFrame(rows, cells.indexes["cell"], columns)
    return table[table.n > 0].reset_index()


def of_each_model(table: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Turn a function that tabulates one model's Dataset into one that tabulates
    Datasets by model.

    The column `model` comes first and n last.
    """

    @functools.wraps(table)
    def together(measured: dict[str, xr.Dataset], **options: bool) -> pd.DataFrame:
        tables = {}
        for name, model in measured.items():
            tables[name] = table(model, **options)
        rows = pd.concat(tables, names=["model"]).reset_index("model")
        columns = [name for name in rows if name != "n"]
        return rows[[*columns, "n"]]

    return together


def select_layers(values: xr.DataArray, all_layers: bool = False) -> xr.DataArray:
    """Return the trained network's values in the first layers, on all problems; with
    `all_layers`, in all layers, on the problems that passed through them.

    Single heads or conditions may still be NaN.
    """
    values = values.sel(network=TRAINED, drop=True).dropna("condition", how="all")
    others = [dim for dim in values.dims if dim not in ("problem", "layer")]
    measured = values.notnull().any(others)  # (problem, layer)
    if all_layers:
        return values.sel(problem=measured.isel(layer=-1, drop=True))
    return values.sel(layer=measured.all("problem"))


@of_each_model
def heads_table(model: xr.Dataset, *, all_layers: bool = False) -> pd.DataFrame:
    """Return lambda with the slashes, by layer and head."""
    slashes = select_layers(model["lambda"], all_layers).sel(
        condition="mless", drop=True
    )
    return means_table(slashes, "lambda")


@of_each_model
def variation_table(model: xr.Dataset) -> pd.DataFrame:
    """Return how much the attention that inserted tokens receive varies among them, as
    a coefficient of variation: for the slashes and the sentence, by layer and head.
    """
    values = select_layers(model["flatness"])
    compared = values.condition.isin(["mless", "random"])
    return means_table(values[{"condition": compared}], "variation")


@of_each_model
def mass_table(model: xr.Dataset, *, all_layers: bool = False) -> pd.DataFrame:
    """Return the share of attention, in %, that the inserted tokens receive, by layer.

    It is the share that the original tokens after the insertion give to it, averaged
    over heads. The slashes are compared with a sentence of the same length and, in the
    first layers, with untrained networks and with uniform attention.
    """
    return _beside_controls(
        POINTS * model.mass.mean("head"), "mass", ["mless", "random"], all_layers
    )


@of_each_model
def lambda_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda_over_heads of the original tokens, a ratio of means over heads, by
    insertion and layer: of every insertion and, under the slashes, of untrained
    networks and of uniform attention.
    """
    conditions = ["mless", "mful", "random"]
    values = model.lambda_over_heads.sel(span="original", query="all", drop=True)
    return _beside_controls(values, "lambda", conditions)


def _beside_controls(
    values: xr.DataArray, name: str, conditions: list[str], all_layers: bool = False
) -> pd.DataFrame:
    """Return the mean by layer and `inserted`, which names the insertion and the
    network in words: the trained network under these conditions, and the control
    networks with slashes.
    """
    trained = select_layers(values, all_layers)
    controls = values.sel(condition="mless")
    tables = {}
    for condition in conditions:
        tables[INSERTED[condition]] = trained.sel(condition=condition)
    tables["slashes, untrained networks"] = controls.sel(network=UNTRAINED).mean(
        "network"
    )
    tables["slashes, attention spread evenly"] = controls.sel(network=UNIFORM)
    rows = {
        inserted: means_table(of_layers, name)[["layer", name, "low", "high", "n"]]
        for inserted, of_layers in tables.items()
    }
    return pd.concat(rows, names=["inserted"]).reset_index("inserted")


@of_each_model
def sinks_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the share of attention, in %, that inserted tokens receive in the layers
    from FIRST_LATER_LAYER on, by condition: the mean over layers and heads.

    `heads` is the number of heads in these layers. `sinks` is the number of those that
    give the insertion more than SINK_SHARE % on average over the problems.
    """
    mass = POINTS * select_layers(model.mass, all_layers=True)
    later = mass.sel(layer=mass.layer >= FIRST_LATER_LAYER)
    table = means_table(later.mean(["layer", "head"]), "mass")
    by_head = later.mean("problem").stack(cell=["layer", "head"])
    sinks = (by_head > SINK_SHARE).sum("cell").to_series()
    table["sinks"] = table.condition.map(sinks)
    table["heads"] = by_head.sizes["cell"]
    return table


@of_each_model
def spans_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda_over_heads, a ratio of means over heads, by condition, layer and
    groups of tokens.

    `span` names the tokens that receive the attention, `query` those that give it.
    """
    by_span = model.lambda_over_heads.sel(network=TRAINED, drop=True)
    return means_table(by_span, "lambda")


@of_each_model
def affine_table(model: xr.Dataset) -> pd.DataFrame:
    """Return R² of the affine map of layer 1's outputs (Eq. 2), averaged over heads, by
    the form of the map.

    VARIABLES describes the forms, which the column `map` names.
    """
    fits = model[list(VARIABLES["affine"])].sel(network=TRAINED, drop=True)
    by_map = fits.to_dataarray("map")
    return means_table(by_map.mean("head"), "R²")


HISTOGRAM_CONDITIONS = ["none", "mless", "arm"]  # conditions whose histogram is drawn


@of_each_model
def changes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the ratio of each activation measure in layer 1 to its value under
    `none`, by condition, as a geometric mean over problems.

    The intervals are over problems, because tests over single activations, such as
    Levene's, would assume that these are independent.
    """
    measures = model.measures.sel(network=TRAINED, layer=1, drop=True)
    table = means_table(log_changes(measures), "ratio")
    ends = ["ratio", "low", "high"]
    table[ends] = np.exp(table[ends])
    return table


@of_each_model
def cosines_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the cosine between the changes that a condition and the slashes make to
    layer 1's histogram, by condition.
    """
    shape = model["shape"].sel(network=TRAINED, layer=1, drop=True)
    others = ~shape.condition.isin(["none", "mless"])
    return means_table(shape.sel(condition=others), "cosine")


def log_changes(measures: xr.DataArray) -> xr.DataArray:
    """Return log(measure / the same measure under `none`) for the other conditions.

    A measure of 0 is replaced by half of its smallest positive value under any
    condition. A floor from `none` alone would be above the small shares that ARM leaves
    near zero, and raise them.
    """
    positive = measures.where(measures > 0)
    floor = positive.min(["condition", "problem"]) / 2
    before = measures.sel(condition="none", drop=True)
    after = measures.sel(condition=measures.condition != "none")
    ratios = np.maximum(after, floor) / np.maximum(before, floor)
    return np.log(ratios)


def histogram_table(measured: dict[str, xr.Dataset]) -> pd.DataFrame:
    """Return the histogram of the activations in layer 1, by model.

    A row has the centre of a bin as `activation` and, in a column for each of
    HISTOGRAM_CONDITIONS, the share of all activations in the bin, in %. The outermost
    bins, which contain all values beyond, have no row.
    """
    labels = {"network": TRAINED, "condition": HISTOGRAM_CONDITIONS, "layer": 1}
    tables = {}
    for name, model in measured.items():
        counts = model.counts.sel(labels).transpose("bin", "condition")
        shares = POINTS * counts / counts.sum("bin")
        edges = counts.bin.values.astype(float)  # left ones
        centres = pd.Index((edges[1:-1] + edges[2:]) / 2, name="activation")
        tables[name] = pd.DataFrame(shares.values[1:-1], centres, HISTOGRAM_CONDITIONS)
    return pd.concat(tables, names=["model"]).reset_index()


@of_each_model
def classes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the share of near-zero activations in layer 1, in %, by condition and
    class of tokens, and its difference to the class `others` ("against others").

    Both are over the n problems that have tokens of both classes.
    """
    shares = POINTS * model.classes.sel(network=TRAINED, layer=1, drop=True)
    against = shares - shares.sel({"class": OTHERS}, drop=True)
    of_both = shares.where(against.notnull())
    near_zero = means_table(of_both, "near zero")
    differences = means_table(against, "against others", "against ")
    return near_zero.merge(differences)
