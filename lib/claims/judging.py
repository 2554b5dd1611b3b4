"""Every claim of the paper beside what was measured.

verdicts = judge(load_claims(), gather(profile))  # a Verdict per claim and model
"""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isnan, sqrt
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from lib.claims.answer_measures import POSITIVE, likelihood_differences
from lib.claims.claim import Claim, values_of
from lib.claims.rule import (
    Decision,
    Parts,
    Untestable,
    decide,
    distance_inside,
    p_value,
    parts_of,
)
from lib.claims.verdict import (
    EVEN,
    OTHER_HEADS,
    SMALL,
    UNTRAINED,
    Answers,
    Control,
    Estimate,
    Power,
    Verdict,
)
from lib.measurement.plan import OTHER_KEYS, TRAINED, UNIFORM
from lib.statistics.intervals import ALPHA, POINTS, Interval, clopper_pearson, interval
from lib.statistics.p_values import holm
from lib.statistics.power import n_deciding

# What a network that is not the trained one is a control for; the others are untrained.
CONTROL_OF = {OTHER_KEYS: OTHER_HEADS, UNIFORM: EVEN}


class Network(NamedTuple):
    """A control network, judged by itself and shown in the part that decides."""

    verdict: str
    shown: Interval
    difference: Interval  # of the trained network to it


def judge(
    claims: Sequence[Claim], evidence: Mapping[str, Mapping[str, Any]]
) -> list[Verdict]:
    """Return a verdict per claim and model that can test it.

    A claim that no model can test has one verdict, which says why.
    """
    verdicts = []
    for claim in claims:
        judged = [judge_one(claim, model, known) for model, known in evidence.items()]
        verdicts += [verdict for verdict in judged if verdict.n] or judged[:1]

    tested = [verdict for verdict in verdicts if verdict.n]
    corrected = holm([verdict.p for verdict in tested])
    for verdict, p in zip(tested, corrected, strict=True):
        verdict.p_holm = float(p)
        verdict.survives = verdict.verdict != "undecided" and bool(p <= ALPHA)
    return verdicts


