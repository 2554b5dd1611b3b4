"""What a claim asks of a model: a number per problem for each component, from one of three tables.

A public function is what data/claims.yaml names as `measure`; what its first parameter is called is what it is given:

    measured   a Dataset of `lib.measurement.store` over networks, conditions, problems, layers and heads, measures or
               classes; NaN: not measured
    answers    completions, a row for each
    scores     likelihoods, a row for each

Each returns (network, component, problem), of the one trained network where it is given rows, with the kind of its
numbers (`lib.statistics`) as attribute, a mean if none; or it raises Untestable.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pandas as pd
import xarray as xr

from lib.claims import Untestable
from lib.evaluation.tables import distinct_2
from lib.measurement.store import OTHERS
from lib.measurement.tables import log_changes
from lib.statistics import POINTS, interval, pass_at_k

AFFINE = {"affine": "one λ, one σ", "line": "a coefficient of σ per token", "softmax": "a λ per token"}
POSITIVE = ("example", "none")  # the positive control, a worked example: its gain is the scale of an effect


def _of(measured: xr.Dataset, name: str, **labels) -> xr.DataArray:
    """Return a variable where its dimensions have these labels; raises Untestable for one that was not measured."""
    if name not in measured:
        raise Untestable(f"the profile measures no {name}")
    for dim, wanted in labels.items():
        if missing := set(np.atleast_1d(wanted).tolist()) - set(measured[dim].values.tolist()):
            known = ", ".join(map(str, measured[dim].values))
            raise Untestable(f"{dim} {min(missing)} was not measured, only {known}")
    return measured[name].sel(labels)


def _each(values: xr.DataArray, dim: str, text: str = "{}") -> xr.DataArray:
    """Return the values with a component for each label of an axis, named after it."""
    return values.rename({dim: "component"}).assign_coords(component=[text.format(one) for one in values[dim].values])


def _parts(**values: xr.DataArray) -> xr.DataArray:
    return xr.concat(values.values(), pd.Index([name.replace("_", " ") for name in values], name="component"))


def _heads(values: xr.DataArray, over: str) -> xr.DataArray:
    """Return a component for each head, or their mean with what the trained network's heads give beside it."""
    if over == "each":
        return _each(values, "head", "head {}")
    if not values.sel(network="trained").notnull().any():
        raise Untestable("the profile measures no attention here")
    heads = values.sel(network="trained").mean("problem").values
    return _parts(**{f"mean of {len(heads)} heads": values.mean("head")}).assign_attrs(heads=heads)


def lambdas(measured: xr.Dataset, condition: str, layer: int, heads: str) -> xr.DataArray:
    """Return lambda of the heads of a layer; heads: mean or each."""
    return _heads(_of(measured, "lambda", condition=condition, layer=layer), heads)


def lambda_of_span(measured: xr.Dataset, condition: str, layer: int, span: str, query: str) -> xr.DataArray:
    """Return lambda, the mean over heads, of the tokens of a span from these queries: see lib.measurement.store."""
    labels = {"condition": condition, "layer": layer, "span": span, "query": query}
    return _heads(_of(measured, "lambda_by_span", **labels), "mean")


