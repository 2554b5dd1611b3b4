"""What a claim on the inside of a model asks of its measurements: a number per problem for each component.

`measured` is a Dataset of `lib.measurement.store` over networks (trained, untrained 0 to 2, uniform), conditions,
problems, layers and heads, measures or classes; NaN: not measured. Each function returns (network, component, problem)
or raises Untestable.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.claims import Untestable
from lib.measurement.store import OTHERS

AFFINE = {"affine": "one λ, one σ", "line": "a coefficient of σ per token", "softmax": "a λ per token"}


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
    values = _of(measured, "measures", layer=layer)
    smallest = (
        values.where(values > 0).min(["condition", "problem"]) / 2
    )  # a share of nothing counts as half an element
    after, before = (_of(measured, "measures", layer=layer, condition=name) for name in (condition, "none"))
    logs = xr.apply_ufunc(np.log, after.clip(smallest) / before.clip(smallest))
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
