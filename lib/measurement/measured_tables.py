"""From what was measured on each model to tables, the numbers behind notebooks 01, 02
and 04.

Most take Datasets by model and have a row per model and place: a mean over problems
with its interval, low and high, and n. `every` takes all layers on the problems that
went through them, instead of the first layers on all problems. `curves` and what
follows it are of the heads that figures draw, on one prompt, the profile's example.
"""

import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.measurement.plan import CHANGES, OTHERS, TRAINED, UNIFORM, UNTRAINED
from lib.measurement.run import measure
from lib.profiles import Figure, Panel, Profile
from lib.statistics import ALPHA, holm, interval, ratio, signed_rank

SPAN = ["mass", "flatness", "dispersion"]
AFFINE_TEXT = {
    "affine": "R2 of lambda * old + sigma",
    "line": "R2 with a coefficient of sigma per token",
    "softmax": "R2 with lambda per token from the softmax",
    "shifted": "R2 of old + sigma",
    "direction": "sigma: share of squares along one line",
    "component": "sigma: share of variance in first component",
}


def estimates(
    values: xr.DataArray, name: str = "mean", prefix: str = ""
) -> pd.DataFrame:
    """Return a row per measured place of values (problem, ...): labels, mean over its
    problems, low, high and n.
    """
    places = stacked(values)
    known = np.isfinite(places.values)
    rows = np.full((4, places.sizes["place"]), np.nan)
    for pattern in np.unique(known, axis=1).T:  # places that have the same problems
        alike = (known == pattern[:, None]).all(0)
        if pattern.any():
            found = interval(
                places.values[pattern][:, alike], places.problem.values[pattern]
            )
            rows[:, alike] = (
                found.estimate,
                found.low,
                found.high,
                np.full(alike.sum(), found.n),
            )
    table = pd.DataFrame(
        dict(zip((name, f"{prefix}low", f"{prefix}high", "n"), rows, strict=True)),
        places.indexes["place"],
    )
    return table[table.n > 0].astype({"n": int}).reset_index()


def stacked(values: xr.DataArray) -> xr.DataArray:
    """Return values (problem, place): all other axes as one."""
    return values.stack(
        place=[dim for dim in values.dims if dim != "problem"]
    ).transpose("problem", "place")


def by_model(table: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
    """Make a table of one model's Dataset that of a dict of them: the model's name
    comes first and n last.
    """

    @functools.wraps(table)
    def together(measured: dict[str, xr.Dataset], **options: bool) -> pd.DataFrame:
        found = pd.concat(
            {name: table(one, **options) for name, one in measured.items()},
            names=["model"],
        )
        return found.reset_index("model").assign(n=lambda rows: rows.pop("n"))

    return together


def layers_of(values: xr.DataArray, every: bool = False) -> xr.DataArray:
    """Return what was measured of the trained network: its first layers on all
    problems, where a cell may be NaN, or `every` layer on the problems, and under the
    conditions, that went through all.
    """
    values = values.sel(network=TRAINED, drop=True).dropna("condition", how="all")
    if every:
        last = values.isel(layer=-1, drop=True).notnull()
        return values.sel(
            {
                dim: last.any([d for d in last.dims if d != dim])
                for dim in ("condition", "problem")
            }
        )
    of_each_problem = values.notnull().any(
        [dim for dim in values.dims if dim not in ("problem", "layer")]
    )
    return values.sel(layer=of_each_problem.all("problem"))


@by_model
def heads_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return lambda by condition, layer and head, with the share of problems below 1,
    Holm's p of the signed-rank test of log lambda (over a model's heads, layers and
    conditions), and the means of mass, flatness and dispersion.
    """
    found = xr.Dataset(
        {name: layers_of(model[name], every) for name in ("lambda", *SPAN)}
    )
    lam, table = stacked(found["lambda"]), estimates(found["lambda"], "lambda")
    table["problems < 1"], table["p"] = (
        (lam < 1).mean("problem").values,
        holm(signed_rank(np.log(lam.values))),
    )
    means = found[SPAN].mean("problem").to_dataframe().reset_index()
    return table.merge(means, on=["condition", "layer", "head"])


@by_model
def layers_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return the mean over heads by condition, layer and measure: lambda, mass,
    flatness, dispersion.
    """
    found = {
        name: layers_of(model[name], every).mean("head") for name in ("lambda", *SPAN)
    }
    return estimates(xr.Dataset(found).to_dataarray("measure"))


