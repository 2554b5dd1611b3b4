"""What a claim asks of a model: a number per problem for each component, from one of
three tables.

A public function is what data/claims.yaml names as `measure`; its first parameter says
what it is given: `measured`, a Dataset of `lib.measurement.plan` where NaN was not
measured; `answers`, a row per completion; `scores`, a row per likelihood. Each returns
(network, component, problem), of the one trained network where it is given rows, with
the kind of its numbers (`lib.statistics`) as attribute, a mean if none; or it raises
Untestable.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
import pandas as pd
import xarray as xr

from lib.evaluation.answer_tables import distinct_2, groups, shares, solved
from lib.measurement.measured_tables import log_changes
from lib.measurement.plan import OTHERS
from lib.statistics import POINTS, interval, pass_at_k

AFFINE = {
    "affine": "one λ, one σ",
    "line": "a coefficient of σ per token",
    "softmax": "a λ per token",
}
POSITIVE = (
    "example",
    "none",
)  # the positive control, a worked example: its gain is the scale of an effect


class Untestable(ValueError):
    """Says why what was measured cannot test a claim."""


def _selected(measured: xr.Dataset, name: str, **labels) -> xr.DataArray:
    """Return a variable where its dimensions have these labels; raises Untestable where
    it was not measured.
    """
    if name not in measured:
        raise Untestable(f"the profile measures no {name}")
    for dim, wanted in labels.items():
        if missing := set(np.atleast_1d(wanted).tolist()) - set(
            measured[dim].values.tolist()
        ):
            known = ", ".join(map(str, measured[dim].values))
            raise Untestable(f"{dim} {min(missing)} was not measured, only {known}")
    return measured[name].sel(labels)


def _each(values: xr.DataArray, dim: str, text: str = "{}") -> xr.DataArray:
    """Return the values with a component for each label of an axis, named after it."""
    return values.rename({dim: "component"}).assign_coords(
        component=[text.format(one) for one in values[dim].values]
    )


def _parts(**values: xr.DataArray) -> xr.DataArray:
    return xr.concat(
        values.values(),
        pd.Index([name.replace("_", " ") for name in values], name="component"),
    )


def _heads(values: xr.DataArray, over: str) -> xr.DataArray:
    """Return a component for each head, or their mean with what the trained network's
    heads give beside it.
    """
    if over == "each":
        return _each(values, "head", "head {}")
    if not values.sel(network="trained").notnull().any():
        raise Untestable("the profile measures no attention here")
    heads = values.sel(network="trained").mean("problem").values
    return _parts(**{f"mean of {len(heads)} heads": values.mean("head")}).assign_attrs(
        heads=heads
    )


def lambdas(
    measured: xr.Dataset, condition: str, layer: int, heads: str
) -> xr.DataArray:
    """Return lambda of the heads of a layer; heads: mean or each."""
    return _heads(
        _selected(measured, "lambda", condition=condition, layer=layer), heads
    )


def lambda_of_span(
    measured: xr.Dataset, condition: str, layer: int, span: str, query: str
) -> xr.DataArray:
    """Return lambda, the mean over heads, of the tokens of a span from these queries:
    see lib.measurement.attention.
    """
    labels = {"condition": condition, "layer": layer, "span": span, "query": query}
    return _heads(_selected(measured, "lambda_by_span", **labels), "mean")


def lambda_from(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return lambda averaged over the heads of a layer and of all that follow it."""
    first = _selected(measured, "lambda", condition=condition, layer=layer).layer
    deeper = measured["lambda"].sel(condition=condition, layer=measured.layer >= first)
    return _parts(
        **{
            f"layers {layer} to {deeper.layer.values.max()}": deeper.mean(
                ["head", "layer"]
            )
        }
    )


