"""What a claim asks of a network: a number per problem for each component.

A public function is what data/claims.yaml names as `measure`; it is given `measured`, a
Dataset of `lib.measurement.variables` where NaN was not measured. Each returns
(network, component, problem), with the kind of its numbers (`lib.statistics`) as
attribute, a mean if none; or it raises Untestable. `lib.claims.answer_measures` has
those that are given answers and likelihoods.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.claims.rule import Untestable
from lib.measurement.network_tables import log_changes
from lib.measurement.variables import OTHERS, TRAINED
from lib.statistics.intervals import POINTS

AFFINE = {
    "affine": "one λ, one σ",
    "line": "a coefficient of σ per token",
    "softmax": "a λ per token",
}


def lambdas(
    measured: xr.Dataset, condition: str, layer: int, heads: str
) -> xr.DataArray:
    """Return lambda of the heads of a layer; heads: mean or each."""
    values = _selected(measured, "lambda", condition=condition, layer=layer)
    return _heads(values, heads)


def lambda_of_span(
    measured: xr.Dataset, condition: str, layer: int, span: str, query: str
) -> xr.DataArray:
    """Return lambda of the tokens of a span from these queries, over a layer's heads.

    lib.measurement.attention says what spans and queries there are.
    """
    place = {"condition": condition, "layer": layer, "span": span, "query": query}
    # A ratio of means over heads: one head that gives a span next to nothing would
    # decide a mean of ratios.
    over_heads = _selected(measured, "lambda_over_heads", **place)
    heads = measured.sizes["head"]
    return _named({f"mean of {heads} heads": over_heads})


def lambda_from(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return lambda averaged over the heads of a layer and of all that follow it."""
    first = _selected(measured, "lambda", condition=condition, layer=layer).layer
    deep = measured["lambda"].sel(condition=condition, layer=measured.layer >= first)
    last = deep.layer.values.max()
    mean = deep.mean(["head", "layer"])
    return _named({f"layers {layer} to {last}": mean})