@by_model
def spans_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda over the heads by condition, layer, and the tokens that receive
    (span) and give (query).
    """
    return estimates(
        model.lambda_by_span.sel(network=TRAINED, drop=True).mean("head"), "lambda"
    )


def controls_table(measured: dict[str, xr.Dataset], condition: str) -> pd.DataFrame:
    """Return a row per model, control (untrained, uniform) and first layer: the lowest
    and the highest lambda of its heads (and networks), each the mean over problems.
    """
    found = {}
    for model, one in measured.items():
        for name, networks in (("untrained", UNTRAINED), (UNIFORM, [UNIFORM])):
            heads = (
                one["lambda"]
                .sel(condition=condition, network=networks, drop=True)
                .dropna("layer")
                .mean("problem")
            )
            ends = {
                "lowest": heads.min(["network", "head"]),
                "highest": heads.max(["network", "head"]),
            }
            found[model, name] = (
                xr.Dataset(ends).to_dataframe()[list(ends)].reset_index()
            )
    return (
        pd.concat(found, names=["model", "control"])
        .reset_index(["model", "control"])
        .reset_index(drop=True)
    )


def count_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """Return by model, condition and layer of `heads_table` how many heads surely lie
    below and above 1: p < ALPHA.
    """
    sure = heads.p < ALPHA
    counted = heads.assign(
        below=sure & (heads["lambda"] < 1), above=sure & (heads["lambda"] > 1), heads=1
    )
    return (
        counted.groupby(["model", "condition", "layer"], sort=False)[
            ["below", "above", "heads"]
        ]
        .sum()
        .reset_index()
    )


@by_model
def causes_by_head(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda by cause and head of layer 1."""
    return estimates(model.cause_lambda.sel(network=TRAINED, drop=True), "lambda")


@by_model
def causes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda over the heads of layer 1 by cause, and its share of log lambda of
    `both`.
    """
    lam = model.cause_lambda.sel(network=TRAINED, drop=True)
    table, logs = estimates(lam.mean("head"), "lambda"), xr.ufuncs.log(lam).mean("head")
    whole = logs.sel(cause="both")
    shares = [
        ratio(logs.sel(cause=cause), whole, logs.problem.values)
        for cause in table.cause
    ]
    ends = {"share": "estimate", "share low": "low", "share high": "high"}
    return table.assign(
        **{
            name: [getattr(share, end) for share in shares]
            for name, end in ends.items()
        }
    )


@by_model
def affine_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the measures of new = lambda * old + sigma in layer 1: mean over heads,
    lowest and highest head.
    """
    found = (
        model[list(AFFINE_TEXT)].sel(network=TRAINED, drop=True).to_dataarray("measure")
    )
    table, heads = estimates(found.mean("head")), found.mean("problem")
    lowest, highest = heads.min("head").values, heads.max("head").values
    named = {
        "measure": table["measure"].map(AFFINE_TEXT),
        "lowest head": lowest,
        "highest head": highest,
    }
    return table.assign(**named)


@by_model
def changes_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return how many times as large as under none each measure of activations is
    (geometric mean), by condition and layer, and Holm's p of the signed-rank test,
    corrected for a model's rows.

    The problem is the unit: tests over single activations, such as Levene's, would take
    elements for independent.
    """
    logs = log_changes(layers_of(model.measures, every))
    table = estimates(logs, "ratio")
    table[["ratio", "low", "high"]] = np.exp(table[["ratio", "low", "high"]])
    return table.assign(p=holm(signed_rank(stacked(logs).values)))


def log_changes(measures: xr.DataArray) -> xr.DataArray:
    """Return log(measure / the same under none) of all other conditions; a share of
    nothing counts as half of the smallest, of all conditions: a floor from none alone
    would lift what ARM leaves near zero.
    """
    smallest = measures.where(measures > 0).min(["condition", "problem"]) / 2
    before, after = (
        measures.sel(condition="none", drop=True),
        measures.sel(condition=measures.condition != "none"),
    )
    return np.log(np.maximum(after, smallest) / np.maximum(before, smallest))


@by_model
def likeness_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the cosine between a condition's change and that of the slashes, by
    condition and layer: of the histogram (`shape`) and of single activations
    (`elements`).
    """
    changed = model[["shape", "elements"]].sel(condition=list(CHANGES[1:]))
    shape, elements = (
        estimates(layers_of(values), str(name), f"{name} ")
        for name, values in changed.items()
    )
    return shape.merge(elements, on=["condition", "layer", "n"])


