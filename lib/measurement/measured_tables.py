"""From what was measured on each model to tables: the numbers of notebooks 01 to 04.

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

# What is measured of the inserted tokens.
INSERTED_MEASURES = ["mass", "flatness", "dispersion"]
AFFINE_TEXT = {
    "affine": "R2 of lambda * old + sigma",
    "line": "R2 with a coefficient of sigma per token",
    "softmax": "R2 with lambda per token from the softmax",
    "shifted": "R2 of old + sigma",
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
    measured = np.isfinite(places.values)
    numbers = np.full((4, places.sizes["place"]), np.nan)
    # The places that have the same problems are estimated together.
    for pattern in np.unique(measured, axis=1).T:
        if not pattern.any():
            continue
        alike = (measured == pattern[:, None]).all(0)
        means = interval(
            places.values[pattern][:, alike], places.problem.values[pattern]
        )
        n = np.full(alike.sum(), means.n)
        numbers[:, alike] = means.estimate, means.low, means.high, n

    columns = [name, f"{prefix}low", f"{prefix}high", "n"]
    table = pd.DataFrame(numbers.T, places.indexes["place"], columns)
    return table[table.n > 0].astype({"n": int}).reset_index()


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
        tables = {name: table(model, **options) for name, model in measured.items()}
        rows = pd.concat(tables, names=["model"]).reset_index("model")
        return rows[[name for name in rows if name != "n"] + ["n"]]

    return together


def layers_of(values: xr.DataArray, every: bool = False) -> xr.DataArray:
    """Return what was measured of the trained network's first layers on all problems.

    A cell may be NaN. `every` layer instead on the problems, and under the conditions,
    that went through all.
    """
    values = values.sel(network=TRAINED, drop=True).dropna("condition", how="all")
    if not every:
        others = [dim for dim in values.dims if dim not in ("problem", "layer")]
        of_each_problem = values.notnull().any(others)
        return values.sel(layer=of_each_problem.all("problem"))

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
    table = means_table(lam, "lambda")
    table["problems < 1"] = (by_problem < 1).mean("problem").values
    table["p"] = holm(signed_rank(np.log(by_problem.values)))

    inserted = {
        name: layers_of(model[name], every).mean("problem")
        for name in INSERTED_MEASURES
    }
    means = xr.Dataset(inserted).to_dataframe().reset_index()
    return table.merge(means, on=["condition", "layer", "head"])


@of_each_model
def layers_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return the mean over heads by condition, layer and measure.

    The measures are lambda, mass, flatness and dispersion.
    """
    means = {
        name: layers_of(model[name], every).mean("head")
        for name in ("lambda", *INSERTED_MEASURES)
    }
    return means_table(xr.Dataset(means).to_dataarray("measure"))


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
    by_source = {
        "slashes": trained.sel(condition="mless"),
        "a sentence as long": trained.sel(condition="random"),
        "slashes, untrained networks": controls.sel(network=UNTRAINED).mean("network"),
        "slashes, attention spread evenly": controls.sel(network=UNIFORM),
    }
    tables = {
        source: means_table(values.mean("head"), "mass")[
            ["layer", "mass", "low", "high", "n"]
        ]
        for source, values in by_source.items()
    }
    return pd.concat(tables, names=["inserted"]).reset_index("inserted")


@of_each_model
def spans_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda over the heads by condition, layer, and the tokens concerned.

    `span` are those that receive, `query` those that give.
    """
    by_span = model.lambda_by_span.sel(network=TRAINED, drop=True)
    return means_table(by_span.mean("head"), "lambda")


def controls_table(measured: dict[str, xr.Dataset], condition: str) -> pd.DataFrame:
    """Return a row per model, control (untrained, uniform) and first layer.

    It has the lowest and the highest lambda of the control's heads (and networks), each
    the mean over problems.
    """
    tables = {}
    for model, dataset in measured.items():
        for control, networks in (("untrained", UNTRAINED), (UNIFORM, [UNIFORM])):
            lam = dataset["lambda"].sel(
                condition=condition, network=networks, drop=True
            )
            heads = lam.dropna("layer").mean("problem")
            ends = {
                "lowest": heads.min(["network", "head"]),
                "highest": heads.max(["network", "head"]),
            }
            tables[model, control] = xr.Dataset(ends).to_dataframe().reset_index()
    rows = pd.concat(tables, names=["model", "control", None])
    return rows.reset_index(["model", "control"]).reset_index(drop=True)


def count_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """Return how many heads of `heads_table` surely lie below and above 1: p < ALPHA.

    There is a row per model, condition and layer.
    """
    sure = heads.p < ALPHA
    counted = heads.assign(
        below=sure & (heads["lambda"] < 1),
        above=sure & (heads["lambda"] > 1),
        heads=1,
    )
    groups = counted.groupby(["model", "condition", "layer"], sort=False)
    return groups[["below", "above", "heads"]].sum().reset_index()


@of_each_model
def causes_by_head(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda by cause and head of layer 1."""
    return means_table(model.cause_lambda.sel(network=TRAINED, drop=True), "lambda")


