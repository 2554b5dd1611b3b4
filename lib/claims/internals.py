"""What a claim on attention or activations asks of the evidence: a number per problem for each component."""

from collections.abc import Sequence

import xarray as xr

from lib.claims.evidence import Evidence, Untestable
from lib.claims.verdicts import Component
from lib.measurement.tables import log_changes
from lib.measurement.token_classes import OTHERS

AFFINE = {"affine": "one constant vector", "line": "a coefficient per token", "softmax": "λ per token"}


def _first(evidence: Evidence, kind: str, layer: int) -> xr.Dataset:
    """Return what was measured of attention or activations in one of the first layers on all problems."""
    measured = getattr(evidence, kind)
    if measured is None:
        raise Untestable(f"the profile measures no {kind} of {evidence.model}")
    if layer not in measured.first.layer:
        layers = ", ".join(map(str, measured.first.layer.values))
        raise Untestable(f"layer {layer} was not measured, only {layers}")
    return measured.first.sel(layer=layer)


def _component(label: str, values: xr.DataArray) -> Component:
    return Component(label, values.values, problems=values.problem.values)


def _each(values: xr.DataArray, dim: str, name: str = "{}") -> list[Component]:
    """Return a component for each label of one axis of (problem, dim) values, named after it."""
    return [_component(name.format(column[dim].item()), column) for column in values.transpose(dim, "problem")]


def head_lambdas(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return lambda of each head of a layer."""
    return _each(_first(evidence, "attention", layer)["lambda"].sel(condition=condition), "head", "head {}")


def filler_attention(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return, over a layer's heads, inserted over original tokens: received attention, and its unevenness."""
    found = _first(evidence, "attention", layer).sel(condition=condition).mean("head")
    return [_component("level", found.portion), _component("evenness", found.flatness / found.unevenness)]


def heads_below_one(evidence: Evidence, condition: str, layers: Sequence[int]) -> list[Component]:
    """Return the share of each layer's heads whose lambda is below 1."""
    found = [_first(evidence, "attention", layer)["lambda"].sel(condition=condition) for layer in layers]
    return [_component(f"layer {layer}", (lam < 1).mean("head")) for layer, lam in zip(layers, found, strict=True)]


def irregularity(evidence: Evidence, condition: str, layers: Sequence[int]) -> list[Component]:
    """Return the deviation over tokens of log(received with / without), less layer 1's: a layer's unevenness."""
    found = [_first(evidence, "attention", layer).irregularity.sel(condition=condition) for layer in (1, *layers)]
    one, *deeper = (values.mean("head") for values in found)
    return [_component(f"layer {layer}", more - one) for layer, more in zip(layers, deeper, strict=True)]


def span_differences(evidence: Evidence, more: str, less: str, layer: int) -> list[Component]:
    """Return by how much the unevenness of the span's attention and the spread of its values differ."""
    found = _first(evidence, "attention", layer)
    apart = (found.sel(condition=more) - found.sel(condition=less)).mean("head")
    return [_component("attention", apart.flatness), _component("values", apart.dispersion)]


def lambda_ratios(evidence: Evidence, condition: str, reference: str, layer: int) -> list[Component]:
    """Return lambda of one condition over that of another, for each head of a layer."""
    lam = _first(evidence, "attention", layer)["lambda"]
    return _each(lam.sel(condition=condition) / lam.sel(condition=reference), "head", "head {}")


def affine_fit(evidence: Evidence) -> list[Component]:
    """Return R2 of the affine map in layer 1, averaged over heads, in the form of it that fits best."""
    _first(evidence, "attention", 1)
    if not (evidence.attention and evidence.attention.causes):
        raise Untestable(f"the outputs of {evidence.model} were not compared")
    found = evidence.attention.causes[list(AFFINE)].mean("head")
    best = max(AFFINE, key=lambda name: float(found[name].mean()))
    return [_component(AFFINE[best], found[best])]


def activation_changes(evidence: Evidence, condition: str, layer: int, rise: list, fall: list) -> list[Component]:
    """Return log ratios to none of the measures that should rise, and their negatives of those that should fall."""
    logs = log_changes(_first(evidence, "activations", layer)).sel(condition=condition)  # (problem, measure)
    risen = _each(logs.sel(measure=rise), "measure", "{} up")
    return risen + _each(-logs.sel(measure=fall), "measure", "{} down")


def class_differences(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return the near-zero share of each class of tokens minus that of the others, in points."""
    shares = 100 * _first(evidence, "activations", layer).classes.sel(condition=condition)  # (problem, class)
    apart = shares - shares.sel({"class": OTHERS}, drop=True)
    return _each(apart.drop_sel({"class": OTHERS}), "class")


def class_falls(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return by how many points a condition lowers the near-zero share of each class of tokens but the others."""
    classes = _first(evidence, "activations", layer).classes.drop_sel({"class": OTHERS})
    return _each(100 * (classes.sel(condition="none") - classes.sel(condition=condition)), "class")


def likeness(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return the cosine between a condition's change of the histogram of activations and that of the slashes."""
    return [_component("histogram", _first(evidence, "activations", layer)["shape"].sel(condition=condition))]