@by_model
def classes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the share near zero in % by condition and class of tokens in layer 1, and
    its difference to the class `others`; n counts the problems that have tokens of
    both.
    """
    shares = 100 * model.classes.sel(network=TRAINED, layer=1, drop=True)
    apart = shares - shares.sel({"class": OTHERS}, drop=True)
    return estimates(shares.where(apart.notnull()), "near zero").merge(
        estimates(apart, "against others", "against ")
    )


# (layer, head) that a figure draws where a profile names none, as far as the model has
# them.
FIRST = {
    "fig09": [(1, 1), (2, 1), (3, 1)],
    "fig10": [(1, 1)],
    "fig11": [(1, 1), (1, 2), (1, 3)],
    "fig13": [(1, 1), (1, 2), (1, 3)],
    "fig18": [(1, 4), (1, 5), (1, 6)],
}


def curves(profile: Profile, figure: Figure, conditions: Sequence[str]) -> pd.DataFrame:
    """Return a row per token of each head that a figure draws, from left to right,
    under these conditions: model, revision, problem, layer, head, condition, position,
    part of the prompt and what it receives.

    Raises InputError when the model lacks a head, or what is stored of it.
    """
    found = []
    for place, head in _drawn(profile, figure, "tokens"):
        tokens = head[["received", "part"]].sel(condition=list(conditions))
        if tokens.received.isnull().all():
            raise InputError(f"{figure}: what {place} gives is not stored")
        rows = tokens.to_dataframe().reset_index(names=["condition", "position"])
        about = {
            "model": head.model,
            "revision": head.revision,
            "problem": head.example,
        }
        found.append(rows[rows.part != ""].assign(**about))
    columns = [
        "model",
        "revision",
        "problem",
        "layer",
        "head",
        "condition",
        "position",
        "part",
        "received",
    ]
    return pd.concat(found, ignore_index=True)[columns]


def spans_of_heads(profile: Profile, *figures: Figure) -> pd.DataFrame:
    """Return λ of the problem's and of the instruction's tokens (span, lambda, low,
    high, n) over all problems, for each head that these figures draw, under the slashes
    and from all later tokens.
    """
    asked = {
        "network": TRAINED,
        "condition": "mless",
        "query": "all",
        "span": ["problem", "instruction"],
    }
    tables = []
    for figure, head in (
        (name, head)
        for name in figures
        for _, head in _drawn(profile, name, "attention")
    ):
        place = {
            "model": head.model,
            "layer": head.layer.item(),
            "head": head["head"].item(),
        }
        tables.append(
            estimates(head.lambda_by_span.sel(asked), "lambda").assign(
                figure=figure, **place
            )
        )
    columns = ["figure", "model", "layer", "head", "span", "lambda", "low", "high", "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def _drawn(
    profile: Profile, figure: Figure, part: str
) -> Iterator[tuple[str, xr.Dataset]]:
    """Yield of the heads that a figure draws, the profile's or the FIRST of its first
    model, what a message calls each and this part of what is measured on it; raises
    InputError for one that the model lacks.
    """
    asked, panels = profile.attention, profile.attention.panels.get(figure)
    if not panels:
        (measured,) = measure(profile, part, models=asked.models[:1]).values()
        heads = measured.sizes["head"]
        places = [
            (layer, head)
            for layer, head in FIRST[figure]
            if layer <= asked.layers and head <= heads
        ]
        panels = [
            Panel(model=asked.models[0], layer=layer, head=head)
            for layer, head in places or [(1, heads)]
        ]
    for panel in panels:
        (measured,) = measure(profile, part, models=[panel.model]).values()
        layers, heads = (measured[dim].values for dim in ("layer", "head"))
        if panel.layer not in layers or panel.head not in heads:
            last = f"layers 1 to {layers[-1]} and heads 1 to {heads[-1]}"
            raise InputError(
                f"{figure}: {panel.model} has {last}, not layer {panel.layer}, head"
                f" {panel.head}"
            )
        place = f"layer {panel.layer}, head {panel.head} of {panel.model}"
        yield place, measured.sel(layer=panel.layer, head=panel.head)


def summary_of_heads(*figures: pd.DataFrame) -> pd.DataFrame:
    """Return a row per head of tables of `curves`: λ of its original tokens, without
    the first and the last, under mless, the share of them that receive less, and what a
    slash receives relative to an original token.
    """
    rows = []
    for place, head in (
        one
        for table in figures
        for one in table.groupby(["model", "layer", "head"], sort=False)
    ):
        original, slashes = (
            head[head.part != "inserted"],
            head.received[head.part == "inserted"],
        )
        before, after = (
            original.received[original.condition == name].to_numpy()[1:-1]
            for name in ("none", "mless")
        )
        numbers = (
            after.mean() / before.mean(),
            np.mean(after < before),
            slashes.mean() / after.mean(),
        )
        rows.append((*place, len(before), len(slashes), *numbers))
    columns = ["tokens", "slashes", "λ", "receive less", "slash / original"]
    return pd.DataFrame(rows, columns=["model", "layer", "head", *columns])