def lambda_from(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return lambda averaged over the heads of a layer and of all that follow it."""
    first = _of(measured, "lambda", condition=condition, layer=layer).layer
    deeper = measured["lambda"].sel(condition=condition, layer=measured.layer >= first)
    return _parts(**{f"layers {layer} to {deeper.layer.values.max()}": deeper.mean(["head", "layer"])})


def filler_attention(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return, over a layer's heads, inserted over original tokens: received attention, and its unevenness."""
    names = "portion", "flatness", "unevenness"
    level, even, uneven = (_of(measured, name, condition=condition, layer=layer).mean("head") for name in names)
    return _parts(level=level, evenness=even / uneven)


def after_layer_1(measured: xr.Dataset, variable: str, condition: str, layers: Sequence[int]) -> xr.DataArray:
    """Return by how much a variable's mean over heads is larger in these layers than in layer 1.

    Of lambda, or of irregularity: the deviation over tokens of log(received with / without).
    """
    values = _of(measured, variable, condition=condition, layer=[1, *layers]).mean("head")
    return _each(values.sel(layer=layers) - values.sel(layer=1, drop=True), "layer", "layer {}")


def span_differences(measured: xr.Dataset, more: str, less: str, layer: int) -> xr.DataArray:
    """Return by how much the unevenness of the span's attention and the spread of its values differ."""
    found = []
    for name in ("flatness", "dispersion"):
        values = _of(measured, name, condition=[more, less], layer=layer)
        found.append((values.sel(condition=more) - values.sel(condition=less)).mean("head"))
    return _parts(attention=found[0], values=found[1])


def lambda_ratios(measured: xr.Dataset, condition: str, reference: str, layer: int, heads: str) -> xr.DataArray:
    """Return lambda of one condition over that of another, for the heads of a layer; heads: mean or each."""
    lam = _of(measured, "lambda", condition=[condition, reference], layer=layer)
    return _heads(lam.sel(condition=condition) / lam.sel(condition=reference), heads)


def affine_fit(measured: xr.Dataset, form: str) -> xr.DataArray:
    """Return R² of the affine map in layer 1, averaged over heads, in one form of it or in the one that fits best."""
    fits = xr.concat([_of(measured, name).mean("head") for name in AFFINE], pd.Index(AFFINE.values(), name="component"))
    if form != "best":
        return fits.sel(component=[AFFINE[form]])
    best = fits.mean("problem").fillna(0).argmax("component")  # of each network (network,)
    label = fits.component.values[best.sel(network="trained")]
    return fits.isel(component=best).drop_vars("component").expand_dims(component=[label])


def activation_changes(
    measured: xr.Dataset, condition: str, layer: int, rise: Sequence[str], fall: Sequence[str]
) -> xr.DataArray:
    """Return log ratios to none of the measures that should rise, and their negatives of those that should fall."""
    values = _of(measured, "measures", layer=layer, condition=["none", condition])
    logs = log_changes(values).sel(condition=condition)
    up, down = _each(logs.sel(measure=rise), "measure", "{} up"), _each(-logs.sel(measure=fall), "measure", "{} down")
    return xr.concat([part for part in (up, down) if part.sizes["component"]], "component")


def class_differences(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the near-zero share of each class of tokens minus that of the others, in points."""
    shares = 100 * _of(measured, "classes", condition=condition, layer=layer)
    return _each((shares - shares.sel({"class": OTHERS}, drop=True)).drop_sel({"class": OTHERS}), "class")


def class_falls(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return by how many points a condition lowers the near-zero share of each class of tokens but the others."""
    shares = 100 * _of(measured, "classes", condition=["none", condition], layer=layer).drop_sel({"class": OTHERS})
    return _each(shares.sel(condition="none") - shares.sel(condition=condition), "class")


def likeness(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the cosine between a condition's change of the histogram of activations and that of the slashes."""
    return _parts(histogram=_of(measured, "shape", condition=condition, layer=layer))


def _values(parts: dict[str, pd.Series], kind: str) -> xr.DataArray:
    """Return Series by problem as the values of one network, NaN where a problem has none."""
    table = pd.DataFrame(parts)
    coords = {"network": ["trained"], "component": list(table), "problem": list(table.index)}
    found = xr.DataArray(table.T.to_numpy(float)[None], coords, ("network", "component", "problem"))
    return found.assign_attrs(kind=kind)


def _wide(values: pd.Series, names: Sequence[str], what: str) -> pd.DataFrame:
    """Return values by (problem, condition) as a column per condition; raises Untestable where one has none."""
    if missing := [name for name in dict.fromkeys(names or ["none"]) if name not in values.index.unique(1)]:
        raise Untestable(f"the profile {what} under {', '.join(missing)}")
    return values.unstack(sort=False)


def _by_problem(answers: pd.DataFrame, part: str, names: Sequence[str], column: str, how) -> pd.DataFrame:
    """Return an aggregate of a column over each problem's samples, a column per condition, of which some are needed."""
    some = answers[answers.part == part].drop_duplicates(["condition", "problem_id", "sample"])
    found = some.groupby(["problem_id", "condition"], sort=False)[column].agg(how)
    return _wide(found, names, f"answers no problems ({part})")


def _accuracies(answers: pd.DataFrame, part: str, names: Sequence[str]) -> pd.DataFrame:
    return POINTS * _by_problem(answers, part, names, "right", "mean")


def accuracy_unaided(answers: pd.DataFrame, part: str, condition: str) -> xr.DataArray:
    """Return the accuracy under a condition in %, where the model is left to write its answer itself."""
    found = _accuracies(answers, part, [condition])[condition]
    if not answers.plain.all():
        raise Untestable("the model is asked in chat form, or its answer is elicited after what was inserted")
    return _values({condition: found}, "share")


def accuracy_differences(answers: pd.DataFrame, part: str, pairs: Sequence[Sequence[str]]) -> xr.DataArray:
    """Return for each pair of conditions the accuracy of the first minus that of the second, in points."""
    solved = _accuracies(answers, part, list(chain.from_iterable(pairs)))
    apart = {f"{more} - {less}": solved[more] - solved[less] for more, less in pairs}
    found = _values(apart, "difference")
    if len(pairs) > 1:
        return found
    ((more, less), only) = pairs[0], apart.popitem()[1]
    return found.assign_attrs(cut=_cut(answers, part, more, less, only))


def _cut(answers: pd.DataFrame, part: str, more: str, less: str, apart: pd.Series) -> dict[str, float]:
    """Return the shares of answers that were cut at the token limit, in %, and the effect where both ended."""
    ended = answers.assign(ended=answers.finish_reason.eq("stop").astype(float))
    shares = _by_problem(ended, part, [more, less], "ended", "mean")[[more, less]]
    row = {"cut": POINTS * (1 - shares[more].mean()), "cut_less": POINTS * (1 - shares[less].mean())}
    both = apart[(shares == 1).all(axis=1)].dropna()
    if both.empty:
        return row
    found = interval(both, both.index, "difference")
    return row | {
        "finished_n": found.n,
        "finished": found.estimate,
        "finished_low": found.low,
        "finished_high": found.high,
    }


def largest_gain(answers: pd.DataFrame, part: str) -> xr.DataArray:
    """Return each condition's accuracy minus that of none: the best of them is to be more than choosing it gives."""
    solved = _accuracies(answers, part, ["none"]).dropna()
    if solved.shape[1] < 3:
        raise Untestable(f"the profile compares fewer than two conditions with none ({part})")
    gains = {str(name): solved[name] - solved["none"] for name in solved if name != "none"}
    return _values(gains, "largest")


def _passed(answers: pd.DataFrame, names: Sequence[str], k: int) -> pd.DataFrame:
    """Return pass@k of each problem in %; raises Untestable where one has fewer samples."""
    fewest = _by_problem(answers, "sampling", names, "right", "size")[names].min().min()
    if fewest < k:
        raise Untestable(f"pass@{k} needs {k} samples of each problem, and {fewest:.0f} were taken")
    return _by_problem(answers, "sampling", names, "right", lambda some: POINTS * pass_at_k([some], k)[0])


def pass_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return a condition minus none: pass@k, in points."""
    passed = _passed(answers, [condition, "none"], k)
    return _values({f"pass@{k}": passed[condition] - passed["none"]}, "difference")


def sampling_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return a condition minus none: pass@k and the share of distinct 2-grams of a problem's samples, in points."""
    passed = _passed(answers, [condition, "none"], k)
    pairs = _by_problem(answers, "sampling", [], "response", lambda some: POINTS * distinct_2(some))
    both = {f"pass@{k}": passed, "distinct 2-grams": pairs}
    return _values({name: table[condition] - table["none"] for name, table in both.items()}, "difference")


def likelihood_differences(scores: pd.DataFrame, target: str, pairs: Sequence[Sequence[str]]) -> xr.DataArray:
    """Return for each pair of conditions log p under the first less that under the second, in nats per problem."""
    found = scores[scores.target == target].set_index(["problem_id", "condition"]).nats
    if found.empty:
        raise Untestable(f"the profile scores no {target}s")
    nats = _wide(found, list(chain.from_iterable(pairs)), "scores nothing")
    return _values({f"{more} - {less}": nats[more] - nats[less] for more, less in pairs}, "mean")
