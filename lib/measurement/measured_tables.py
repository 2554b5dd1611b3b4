"""Tables of attention over all problems: the numbers of notebook 02.

Each takes Datasets by model and has a row per model and place: a mean over problems
with its interval, low and high, and n. `every` takes all layers on the problems that
went through them, instead of the first layers on all problems. `activation_tables` has
those of activations, `head_curves` what single heads give on one prompt.
"""

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr

from lib.measurement.plan import TRAINED, UNIFORM, UNTRAINED, VARIABLES
from lib.statistics.intervals import POINTS, interval


def means_table(
    values: xr.DataArray, name: str = "mean", prefix: str = ""
) -> pd.DataFrame:
    """Return a row per measured place of values (problem, ...).

    A row has the place's labels, the mean over its problems under this name, low and
    high, behind the prefix, and n.
    """
    others = [dim for dim in values.dims if dim != "problem"]
    places = values.stack(place=others).transpose("problem", "place")
    problems = places.problem.values
    measured = np.isfinite(places.values)
    numbers = np.full((4, places.sizes["place"]), np.nan)
    # The places that have the same problems are estimated together.
    for pattern in np.unique(measured, axis=1).T:
        if not pattern.any():
            continue
        alike = (measured == pattern[:, None]).all(0)
        means = interval(places.values[pattern][:, alike], problems[pattern])
        n = np.full(alike.sum(), means.n)
        numbers[:, alike] = means.estimate, means.low, means.high, n

    columns = [name, f"{prefix}low", f"{prefix}high", "n"]
    table = pd.DataFrame(numbers.T, places.indexes["place"], columns)
    table = table[table.n > 0]
    return table.astype({"n": int}).reset_index()


def of_each_model(table: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Make a table of one model's Dataset that of a dict of them.

    The model's name comes first and n last.
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


def layers_of(values: xr.DataArray, every: bool = False) -> xr.DataArray:
    """Return what was measured of the trained network's first layers on all problems.

    A cell may be NaN. `every` layer instead on the problems that went through all.
    """
    values = values.sel(network=TRAINED, drop=True).dropna("condition", how="all")
    others = [dim for dim in values.dims if dim not in ("problem", "layer")]
    measured = values.notnull().any(others)  # (problem, layer)
    if every:
        return values.sel(problem=measured.isel(layer=-1, drop=True))
    return values.sel(layer=measured.all("problem"))


@of_each_model
def heads_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return lambda under the slashes by layer and head."""
    slashes = layers_of(model["lambda"], every).sel(condition="mless", drop=True)
    return means_table(slashes, "lambda")


@of_each_model
def layers_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda, the mean over heads, by condition and layer."""
    return means_table(layers_of(model["lambda"]).mean("head"), "lambda")


@of_each_model
def mass_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return the share of attention, in %, that the inserted tokens take, by layer.

    It is what the original tokens after the insertion give it, the mean over heads. The
    slashes stand beside a sentence as long and, in the first layers, beside what they
    would take of networks that were never trained and of attention spread evenly.
    """
    mass = POINTS * model.mass
    trained = layers_of(mass, every)
    controls = mass.sel(condition="mless")
    untrained = controls.sel(network=UNTRAINED).mean("network")
    by_source = {
        "slashes": trained.sel(condition="mless"),
        "a sentence as long": trained.sel(condition="random"),
        "slashes, untrained networks": untrained,
        "slashes, attention spread evenly": controls.sel(network=UNIFORM),
    }

    tables = {}
    for source, values in by_source.items():
        table = means_table(values.mean("head"), "mass")
        tables[source] = table[["layer", "mass", "low", "high", "n"]]
    return pd.concat(tables, names=["inserted"]).reset_index("inserted")


@of_each_model
def spans_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda over the heads by condition, layer, and the tokens concerned.

    `span` are those that receive, `query` those that give.
    """
    by_span = model.lambda_over_heads.sel(network=TRAINED, drop=True)
    return means_table(by_span, "lambda")


@of_each_model
def affine_table(model: xr.Dataset) -> pd.DataFrame:
    """Return R² of the maps of layer 1's outputs, each a mean over heads.

    The plan's VARIABLES say what each `map` is.
    """
    fits = model[list(VARIABLES["affine"])].sel(network=TRAINED, drop=True)
    by_map = fits.to_dataarray("map")
    return means_table(by_map.mean("head"), "R²")
