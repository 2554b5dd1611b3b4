"""Tables of activations over all problems: the numbers of notebook 04.

Each takes Datasets by model, as `measured_tables` does.
"""

import numpy as np
import pandas as pd
import xarray as xr

from lib.measurement.measured_tables import (
    layers_of,
    means_table,
    of_each_model,
    stacked,
)
from lib.measurement.plan import CHANGES, OTHERS, TRAINED
from lib.statistics.intervals import POINTS
from lib.statistics.p_values import holm, signed_rank

HISTOGRAMS = ["none", "mless", "arm"]  # conditions whose histogram is drawn


@of_each_model
def changes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return how many times as large as under none each measure of activations is.

    It is a geometric mean, by condition and layer, with Holm's p of the signed-rank
    test, corrected for a model's rows. The problem is the unit: tests over single
    activations, such as Levene's, would take elements for independent.
    """
    logs = log_changes(layers_of(model.measures))
    table = means_table(logs, "ratio")
    ends = ["ratio", "low", "high"]
    table[ends] = np.exp(table[ends])
    p_values = signed_rank(stacked(logs).values)
    table["p"] = holm(p_values)
    return table


# Of the table of the first MLP: what the paper says falls, and what it says rises.
FALLING = "near zero"
RISING = ("L1", "L2", "variance")


def log_changes(measures: xr.DataArray) -> xr.DataArray:
    """Return log(measure / the same under none) of all other conditions.

    A share of nothing counts as half of the smallest, of all conditions: a floor from
    none alone would lift what ARM leaves near zero.
    """
    positive = measures.where(measures > 0)
    floor = positive.min(["condition", "problem"]) / 2
    before = measures.sel(condition="none", drop=True)
    after = measures.sel(condition=measures.condition != "none")
    ratios = np.maximum(after, floor) / np.maximum(before, floor)
    return np.log(ratios)


def histogram_table(measured: dict[str, xr.Dataset]) -> pd.DataFrame:
    """Return by model the histogram of the first MLP's activations.

    A row has the middle of a bin as `activation`, and for each of HISTOGRAMS the share
    of all activations that lie in it, in %. The outermost bins, which hold whatever
    lies beyond, have no row.
    """
    places = {"network": TRAINED, "condition": HISTOGRAMS, "layer": 1}
    tables = {}
    for name, model in measured.items():
        counts = model.counts.sel(places).transpose("bin", "condition")
        shares = POINTS * counts / counts.sum("bin")
        starts = counts.bin.values.astype(float)
        middles = pd.Index((starts[1:-1] + starts[2:]) / 2, name="activation")
        tables[name] = pd.DataFrame(shares.values[1:-1], middles, HISTOGRAMS)
    return pd.concat(tables, names=["model"]).reset_index()


@of_each_model
def likeness_table(model: xr.Dataset) -> pd.DataFrame:
    """Return by condition and layer the cosine between its change and that of the
    slashes: of the histogram (`shape`) and of single activations (`elements`).
    """
    others = list(CHANGES[1:])
    shape = layers_of(model["shape"].sel(condition=others))
    elements = layers_of(model["elements"].sel(condition=others))
    of_histogram = means_table(shape, "shape", "shape ")
    of_elements = means_table(elements, "elements", "elements ")
    return of_histogram.merge(of_elements, on=["condition", "layer", "n"])


@of_each_model
def classes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the share near zero in % by condition and class of tokens in layer 1.

    Beside it stands its difference to the class `others`; n counts the problems that
    have tokens of both.
    """
    shares = 100 * model.classes.sel(network=TRAINED, layer=1, drop=True)
    against = shares - shares.sel({"class": OTHERS}, drop=True)
    of_both = shares.where(against.notnull())
    near_zero = means_table(of_both, "near zero")
    differences = means_table(against, "against others", "against ")
    return near_zero.merge(differences)


def redistribution_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Return which models do what the paper says of the first MLP, in two ways.

    A row says whether near-zero activations surely become fewer with slashes, a column
    whether L1, L2 and variance all surely rise. changes: as `changes_table` has them.
    """
    first = changes[(changes.layer == 1) & (changes.condition == "mless")]
    cells: dict[tuple[bool, bool], list[str]] = {}
    for model, rows in first.groupby("model", sort=False):
        own = rows.set_index("measure")
        fewer = bool(own.high[FALLING] < 1)
        larger = bool((own.low[list(RISING)] > 1).all())
        cells.setdefault((fewer, larger), []).append(str(model))
    columns = {"L1, L2 and variance rise": True, "they do not all rise": False}
    rows = {"near-zero activations fall": True, "they do not fall": False}
    table = [
        {"with slashes": row}
        | {
            column: ", ".join(cells.get((fewer, larger), ["none"]))
            for column, larger in columns.items()
        }
        for row, fewer in rows.items()
    ]
    return pd.DataFrame(table)
