"""What was measured on one model, and the numbers per problem that a claim of data/claims.yaml asks of it.

Every function of MEASURES takes the evidence and the claim's arguments and returns components; it raises Untestable,
which says why, when the profile did not measure what it needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from lib.claims.verdicts import Component
from lib.evaluation.summary import by_problem, distinct_2, groups, matrix, shares
from lib.measurement.activation_tables import log_changes
from lib.measurement.run import Measured
from lib.measurement.token_classes import OTHERS
from lib.statistics import pass_at_k


class Untestable(Exception):
    """Says why these measurements cannot test a claim."""


@dataclass(frozen=True)
class Evidence:
    """All that a profile measured on one model; `records` by part: main, fillers, sampling, interventions."""

    model: str
    attention: Measured | None = None
    activations: Measured | None = None
    records: dict[str, list[dict]] = field(default_factory=dict)


def _first(evidence: Evidence, kind: str, layer: int) -> xr.Dataset:
    """Return what was measured of attention or activations in one of the first layers on all problems."""
    measured = getattr(evidence, kind)
    if measured is None:
        raise Untestable(f"the profile measures no {kind} of {evidence.model}")
    if layer not in measured.first.layer:
        layers = ", ".join(map(str, measured.first.layer.values))
        raise Untestable(f"layer {layer} was not measured, only {layers}")
    return measured.first.sel(layer=layer)


def _each(values: xr.DataArray, dim: str, name: str = "{}") -> list[Component]:
    """Return a component for each label of one axis of (problem, dim) values, named after it."""
    columns = values.transpose(dim, "problem")
    return [Component(name.format(column[dim].item()), column.values) for column in columns]


def head_lambdas(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return lambda of each head of a layer."""
    return _each(_first(evidence, "attention", layer)["lambda"].sel(condition=condition), "head", "head {}")


def filler_attention(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return, over a layer's heads, inserted over original tokens: received attention, and its unevenness."""
    found = _first(evidence, "attention", layer).sel(condition=condition).mean("head")
    return [
        Component("level", found.portion.values),
        Component("evenness", (found.flatness / found.unevenness).values),
    ]


def heads_below_one(evidence: Evidence, condition: str, layers: Sequence[int]) -> list[Component]:
    """Return the share of each layer's heads whose lambda is below 1."""
    found = [_first(evidence, "attention", layer)["lambda"].sel(condition=condition) for layer in layers]
    shares = [(lam < 1).mean("head").values for lam in found]
    return [Component(f"layer {layer}", share) for layer, share in zip(layers, shares, strict=True)]


def span_differences(evidence: Evidence, more: str, less: str, layer: int) -> list[Component]:
    """Return by how much the unevenness of the span's attention and the spread of its values differ."""
    found = _first(evidence, "attention", layer)
    apart = (found.sel(condition=more) - found.sel(condition=less)).mean("head")
    return [Component("attention", apart.flatness.values), Component("values", apart.dispersion.values)]


def lambda_ratio(evidence: Evidence, condition: str, reference: str, layer: int) -> list[Component]:
    """Return lambda of one condition over that of another, averaged over a layer's heads."""
    lam = _first(evidence, "attention", layer)["lambda"]
    return [Component("all heads", (lam.sel(condition=condition) / lam.sel(condition=reference)).mean("head").values)]


def affine_fit(evidence: Evidence) -> list[Component]:
    """Return R2 of the affine map in layer 1, averaged over heads."""
    _first(evidence, "attention", 1)
    if evidence.attention.causes is None:
        raise Untestable(f"{evidence.model}: uniform attention has no outputs")
    return [Component("all heads", evidence.attention.causes.affine.mean("head").values)]


def activation_changes(
    evidence: Evidence, condition: str, layer: int, rise: Sequence[str], fall: Sequence[str]
) -> list[Component]:
    """Return log ratios to none of the measures that should rise, and their negatives of those that should fall."""
    logs = log_changes(_first(evidence, "activations", layer)).sel(condition=condition)  # (problem, measure)
    risen = _each(logs.sel(measure=list(rise)), "measure", "{} up")
    return risen + _each(-logs.sel(measure=list(fall)), "measure", "{} down")


def class_differences(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return the near-zero share of each class of tokens minus that of the others, in points."""
    shares = 100 * _first(evidence, "activations", layer).classes.sel(condition=condition)  # (problem, class)
    apart = shares - shares.sel({"class": OTHERS}, drop=True)
    return _each(apart.drop_sel({"class": OTHERS}), "class")


def likeness(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return the cosine between a condition's change of the histogram of activations and that of the slashes."""
    return [Component("histogram", _first(evidence, "activations", layer)["shape"].sel(condition=condition).values)]


def _records(evidence: Evidence, part: str, condition: str) -> list[dict]:
    found = groups(evidence.records.get(part, [])).get((evidence.model, condition))
    if not found:
        raise Untestable(f"the profile answers no problems under {condition} with {evidence.model} ({part})")
    return found


def _shares(evidence: Evidence, part: str, condition: str) -> dict[str, float]:
    """Return the accuracy in % of each problem over its samples."""
    return shares(_records(evidence, part, condition))


def accuracy(evidence: Evidence, part: str, condition: str) -> list[Component]:
    """Return the accuracy under a condition in %."""
    return [Component(condition, np.array(list(_shares(evidence, part, condition).values())))]


def accuracy_differences(evidence: Evidence, part: str, pairs: Sequence[Sequence[str]]) -> list[Component]:
    """Return for each pair of conditions the accuracy of the first minus that of the second, in points."""
    components = []
    for more, less in pairs:
        a, b = _shares(evidence, part, more), _shares(evidence, part, less)
        values = np.array([a[name] - b[name] for name in a if name in b])
        components.append(Component(f"{more} - {less}", values))
    return components


def sampling_differences(evidence: Evidence, condition: str, k: int) -> list[Component]:
    """Return a condition minus none: pass@k and the share of distinct 2-grams of a problem's samples, in points."""
    found = {}
    for name in (condition, "none"):
        group = _records(evidence, "sampling", name)
        texts, values = by_problem(group), matrix(group, "correct")
        if values.shape[1] < k or np.isnan(values).any():
            raise Untestable(f"pass@{k} needs {k} samples of each problem, and {values.shape[1]} were taken")
        solved = dict(zip(texts, 100 * pass_at_k(values, k), strict=True))
        found[name] = solved, {problem: 100 * distinct_2(some) for problem, some in texts.items()}
    labels = (f"pass@{k}", "distinct 2-grams")
    return [
        Component(label, np.array([after[name] - before[name] for name in after if name in before]))
        for label, after, before in zip(labels, found[condition], found["none"], strict=True)
    ]


MEASURES: dict[str, Callable[..., list[Component]]] = {
    function.__name__: function
    for function in (
        head_lambdas,
        filler_attention,
        heads_below_one,
        span_differences,
        lambda_ratio,
        affine_fit,
        activation_changes,
        class_differences,
        likeness,
        accuracy,
        accuracy_differences,
        sampling_differences,
    )
}