@of_each_model
def causes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return lambda over the heads of layer 1 by cause, and the cause's share.

    The share is that of the log lambda of `both`.
    """
    lam = model.cause_lambda.sel(network=TRAINED, drop=True)
    logs = xr.ufuncs.log(lam).mean("head")
    whole = logs.sel(cause="both")
    table = means_table(lam.mean("head"), "lambda")
    shares = [
        ratio(logs.sel(cause=cause), whole, logs.problem.values)
        for cause in table.cause
    ]
    table["share"] = [share.estimate for share in shares]
    table["share low"] = [share.low for share in shares]
    table["share high"] = [share.high for share in shares]
    return table


@of_each_model
def affine_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the measures of new = lambda * old + sigma in layer 1.

    Each is a mean over heads, beside the lowest and the highest head.
    """
    fits = model[list(AFFINE_TEXT)].sel(network=TRAINED, drop=True)
    values = fits.to_dataarray("measure")
    heads = values.mean("problem")
    table = means_table(values.mean("head"))
    table["measure"] = table["measure"].map(AFFINE_TEXT)
    table["lowest head"] = heads.min("head").values
    table["highest head"] = heads.max("head").values
    return table


def affine_sentence(table: pd.DataFrame) -> str:
    """Return a sentence on how well Eq. 2 fits the models of an `affine_table`."""
    ranges = {}
    for name in ("affine", "softmax"):
        means = table[table.measure == AFFINE_TEXT[name]]["mean"]
        ends = dict.fromkeys(f"{end:.2f}" for end in (means.min(), means.max()))
        ranges[name] = " to ".join(ends)
    return (
        f"R² is {ranges['affine']} with one λ for all tokens, as Eq. 2 has it, and"
        f" {ranges['softmax']} with each token's own λ."
    )


@of_each_model
def changes_table(model: xr.Dataset, *, every: bool = False) -> pd.DataFrame:
    """Return how many times as large as under none each measure of activations is.

    It is a geometric mean, by condition and layer, with Holm's p of the signed-rank
    test, corrected for a model's rows. The problem is the unit: tests over single
    activations, such as Levene's, would take elements for independent.
    """
    logs = log_changes(layers_of(model.measures, every))
    table = means_table(logs, "ratio")
    ends = ["ratio", "low", "high"]
    table[ends] = np.exp(table[ends])
    table["p"] = holm(signed_rank(stacked(logs).values))
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
    return np.log(np.maximum(after, floor) / np.maximum(before, floor))