def filler_attention(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return, over a layer's heads, inserted over original tokens: received attention,
    and its unevenness.
    """
    names = "portion", "flatness", "unevenness"
    level, even, uneven = (
        _selected(measured, name, condition=condition, layer=layer).mean("head")
        for name in names
    )
    return _parts(level=level, evenness=even / uneven)


def after_layer_1(
    measured: xr.Dataset, variable: str, condition: str, layers: Sequence[int]
) -> xr.DataArray:
    """Return by how much a variable's mean over heads is larger in these layers than in
    layer 1.

    Of lambda, or of irregularity: the deviation over tokens of log(received with /
    without).
    """
    values = _selected(
        measured, variable, condition=condition, layer=[1, *layers]
    ).mean("head")
    return _each(
        values.sel(layer=layers) - values.sel(layer=1, drop=True), "layer", "layer {}"
    )


def span_differences(
    measured: xr.Dataset, more: str, less: str, layer: int
) -> xr.DataArray:
    """Return by how much the unevenness of the span's attention and the spread of its
    values differ.
    """
    both = [
        _selected(measured, name, condition=[more, less], layer=layer)
        for name in ("flatness", "dispersion")
    ]
    apart = [
        (values.sel(condition=more) - values.sel(condition=less)).mean("head")
        for values in both
    ]
    return _parts(attention=apart[0], values=apart[1])


def lambda_ratios(
    measured: xr.Dataset, condition: str, reference: str, layer: int, heads: str
) -> xr.DataArray:
    """Return lambda of one condition over that of another, for the heads of a layer;
    heads: mean or each.
    """
    lam = _selected(measured, "lambda", condition=[condition, reference], layer=layer)
    return _heads(lam.sel(condition=condition) / lam.sel(condition=reference), heads)


def affine_fit(measured: xr.Dataset, form: str) -> xr.DataArray:
    """Return R² of the affine map in layer 1, averaged over heads, in one form of it or
    in the one that fits best.
    """
    fits = xr.concat(
        [_selected(measured, name).mean("head") for name in AFFINE],
        pd.Index(AFFINE.values(), name="component"),
    )
    if form != "best":
        return fits.sel(component=[AFFINE[form]])
    best = (
        fits.mean("problem").fillna(0).argmax("component")
    )  # of each network (network,)
    label = fits.component.values[best.sel(network="trained")]
    return (
        fits.isel(component=best).drop_vars("component").expand_dims(component=[label])
    )


def activation_changes(
    measured: xr.Dataset,
    condition: str,
    layer: int,
    rise: Sequence[str],
    fall: Sequence[str],
) -> xr.DataArray:
    """Return log ratios to none of the measures that should rise, and their negatives
    of those that should fall.
    """
    values = _selected(measured, "measures", layer=layer, condition=["none", condition])
    logs = log_changes(values).sel(condition=condition)
    up, down = (
        _each(logs.sel(measure=rise), "measure", "{} up"),
        _each(-logs.sel(measure=fall), "measure", "{} down"),
    )
    return xr.concat(
        [part for part in (up, down) if part.sizes["component"]], "component"
    )


def class_differences(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the near-zero share of each class of tokens minus that of the others, in
    points.
    """
    near = POINTS * _selected(measured, "classes", condition=condition, layer=layer)
    return _each(
        (near - near.sel({"class": OTHERS}, drop=True)).drop_sel({"class": OTHERS}),
        "class",
    )


def class_falls(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return by how many points a condition lowers the near-zero share of each class of
    tokens but the others.
    """
    near = POINTS * _selected(
        measured, "classes", condition=["none", condition], layer=layer
    ).drop_sel({"class": OTHERS})
    return _each(near.sel(condition="none") - near.sel(condition=condition), "class")


def likeness(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the cosine between a condition's change of the histogram of activations
    and that of the slashes.
    """
    return _parts(
        histogram=_selected(measured, "shape", condition=condition, layer=layer)
    )


def _values(parts: dict[str, pd.Series] | pd.DataFrame, kind: str) -> xr.DataArray:
    """Return Series by problem as the values of one network, NaN where a problem has
    none.
    """
    table = pd.DataFrame(parts).rename_axis(index="problem", columns="component")
    return xr.DataArray(table).expand_dims(network=["trained"]).assign_attrs(kind=kind)


def _known(table: pd.DataFrame, names: Iterable[str], what: str) -> pd.DataFrame:
    """Return a table with a column per condition; raises Untestable where one of these
    names has none.
    """
    if missing := [name for name in dict.fromkeys(names) if name not in table]:
        raise Untestable(f"the profile {what} under {', '.join(missing)}")
    return table


def _by_condition(
    answers: pd.DataFrame, part: str, names: Iterable[str], of: Callable
) -> pd.DataFrame:
    """Return what `of` gives of a condition's answers, a number per problem, as the
    column of each of these names.
    """
    names, found = list(names), groups(answers[answers.part == part])
    columns = {
        condition: of(group)
        for (_, condition), group in found.items()
        if condition in names
    }
    return _known(pd.DataFrame(columns), names, f"answers no problems ({part})")


def accuracy_unaided(answers: pd.DataFrame, part: str, condition: str) -> xr.DataArray:
    """Return the accuracy under a condition in %, where the model is left to write its
    answer itself.
    """
    found = _by_condition(answers, part, [condition], shares)[[condition]]
    if not answers.plain.all():
        raise Untestable(
            "the model is asked in chat form, or its answer is elicited after what was"
            " inserted"
        )
    return _values(found, "share")


def accuracy_differences(
    answers: pd.DataFrame, part: str, pairs: Sequence[Sequence[str]]
) -> xr.DataArray:
    """Return for each pair of conditions the accuracy of the first minus that of the
    second, in points.

    With one pair, `cut` has the shares of answers that a limit cut, in %, and the
    effect where both ended.
    """
    right = _by_condition(answers, part, chain.from_iterable(pairs), shares)
    apart = {f"{more} - {less}": right[more] - right[less] for more, less in pairs}
    found = _values(apart, "difference")
    if len(pairs) > 1:
        return found

    def ended(group: pd.DataFrame) -> pd.Series:
        return solved(group.assign(ended=group.finish_reason.eq("stop")), "ended").mean(
            axis=1
        )

    ((pair, only),) = zip(pairs, apart.values(), strict=True)
    whole = _by_condition(answers, part, pair, ended)[list(pair)]
    cut = dict(zip(("cut", "cut_less"), POINTS * (1 - whole.mean()), strict=True))
    both = only[(whole == 1).all(axis=1)].dropna()
    if len(both):
        one = interval(both, both.index, "difference")
        cut |= {
            "finished_n": one.n,
            "finished": one.estimate,
            "finished_low": one.low,
            "finished_high": one.high,
        }
    return found.assign_attrs(cut=cut)


def largest_gain(answers: pd.DataFrame, part: str) -> xr.DataArray:
    """Return each condition's accuracy minus that of none: the best of them is to be
    more than choosing it gives.
    """
    conditions = answers[answers.part == part].condition.unique()
    right = _by_condition(answers, part, ["none", *conditions], shares).dropna()
    if right.shape[1] < 3:
        raise Untestable(
            f"the profile compares fewer than two conditions with none ({part})"
        )
    return _values(right.drop(columns="none").sub(right["none"], axis=0), "largest")


def sampling_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return a condition minus none: pass@k and the share of distinct 2-grams of a
    problem's samples, in points.
    """

    def passed(group: pd.DataFrame) -> pd.Series:
        values = solved(group)
        if (fewest := values.count(axis=1).min()) < k:
            raise Untestable(
                f"pass@{k} needs {k} samples of each problem, and {fewest} were taken"
            )
        return pd.Series(pass_at_k(values, k), values.index)

    def distinct(group: pd.DataFrame) -> pd.Series:
        return group.groupby("problem_id", sort=False).response.agg(distinct_2)

    apart = {}
    for name, of in ((f"pass@{k}", passed), ("distinct 2-grams", distinct)):
        table = POINTS * _by_condition(answers, "sampling", [condition, "none"], of)
        apart[name] = table[condition] - table["none"]
    return _values(apart, "difference")


def pass_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return a condition minus none: pass@k alone, in points."""
    return sampling_differences(answers, condition, k).sel(component=[f"pass@{k}"])


def likelihood_differences(
    scores: pd.DataFrame, target: str, pairs: Sequence[Sequence[str]]
) -> xr.DataArray:
    """Return for each pair of conditions log p under the first less that under the
    second, in nats per problem.
    """
    some = scores[scores.target == target]
    if some.empty:
        raise Untestable(f"the profile scores no {target}s")
    nats = some.pivot(index="problem_id", columns="condition", values="nats")
    nats = _known(nats, chain.from_iterable(pairs), "scores nothing")
    return _values(
        {f"{more} - {less}": nats[more] - nats[less] for more, less in pairs}, "mean"
    )
