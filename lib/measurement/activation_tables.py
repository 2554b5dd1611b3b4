"""The tables of what was measured about MLP activations: the numbers behind notebook 04."""

import numpy as np
import pandas as pd
import xarray as xr

from lib.measurement.run import CHANGES, Measured
from lib.measurement.tables import across, by_model, estimates
from lib.measurement.token_classes import OTHERS
from lib.statistics import bootstrap_mean, holm, signed_rank


def changes_table(measured: dict[str, Measured], seed: int, *, every: bool = False) -> pd.DataFrame:
    """Return a row per model, condition, layer and measure: how many times as large as under none (geometric mean over
    problems) with its interval, and Holm's p of the signed-rank test over problems, corrected for a model's rows.

    The problem is the unit: tests over single activations, such as Levene's, would take elements for independent.
    """

    def changes(model: Measured) -> pd.DataFrame:
        logs = log_changes(model.every if every else model.first)
        table = estimates(logs, seed, name="ratio")
        table[["ratio", "low", "high"]] = np.exp(table[["ratio", "low", "high"]])
        return table.assign(p=holm(signed_rank(across(logs).values)))

    return by_model(measured, changes)


def log_changes(found: xr.Dataset) -> xr.DataArray:
    """Return log(measure / the same under none) (condition, problem, layer, measure); a share of nothing counts as half
    an element.
    """
    measures = found.measures
    before, after = measures.sel(condition="none", drop=True), measures.sel(condition=measures.condition != "none")
    # Of each measure, over all that was measured: a floor from none alone would lift what ARM leaves near zero.
    smallest = measures.where(measures > 0).min([dim for dim in measures.dims if dim != "measure"]) / 2
    return np.log(after.clip(smallest) / before.clip(smallest))


def likeness_table(measured: dict[str, Measured], seed: int) -> pd.DataFrame:
    """Return a row per model, condition and layer: the cosine between its change and that of the slashes, of the
    histogram (`shape`) and of single activations (`elements`), with intervals over problems.
    """

    def likeness(model: Measured) -> pd.DataFrame:
        tables = []
        for part in ("shape", "elements"):
            table = estimates(model.first[part].sel(condition=list(CHANGES[1:])), seed, name=part)
            names = {"low": f"{part} low", "high": f"{part} high"}
            tables.append(table.rename(columns=names).set_index(["condition", "layer", "n"]))
        return pd.concat(tables, axis=1).reset_index()

    return by_model(measured, likeness)


def classes_table(measured: dict[str, Measured], seed: int) -> pd.DataFrame:
    """Return a row per model, condition and class of tokens in layer 1: share near zero in %, its interval, and the
    paired difference to the class `others`; n counts the problems that have such tokens.
    """

    def classes(model: Measured) -> pd.DataFrame:
        shares = 100 * across(model.first.classes.sel(layer=1, drop=True))
        rows = []
        for condition, label in shares.indexes["place"]:
            values, others = shares.sel(place=(condition, label)).values, shares.sel(place=(condition, OTHERS)).values
            both = np.isfinite(values) & np.isfinite(others)
            if not both.any():
                continue
            share, apart = (bootstrap_mean(part[both], seed) for part in (values, values - others))
            row = {"condition": condition, "class": label, "near zero": share.estimate}
            row |= {"low": share.low, "high": share.high, "against others": apart.estimate}
            rows.append(row | {"against low": apart.low, "against high": apart.high, "n": share.n})
        return pd.DataFrame(rows)

    return by_model(measured, classes)
