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

from lib.measurement.head_curves import HEAD_COLUMNS, drawn_heads
from lib.measurement.plan import TRAINED, UNIFORM, UNTRAINED
from lib.profiles import Figure, Profile
from lib.statistics.intervals import ALPHA, POINTS, interval, ratio
from lib.statistics.p_values import holm, signed_rank

# What is measured of the inserted tokens.
INSERTED_MEASURES = ["mass", "flatness", "dispersion"]
AFFINE_TEXT = {
    "affine": "R2 of lambda * old + sigma",
    "line": "R2 with a coefficient of sigma per token",
    "softmax": "R2 with lambda per token from the softmax",
    "shifted": "R2 of old + sigma (below 0 counts as 0)",
    "direction": "sigma: share of squares along one line",
    "component": "sigma: share of variance in first component",
}


def means_table(
    values: xr.DataArray, name: str = "mean", prefix: str = ""
) -> pd.DataFrame:
    """Return a row per measured place of values (problem, ...).

    A row has the place's labels, the mean over its problems under this name, low and
    high, behind the prefix, and n.
    """
    places = stacked(values)
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


def stacked(values: xr.DataArray) -> xr.DataArray:
    """Return values (problem, place): all other axes as one."""
    others = [dim for dim in values.dims if dim != "problem"]
    return values.stack(place=others).transpose("problem", "place")


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

    A cell may be NaN. `every` layer instead on the problems, and under the conditions,
    that went through all.
    """
    values = values.sel(network=TRAINED, drop=True).dropna("condition", how="all")
    if not every:
        kept = ("condition", "problem", "layer")
        measured = values.notnull().any([dim for dim in values.dims if dim not in kept])
        # A sample no larger than map_problems goes through all layers, but under some
        # of the conditions only.
        of_each_condition = measured.any("problem").all("condition")
        of_each_problem = measured.any("condition").all("problem")
        return values.sel(layer=of_each_condition & of_each_problem)

    last = values.isel(layer=-1, drop=True).notnull()
    for dim in ("condition", "problem"):
        others = [other for other in last.dims if other != dim]
        values = values.sel({dim: last.any(others)})
    return values


@of_each_model
def heads_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return lambda by condition, layer and head, and how surely it is not 1.

    Beside it stand the share of problems below 1, Holm's p of the signed-rank test of
    log lambda (over a model's heads, layers and conditions), and the means of what is
    measured of the inserted tokens.
    """
    lam = layers_of(model["lambda"], every)
    by_problem = stacked(lam)
    below = by_problem < 1
    p_values = signed_rank(np.log(by_problem.values))
    table = means_table(lam, "lambda")
    table["problems < 1"] = below.mean("problem").values
    table["p"] = holm(p_values)

    inserted = {}
    for name in INSERTED_MEASURES:
        inserted[name] = layers_of(model[name], every).mean("problem")
    means = xr.Dataset(inserted).to_dataframe().reset_index()
    return table.merge(means, on=["condition", "layer", "head"])


@of_each_model
def layers_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return the mean over heads by condition, layer and measure.

    The measures are lambda, mass, flatness and dispersion.
    """
    means = {}
    for name in ("lambda", *INSERTED_MEASURES):
        means[name] = layers_of(model[name], every).mean("head")
    by_measure = xr.Dataset(means).to_dataarray("measure")
    return means_table(by_measure)


@of_each_model
def mass_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return the share of attention, in %, that the inserted tokens take, by layer.

    It is what the original tokens after the insertion give it, the mean over heads. The
    slashes stand beside a sentence as long and, in the first layers, beside what they
    would take of networks that were never trained and of attention spread evenly.
    """
    mass = 100 * model.mass
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


def spans_of_heads(
    measured: dict[str, xr.Dataset], profile: Profile, *figures: Figure
) -> pd.DataFrame:
    """Return lambda of the problem's and of the instruction's tokens.

    There are two rows (span, lambda, low, high, n) for each head that these figures
    draw, under the slashes and from all later tokens.
    """
    place = {"network": TRAINED, "condition": "mless", "query": "all"}
    tables = []
    for figure in figures:
        for head in drawn_heads(measured, profile, figure):
            by_span = head.lambda_by_span.sel(span=["problem", "instruction"], **place)
            rows = means_table(by_span, "lambda")
            rows["figure"] = figure
            rows["model"] = head.model
            rows["layer"] = head.layer.item()
            rows["head"] = head["head"].item()
            tables.append(rows)
    columns = ["figure", *HEAD_COLUMNS, "span", "lambda", "low", "high", "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def controls_table(measured: dict[str, xr.Dataset], condition: str) -> pd.DataFrame:
    """Return a row per model, control (untrained, uniform) and first layer.

    It has the lowest and the highest lambda of the control's heads (and networks), each
    the mean over problems.
    """
    networks_of_controls = {"untrained": UNTRAINED, UNIFORM: [UNIFORM]}
    tables = {}
    for model, dataset in measured.items():
        lam = dataset["lambda"].sel(condition=condition, drop=True)
        for control, networks in networks_of_controls.items():
            first_layers = lam.sel(network=networks).dropna("layer")
            heads = first_layers.mean("problem")
            ends = xr.Dataset()
            ends["lowest"] = heads.min(["network", "head"])
            ends["highest"] = heads.max(["network", "head"])
            tables[model, control] = ends.to_dataframe().reset_index()
    rows = pd.concat(tables, names=["model", "control", None])
    return rows.reset_index(["model", "control"]).reset_index(drop=True)


def count_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """Return how many heads of `heads_table` surely lie below and above 1: p < ALPHA.

    There is a row per model, condition and layer.
    """
    is_sure = heads.p < ALPHA
    below = is_sure & (heads["lambda"] < 1)
    above = is_sure & (heads["lambda"] > 1)
    counted = heads.assign(below=below, above=above, heads=1)
    groups = counted.groupby(["model", "condition", "layer"], sort=False)
    return groups[["below", "above", "heads"]].sum().reset_index()


@of_each_model
def causes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda over the heads of layer 1 by cause, and the cause's share.

    The share is that of the log lambda of `both`.
    """
    lam = model.cause_lambda.sel(network=TRAINED, drop=True)
    logs = xr.ufuncs.log(lam).mean("head")
    whole = logs.sel(cause="both")
    problems = logs.problem.values
    table = means_table(lam.mean("head"), "lambda")
    shares = [ratio(logs.sel(cause=cause), whole, problems) for cause in table.cause]
    table["share"] = [share.estimate for share in shares]
    table["share low"] = [share.low for share in shares]
    table["share high"] = [share.high for share in shares]
    return table


@of_each_model
def affine_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the measures of new = lambda * old + sigma in layer 1.

    Each is a mean over heads, beside the lowest and the highest head. R² without a
    factor has no lower end where a head's output hardly varies, so that one such prompt
    would be the mean: below 0 it counts as 0, and `below 0` says how often, in %.
    """
    fits = model[list(AFFINE_TEXT)].sel(network=TRAINED, drop=True)
    below = (fits < 0).mean(["problem", "head"]).to_dataarray("measure")
    fits["shifted"] = fits.shifted.clip(min=0)
    values = fits.to_dataarray("measure")
    heads = values.mean("problem")
    table = means_table(values.mean("head"))
    table["measure"] = table["measure"].map(AFFINE_TEXT)
    table["lowest head"] = heads.min("head").values
    table["highest head"] = heads.max("head").values
    table["below 0"] = POINTS * below.values
    return table
