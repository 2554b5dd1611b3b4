"""Tables of activations over all problems: the numbers of notebook 04.

Each takes Datasets by model, as `measured_tables` does.
"""

import numpy as np
import pandas as pd
import xarray as xr

from lib.measurement.measured_tables import (
    means_table,
    of_each_model,
)
from lib.measurement.plan import OTHERS, TRAINED
from lib.statistics.intervals import POINTS

HISTOGRAMS = ["none", "mless", "arm"]  # conditions whose histogram is drawn


@of_each_model
def changes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return how many times as large as under none each measure of layer 1 is.

    It is a geometric mean, by condition. The problem is the unit: tests over single
    activations, such as Levene's, would take elements for independent.
    """
    measures = model.measures.sel(network=TRAINED, layer=1, drop=True)
    table = means_table(log_changes(measures), "ratio")
    ends = ["ratio", "low", "high"]
    table[ends] = np.exp(table[ends])
    return table


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
def classes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the share near zero in % by condition and class of tokens in layer 1.

    Beside it stands its difference to the class `others`; n counts the problems that
    have tokens of both.
    """
    shares = POINTS * model.classes.sel(network=TRAINED, layer=1, drop=True)
    against = shares - shares.sel({"class": OTHERS}, drop=True)
    of_both = shares.where(against.notnull())
    near_zero = means_table(of_both, "near zero")
    differences = means_table(against, "against others", "against ")
    return near_zero.merge(differences)