def filler_attention(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the received attention of inserted over that of original tokens.

    It has two components, each a mean over a layer's heads: the level and the evenness.
    """

    def over_heads(name: str) -> xr.DataArray:
        values = _selected(measured, name, condition=condition, layer=layer)
        return values.mean("head")

    level = over_heads("portion")
    evenness = over_heads("flatness") / over_heads("unevenness")
    return _named({"level": level, "evenness": evenness})


def after_layer_1(
    measured: xr.Dataset, variable: str, condition: str, layers: Sequence[int]
) -> xr.DataArray:
    """Return by how much a variable's mean over heads is larger than in layer 1, in
    each of these layers.

    The variable is lambda, irregularity (the deviation over tokens of log(received with
    / without)) or mass (the share that the insertion takes).
    """
    values = _selected(measured, variable, condition=condition, layer=[1, *layers])
    means = values.mean("head")
    in_layer_1 = means.sel(layer=1, drop=True)
    differences = means.sel(layer=layers) - in_layer_1
    return _each(differences, "layer", "layer {}")


def span_differences(
    measured: xr.Dataset, more: str, less: str, layer: int
) -> xr.DataArray:
    """Return by how much two conditions differ in the span that they insert: in the
    unevenness of its attention, and in the spread of its values.
    """

    def difference(name: str) -> xr.DataArray:
        values = _selected(measured, name, condition=[more, less], layer=layer)
        between = values.sel(condition=more) - values.sel(condition=less)
        return between.mean("head")

    attention = difference("flatness")
    vectors = difference("dispersion")
    return _named({"attention": attention, "values": vectors})


def lambda_ratios(
    measured: xr.Dataset, condition: str, reference: str, layer: int, heads: str
) -> xr.DataArray:
    """Return lambda of one condition over that of another; heads: mean or each."""
    conditions = [condition, reference]
    values = _selected(measured, "lambda", condition=conditions, layer=layer)
    ratios = values.sel(condition=condition) / values.sel(condition=reference)
    return _heads(ratios, heads)


def affine_fit(measured: xr.Dataset, form: str) -> xr.DataArray:
    """Return R² of the affine map in layer 1, averaged over heads: of one form of the
    map, or of the one that fits best.
    """
    by_form = {}
    for name, text in AFFINE.items():
        by_form[text] = _selected(measured, name).mean("head")
    fits = _named(by_form)
    if form != "best":
        return fits.sel(component=[AFFINE[form]])

    # Each network has the form that fits it best, under the trained one's name.
    best = fits.mean("problem").fillna(0).argmax("component")  # (network,)
    label = fits.component.values[best.sel(network=TRAINED)]
    chosen = fits.isel(component=best).drop_vars("component")
    return chosen.expand_dims(component=[label])


def activation_changes(
    measured: xr.Dataset,
    condition: str,
    layer: int,
    rise: Sequence[str],
    fall: Sequence[str],
) -> xr.DataArray:
    """Return log ratios to none of the measures that should rise, and the negative ones
    of those that should fall.
    """
    conditions = ["none", condition]
    values = _selected(measured, "measures", layer=layer, condition=conditions)
    logs = log_changes(values).sel(condition=condition)
    parts = []
    if rise:
        rises = logs.sel(measure=rise)
        parts.append(_each(rises, "measure", "{} up"))
    if fall:
        falls = -logs.sel(measure=fall)
        parts.append(_each(falls, "measure", "{} down"))
    return xr.concat(parts, "component")


def class_differences(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the near-zero share of each class of tokens less that of the others, in
    points.
    """
    shares = _selected(measured, "classes", condition=condition, layer=layer)
    near = POINTS * shares
    of_others = near.sel({"class": OTHERS}, drop=True)
    of_classes = near.drop_sel({"class": OTHERS})
    return _each(of_classes - of_others, "class")


def class_falls(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return by how many points a condition lowers the near-zero share of each class.

    The class of the other tokens is left out.
    """
    conditions = ["none", condition]
    values = _selected(measured, "classes", condition=conditions, layer=layer)
    near = POINTS * values.drop_sel({"class": OTHERS})
    falls = near.sel(condition="none") - near.sel(condition=condition)
    return _each(falls, "class")


def likeness(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return how alike a condition and the slashes change the activations.

    That is the cosine between their changes of the histogram.
    """
    values = _selected(measured, "shape", condition=condition, layer=layer)
    return _named({"histogram": values})


def _selected(measured: xr.Dataset, name: str, **labels) -> xr.DataArray:
    """Return a variable where its dimensions have these labels.

    Raises Untestable where it was not measured.
    """
    if name not in measured:
        raise Untestable(f"the profile measures no {name}")
    for dim, label in labels.items():
        known = measured[dim].values.tolist()
        asked_for = np.atleast_1d(label).tolist()
        missing = set(asked_for) - set(known)
        if missing:
            text = ", ".join(map(str, known))
            raise Untestable(f"{dim} {min(missing)} was not measured, only {text}")
    values = measured[name].sel(labels)
    if not values.sel(network=TRAINED).notnull().any():
        raise Untestable(f"the profile measures no {name} here")
    return values


def _each(values: xr.DataArray, dim: str, text: str = "{}") -> xr.DataArray:
    """Return the values with a component for each label of an axis, named after it."""
    names = [text.format(label) for label in values[dim].values]
    renamed = values.rename({dim: "component"})
    return renamed.assign_coords(component=names)


def _named(parts: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return a component for each of these names."""
    names = pd.Index(list(parts), name="component")
    return xr.concat(parts.values(), names)


def _heads(values: xr.DataArray, over: str) -> xr.DataArray:
    """Return a component for each head, or their mean."""
    if over == "each":
        return _each(values, "head", "head {}")
    heads = values.sizes["head"]
    return _named({f"mean of {heads} heads": values.mean("head")})