def judge_one(claim: Claim, model: str, evidence: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a claim on what is known of a model."""
    verdict = Verdict(
        id=claim.id,
        claim=claim.claim,
        reading=claim.reading,
        source=claim.source,
        model=model,
        unit=claim.unit,
        range=claim.range,
        written=claim.written_for(model),
    )
    verdict.paper, verdict.paper_of = claim.reported(model)
    try:
        values = values_of(claim, evidence)
        parts = parts_of(values.sel(network=TRAINED))
    except Untestable as reason:
        verdict.reason = str(reason)
        return verdict

    # The rule, and the part that decides.
    decision = decide(parts, *claim.ends)
    verdict.verdict = decision.verdict
    verdict.p = p_value(parts, *claim.ends)
    verdict.part = decision.part
    shown = estimate_of(decision.interval)
    verdict.effect, verdict.low, verdict.high = shown.effect, shown.low, shown.high
    verdict.n = shown.n
    verdict.clusters = decision.interval.clusters
    verdict.parts = len(parts)
    verdict.holds = tuple(decision.holds)
    verdict.refuted = tuple(decision.refuted)

    # What belongs beside it.
    verdict.answers = _answers(values.attrs.get("cut"))
    if (heads := values.attrs.get("heads")) is not None:
        inside = [bool(distance_inside(head, *claim.ends) > 0) for head in heads]
        verdict.heads = len(heads)
        verdict.heads_held = sum(inside)
    if decision.verdict == "undecided":
        verdict.power = _power(claim, parts, decision, verdict.paper)
    _judge_size(verdict, claim, evidence, parts)
    _compare_with_controls(verdict, claim, values, decision)
    return verdict


def estimate_of(shown: Interval) -> Estimate:
    """Return an interval of numbers as an estimate."""
    ends = float(shown.low), float(shown.high)
    return Estimate(float(shown.estimate), *ends, shown.n)


def _answers(cut: dict[str, Any] | None) -> Answers | None:
    """Return what `accuracy_differences` says of answers that were cut."""
    if cut is None:
        return None
    finished = cut["finished"]
    shares = cut["cut"], cut["cut_less"]
    return Answers(*shares, estimate_of(finished) if finished else None)


def _power(
    claim: Claim, parts: Parts, decision: Decision, paper: float | None
) -> Power | None:
    """Return the n that would show an effect of the paper's size.

    For single answers it has ends, by the share of the answers that changed.
    """
    distance = 0 if paper is None else distance_inside(paper, *claim.ends)
    shown = decision.interval
    deviation = float(np.nan_to_num(shown.error)) * sqrt(shown.n)
    needed = n_deciding(distance, deviation)
    if isnan(needed):
        return None
    values, _, kind = parts[decision.part]
    if kind != "difference" or not np.isin(values, (-POINTS, 0, POINTS)).all():
        return Power(needed)
    changed = int((values != 0).sum())
    fewest, most = clopper_pearson(changed, len(values))
    low = n_deciding(distance, POINTS * sqrt(fewest))
    high = n_deciding(distance, POINTS * sqrt(most))
    return Power(needed, low, high)


def _judge_size(
    verdict: Verdict, claim: Claim, evidence: Mapping[str, Any], parts: Parts
) -> None:
    """Note the margin of a small effect; what is undecided and within it is small."""
    margin = claim.margin
    if claim.equivalence:
        gain = _gain_of_example(claim, evidence)
        margin = claim.equivalence * gain if gain else None
    if margin is None:
        return
    verdict.equivalence = margin
    within = decide(parts, -margin, margin).verdict == "supported"
    if within and verdict.verdict == "undecided":
        verdict.verdict = SMALL
        verdict.p = p_value(parts, -margin, margin)


def _gain_of_example(claim: Claim, evidence: Mapping[str, Any]) -> float | None:
    """Return what the positive control, a worked example, gains with the same model.

    A control that gains nothing gives no scale.
    """
    try:
        target = claim.arguments["target"]
        gains = likelihood_differences(evidence["scores"], target, [POSITIVE])
    except Untestable:
        return None
    gain = float(gains.mean())
    return gain if gain > 0 else None


def _compare_with_controls(
    verdict: Verdict, claim: Claim, values: xr.DataArray, decision: Decision
) -> None:
    """Note what the control networks give, and what training adds to the verdict."""
    networks = _control_networks(claim, values, decision.part)
    for kind, judged in networks.items():
        setattr(verdict, kind, _control(judged))
    untrained = networks.get(UNTRAINED, [])
    untrained.sort(key=lambda network: abs(network.difference.estimate))
    if untrained:
        verdict.difference = estimate_of(untrained[0].difference)
        verdict.training = _training(claim, decision, untrained)


def _training(
    claim: Claim, decision: Decision, untrained: Sequence[Network]
) -> str | None:
    """Say what training does to a verdict that all untrained networks get, too, and
    from the same side; None where they do not. The nearest network comes first.
    """
    estimates = [decision.interval.estimate]
    estimates += [network.shown.estimate for network in untrained]
    sides = {tuple(value > end for end in claim.ends) for value in estimates}
    verdicts = {decision.verdict, *(network.verdict for network in untrained)}
    if len(sides) > 1 or len(verdicts) > 1 or decision.verdict == "undecided":
        return None
    lower = all(network.difference.high < 0 for network in untrained)
    higher = all(network.difference.low > 0 for network in untrained)
    if not lower and not higher:
        return "also"
    trained = abs(distance_inside(decision.interval.estimate, *claim.ends))
    other = abs(distance_inside(untrained[0].shown.estimate, *claim.ends))
    return "weaker" if trained < other else "stronger"


def _control_networks(
    claim: Claim, values: xr.DataArray, part: str
) -> dict[str, list[Network]]:
    """Return the networks of each kind of control, each judged by itself.

    Evenly spread attention has no values and no activations: what it lacks is left out.
    """
    trained = values.sel(network=TRAINED, drop=True)
    others = [name for name in values.network.values if name != TRAINED]
    networks = defaultdict(list)
    for name in others:
        own = values.sel(network=name, drop=True)
        with contextlib.suppress(Untestable):
            verdict = decide(parts_of(own), *claim.ends).verdict
            shown = _interval_of(own, part)
            difference = _interval_of(trained - own, part)
            kind = CONTROL_OF.get(name, UNTRAINED)
            networks[kind].append(Network(verdict, shown, difference))
    return networks


def _interval_of(values: xr.DataArray, part: str) -> Interval:
    return interval(*parts_of(values.sel(component=[part]))[part])


def _control(networks: Sequence[Network]) -> Control:
    """Return networks of a kind as one control: nothing is averaged."""
    verdicts = {network.verdict for network in networks}
    effects = sorted(network.shown.estimate for network in networks)
    middle = effects[len(effects) // 2]
    low = min(network.shown.low for network in networks)
    high = max(network.shown.high for network in networks)
    n = min(network.shown.n for network in networks)
    verdict = verdicts.pop() if len(verdicts) == 1 else "mixed"
    return Control(middle, low, high, n, verdict)