@of_each_model
def likeness_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the cosine between a condition's change and that of the slashes.

    By condition and layer: of the histogram (`shape`) and of single activations
    (`elements`).
    """
    others = list(CHANGES[1:])
    shape = layers_of(model["shape"].sel(condition=others))
    elements = layers_of(model["elements"].sel(condition=others))
    return means_table(shape, "shape", "shape ").merge(
        means_table(elements, "elements", "elements "), on=["condition", "layer", "n"]
    )


@of_each_model
def classes_table(model: xr.Dataset) -> pd.DataFrame:
    """Return the share near zero in % by condition and class of tokens in layer 1.

    Beside it stands its difference to the class `others`; n counts the problems that
    have tokens of both.
    """
    shares = 100 * model.classes.sel(network=TRAINED, layer=1, drop=True)
    against = shares - shares.sel({"class": OTHERS}, drop=True)
    of_both = means_table(shares.where(against.notnull()), "near zero")
    return of_both.merge(means_table(against, "against others", "against "))


# The (layer, head) that a figure draws where a profile names none, as far as the model
# has them.
FIRST_HEADS = {
    "fig09": [(1, 1), (2, 1), (3, 1)],
    "fig10": [(1, 1)],
    "fig11": [(1, 1), (1, 2), (1, 3)],
    "fig13": [(1, 1), (1, 2), (1, 3)],
    "fig18": [(1, 4), (1, 5), (1, 6)],
}
# A row per drawn head, model first.
HEAD_COLUMNS = ["model", "layer", "head"]


def curves(profile: Profile, figure: Figure, conditions: Sequence[str]) -> pd.DataFrame:
    """Return a row per token of each head that a figure draws, from left to right.

    Its columns are model, revision, problem, layer, head, condition, position, part of
    the prompt and what the token receives. Raises InputError when the model lacks a
    head, or what is stored of it.
    """
    tables = []
    for place, head in _drawn_curves(profile, figure, "tokens"):
        tokens = head[["received", "part"]].sel(condition=list(conditions))
        if tokens.received.isnull().all():
            raise InputError(f"{figure}: what {place} gives is not stored")
        rows = tokens.to_dataframe().reset_index(names=["condition", "position"])
        # Beyond the end of a shorter prompt a token has no part.
        tables.append(
            rows[rows.part != ""].assign(
                model=head.model, revision=head.revision, problem=head.example
            )
        )
    about = ["model", "revision", "problem", "layer", "head"]
    columns = [*about, "condition", "position", "part", "received"]
    return pd.concat(tables, ignore_index=True)[columns]


def spans_of_heads(profile: Profile, *figures: Figure) -> pd.DataFrame:
    """Return λ of the problem's and of the instruction's tokens over all problems.

    There are two rows (span, lambda, low, high, n) for each head that these figures
    draw, under the slashes and from all later tokens.
    """
    tables = []
    for figure in figures:
        for _, head in _drawn_curves(profile, figure, "attention"):
            by_span = head.lambda_by_span.sel(
                network=TRAINED,
                condition="mless",
                query="all",
                span=["problem", "instruction"],
            )
            rows = means_table(by_span, "lambda")
            rows["figure"] = figure
            rows["model"] = head.model
            rows["layer"] = head.layer.item()
            rows["head"] = head["head"].item()
            tables.append(rows)
    columns = ["figure", *HEAD_COLUMNS, "span", "lambda", "low", "high", "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def _drawn_curves(
    profile: Profile, figure: Figure, part: str
) -> Iterator[tuple[str, xr.Dataset]]:
    """Yield, of the heads that a figure draws, what a message calls each and its data.

    The data are this part of what is measured on it. Raises InputError for a head that
    the model lacks.
    """
    panels = profile.attention.panels.get(figure)
    for panel in panels or _first_panels(profile, figure, part):
        (measured,) = measure(profile, part, models=[panel.model]).values()
        layers = measured["layer"].values
        heads = measured["head"].values
        if panel.layer not in layers or panel.head not in heads:
            raise InputError(
                f"{figure}: {panel.model} has layers 1 to {layers[-1]} and heads 1 to"
                f" {heads[-1]}, not layer {panel.layer}, head {panel.head}"
            )
        place = f"layer {panel.layer}, head {panel.head} of {panel.model}"
        yield place, measured.sel(layer=panel.layer, head=panel.head)


def _first_panels(profile: Profile, figure: Figure, part: str) -> list[Panel]:
    """Return the FIRST_HEADS of the profile's first model, at least its last head."""
    spec = profile.attention.models[0]
    (measured,) = measure(profile, part, models=[spec]).values()
    heads = measured.sizes["head"]
    places = [
        (layer, head)
        for layer, head in FIRST_HEADS[figure]
        if layer <= profile.attention.layers and head <= heads
    ]
    return [
        Panel(model=spec, layer=layer, head=head)
        for layer, head in places or [(1, heads)]
    ]


def summary_of_heads(*tables: pd.DataFrame) -> pd.DataFrame:
    """Return a row per head of tables of `curves`.

    It has λ of the original tokens, without the first and the last, under mless, the
    share of them that receive less, and what a slash receives relative to an original
    token.
    """
    rows = []
    for table in tables:
        for place, head in table.groupby(HEAD_COLUMNS, sort=False):
            slashes = head.received[head.part == "inserted"]
            original = head[head.part != "inserted"]
            by_condition = original.groupby("condition").received
            before = by_condition.get_group("none").to_numpy()[1:-1]
            after = by_condition.get_group("mless").to_numpy()[1:-1]
            rows.append(
                {
                    **dict(zip(HEAD_COLUMNS, place, strict=True)),
                    "tokens": len(before),
                    "slashes": len(slashes),
                    "λ": after.mean() / before.mean(),
                    "receive less": np.mean(after < before),
                    "slash / original": slashes.mean() / after.mean(),
                }
            )
    return pd.DataFrame(rows)
