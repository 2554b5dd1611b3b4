"""Collect the evidence about each model, and judge every claim of the paper by it.

evidence = gather(profile)  # by model: `measured`, `answers`, ...
verdicts = judge(load_claims(), evidence)  # a Verdict per claim and model
"""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from lib.claims.answer_measures import POSITIVE_CONTROL, likelihood_differences
from lib.claims.claim import Claim, missing_tables, values_of
from lib.claims.decision_rule import (
    Decision,
    Parts,
    Untestable,
    decide,
    distance_inside,
    p_value,
    parts_of,
)
from lib.claims.verdicts import Control, Estimate, Verdict
from lib.evaluation.profile_parts import answers, draws, scores
from lib.measurement.run import measure
from lib.measurement.variables import TRAINED, UNIFORM, UNTRAINED
from lib.profiles import VARIATIONS, Profile
from lib.statistics.intervals import (
    ALPHA,
    POINTS,
    Interval,
    interval,
    ratio_of_means,
    sample_size_for_power,
)
from lib.statistics.p_values import holm


def gather(profile: Profile) -> dict[str, dict[str, Any]]:
    """Return the evidence of a profile by model, and compute only what is missing in
    results/.

    The models whose attention is measured come first.
    """
    answered = [answers(profile, part) for part in ("main", *VARIATIONS)]
    measured = measure(profile, "attention", "activations", "controls")
    tables = {
        "scores": scores(profile),
        "ablations": scores(profile, "ablations"),
        "draws": draws(profile),
    }
    return evidence_by_model(profile, measured, answered, tables)


