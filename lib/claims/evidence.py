"""What was measured on one model, and the numbers per problem that a claim of data/claims.yaml asks of it.

Every function of MEASURES takes the evidence and the claim's arguments and returns components; it raises Untestable,
which says why, when the profile did not measure what it needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from lib.arm.activations import MEASURES as ACTIVATION_MEASURES
from lib.claims.verdicts import Component
from lib.evaluation.summary import by_problem, distinct_2, groups, matrix, shares
from lib.measurement.activation_tables import MeasuredActivations, log_changes
from lib.measurement.attention_tables import Measured
from lib.measurement.token_classes import NAMES, OTHERS
from lib.statistics import pass_at_k


class Untestable(Exception):
    """Says why these measurements cannot test a claim."""


@dataclass(frozen=True)
class Evidence:
    """All that a profile measured on one model; `records` by part: main, fillers, sampling, interventions."""

    model: str
    attention: Measured | None = None
    activations: MeasuredActivations | None = None
    records: dict[str, list[dict]] = field(default_factory=dict)


def _attention(evidence: Evidence) -> Measured:
    if evidence.attention is None:
        raise Untestable(f"the profile measures no attention of {evidence.model}")
    return evidence.attention


def _layer(layers: Sequence[int], layer: int) -> int:
    if layer not in layers:
        raise Untestable(f"layer {layer} was not measured, only {', '.join(map(str, layers))}")
    return list(layers).index(layer)


def head_lambdas(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return lambda of each head of a layer."""
    first = _attention(evidence).first
    values = first.ratio[condition][:, _layer(first.layers, layer)]  # (N, H)
    return [Component(f"head {head}", column) for head, column in enumerate(values.T, 1)]


def filler_attention(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return, over a layer's heads, inserted over original tokens: received attention, and its unevenness."""
    first = _attention(evidence).first
    at = _layer(first.layers, layer)
    flatness, unevenness = (part[condition][:, at].mean(1) for part in (first.flatness, first.unevenness))
    return [Component("level", first.portion[condition][:, at].mean(1)), Component("evenness", flatness / unevenness)]


def heads_below_one(evidence: Evidence, condition: str, layers: Sequence[int]) -> list[Component]:
    """Return the share of each layer's heads whose lambda is below 1."""
    first = _attention(evidence).first
    shares = [(first.ratio[condition][:, _layer(first.layers, layer)] < 1).mean(1) for layer in layers]
    return [Component(f"layer {layer}", share) for layer, share in zip(layers, shares, strict=True)]


def span_differences(evidence: Evidence, more: str, less: str, layer: int) -> list[Component]:
    """Return by how much the unevenness of the span's attention and the spread of its values differ."""
    first = _attention(evidence).first
    at = _layer(first.layers, layer)
    parts = {"attention": first.flatness, "values": first.dispersion}
    return [Component(name, (part[more][:, at] - part[less][:, at]).mean(1)) for name, part in parts.items()]


def lambda_ratio(evidence: Evidence, condition: str, reference: str, layer: int) -> list[Component]:
    """Return lambda of one condition over that of another, averaged over a layer's heads."""
    first = _attention(evidence).first
    at = _layer(first.layers, layer)
    return [Component("all heads", (first.ratio[condition][:, at] / first.ratio[reference][:, at]).mean(1))]


def affine_fit(evidence: Evidence) -> list[Component]:
    """Return R2 of the affine map in layer 1, averaged over heads."""
    return [Component("all heads", _attention(evidence).causes.affine.mean(1))]


def _activations(evidence: Evidence):
    if evidence.activations is None:
        raise Untestable(f"the profile measures no activations of {evidence.model}")
    return evidence.activations.first


def activation_changes(
    evidence: Evidence, condition: str, layer: int, rise: Sequence[str], fall: Sequence[str]
) -> list[Component]:
    """Return log ratios to none of the measures that should rise, and their negatives of those that should fall."""
    first = _activations(evidence)
    logs = log_changes(first, condition)[:, _layer(first.layers, layer)]  # (N, 6)
    risen = [Component(f"{name} up", logs[:, ACTIVATION_MEASURES.index(name)]) for name in rise]
    return risen + [Component(f"{name} down", -logs[:, ACTIVATION_MEASURES.index(name)]) for name in fall]


def class_differences(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return the near-zero share of each class of tokens minus that of the others, in points."""
    first = _activations(evidence)
    shares = 100 * first.classes[condition][:, _layer(first.layers, layer)]  # (N, 4)
    others = shares[:, NAMES.index(OTHERS)]
    return [Component(name, shares[:, i] - others) for i, name in enumerate(NAMES) if name != OTHERS]


def likeness(evidence: Evidence, condition: str, layer: int) -> list[Component]:
    """Return the cosine between a condition's change of the histogram of activations and that of the slashes."""
    first = _activations(evidence)
    return [Component("histogram", first.shape[condition][:, _layer(first.layers, layer)])]


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