def evidence_by_model(
    profile: Profile,
    measured: Mapping[str, xr.Dataset],
    answers: Sequence[pd.DataFrame],
    tables: Mapping[str, pd.DataFrame | None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return by model its `measured` Dataset, the rows of its `answers` (a frame per
    part), and of the other `tables`: scores, ablations and draws.
    """
    unaided = profile.accuracy.format == "plain" and not profile.accuracy.elicit
    every = pd.concat(answers, ignore_index=True).assign(plain=unaided)
    evidence: dict[str, dict[str, Any]] = defaultdict(dict)
    for model, dataset in measured.items():
        evidence[model]["measured"] = dataset
    for kind, table in {"answers": every, **(tables or {})}.items():
        if table is not None:
            for model, rows in table.groupby("model", sort=False):
                evidence[str(model)][kind] = rows
    return dict(evidence)


class Network(NamedTuple):
    """A control network with its verdict, shown in the deciding part."""

    verdict: str
    shown: Interval


def judge(
    claims: Sequence[Claim], evidence: Mapping[str, Mapping[str, Any]]
) -> list[Verdict]:
    """Return a verdict for each claim and each model that can test it.

    A claim that no model can test has one verdict with the reason, of the first model
    that has some of the evidence.
    """
    verdicts = []
    for claim in claims:
        judged = {model: judge_one(claim, model, evidence[model]) for model in evidence}
        reported = [verdict for verdict in judged.values() if verdict.n]
        if not reported:
            candidates = [
                model
                for model, known in evidence.items()
                if not missing_tables(claim, known)
            ]
            reported = [judged[model] for model in (candidates or list(evidence))[:1]]
        verdicts += reported

    tested = [verdict for verdict in verdicts if verdict.n]
    corrected = holm([verdict.p for verdict in tested])
    for verdict, p in zip(tested, corrected, strict=True):
        verdict.p_holm = float(p)
        verdict.survives = verdict.verdict != "undecided" and bool(p <= ALPHA)
    return verdicts


def judge_one(claim: Claim, model: str, evidence: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a claim from the evidence about a model."""
    paper, paper_of = claim.paper_value(model)
    untested = Verdict(
        id=claim.id,
        claim=claim.claim,
        reading=claim.reading,
        source=claim.source,
        model=model,
        unit=claim.unit,
        range=claim.range,
        written=claim.written_for(model),
        paper=paper,
        paper_of=paper_of,
    )
    try:
        values = values_of(claim, evidence)
        parts = parts_of(values.sel(network=TRAINED))
    except Untestable as reason:
        return replace(untested, reason=str(reason))

    decision = decide(parts, *claim.bounds)
    shown = estimate_of(decision.interval)
    untrained = _control_networks(claim, values, decision.part, UNTRAINED)
    uniform = _control_networks(claim, values, decision.part, [UNIFORM])
    return replace(
        untested,
        verdict=decision.verdict,
        p=p_value(parts, *claim.bounds),
        part=decision.part,
        effect=shown.effect,
        low=shown.low,
        high=shown.high,
        n=shown.n,
        holds=tuple(decision.holds),
        refuted=tuple(decision.refuted),
        needed=_problems_needed(claim, decision, paper),
        of_example=_share_of_example(claim, evidence, parts),
        control=_control(untrained),
        uniform=_control(uniform),
        specific=_is_specific(claim, decision, untrained),
    )


def estimate_of(shown: Interval) -> Estimate:
    """Return an Interval as an Estimate."""
    ends = float(shown.low), float(shown.high)
    return Estimate(float(shown.estimate), *ends, shown.n)


def _problems_needed(
    claim: Claim, decision: Decision, paper: float | None
) -> float | None:
    """Return how many problems give 80 % power to detect the paper's effect; None if
    the claim is decided.
    """
    if decision.verdict != "undecided" or paper is None:
        return None
    shown = decision.interval
    distance = distance_inside(paper, *claim.bounds)
    deviation = float(np.nan_to_num(shown.error)) * sqrt(shown.n)
    needed = sample_size_for_power(distance, deviation)
    return None if isnan(needed) else needed


def _share_of_example(
    claim: Claim, evidence: Mapping[str, Any], parts: Parts
) -> Estimate | None:
    """Return a change of log-likelihood in % of the gain by a worked example (the
    positive control) with the same model.

    Both are taken on the problems that have both, and the interval includes the errors
    of both. None for other claims, and if the example's gain is not significant, so
    that it sets no scale.
    """
    pairs = claim.arguments.get("pairs", [])
    is_one_change = claim.measure == "likelihood_differences" and len(pairs) == 1
    if not is_one_change or tuple(pairs[0]) == POSITIVE_CONTROL:
        return None
    try:
        target = claim.arguments["target"]
        gains = likelihood_differences(evidence["scores"], target, [POSITIVE_CONTROL])
    except Untestable:
        return None
    ((change, problems, _),) = parts.values()
    both = pd.DataFrame({"change": change}, index=problems)
    both["gain"] = gains.isel(network=0, component=0).to_series()
    both = both.dropna()
    if not interval(both["gain"], both.index).low > 0:
        return None
    share = ratio_of_means(POINTS * both["change"], both["gain"], both.index)
    return estimate_of(share)


def _is_specific(
    claim: Claim, decision: Decision, untrained: Sequence[Network]
) -> bool | None:
    """Return whether an untrained network gets another verdict than the trained one, or
    the same verdict from the other side of the range; None if nothing is decided.
    """
    if not untrained or decision.verdict == "undecided":
        return None
    estimates = [decision.interval.estimate]
    estimates += [network.shown.estimate for network in untrained]
    sides = {tuple(value > end for end in claim.bounds) for value in estimates}
    verdicts = {decision.verdict, *(network.verdict for network in untrained)}
    return len(sides) > 1 or len(verdicts) > 1


def _control_networks(
    claim: Claim, values: xr.DataArray, part: str, names: Sequence[str]
) -> list[Network]:
    """Return the networks of these names, each with its verdict.

    Uniform attention has no values and no activations; components that it lacks are
    left out.
    """
    networks = []
    for name in values.network.values:
        if name in names:
            of_network = values.sel(network=name, drop=True)
            with contextlib.suppress(Untestable):
                parts = parts_of(of_network)
                verdict = decide(parts, *claim.bounds).verdict
                networks.append(Network(verdict, interval(*parts[part])))
    return networks


def _control(networks: Sequence[Network]) -> Control | None:
    """Combine networks of one kind into a control, without averaging."""
    if not networks:
        return None
    verdicts = {network.verdict for network in networks}
    effects = sorted(network.shown.estimate for network in networks)
    middle = effects[len(effects) // 2]
    low = min(network.shown.low for network in networks)
    high = max(network.shown.high for network in networks)
    n = min(network.shown.n for network in networks)
    verdict = verdicts.pop() if len(verdicts) == 1 else "mixed"
    return Control(middle, low, high, n, verdict)
