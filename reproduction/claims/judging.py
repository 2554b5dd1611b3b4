"""Collect the evidence about each model, and judge every claim of the paper by it.

evidence = gather(profile)  # by model, the tables `measured`, `answers`, ...
verdicts = judge(load_claims(), evidence)  # a Verdict per claim and model
"""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pandas as pd
import xarray as xr

from lib.prompts.conditions import is_chat
from lib.statistics.intervals import (
    ALPHA,
    POINTS,
    Interval,
    holm,
    interval,
    ratio_of_means,
)
from reproduction.claims.answer_measures import POSITIVE_CONTROL, likelihood_differences
from reproduction.claims.claim import Claim, values_of
from reproduction.claims.decision_rule import (
    Decision,
    Parts,
    Untestable,
    decide,
    p_value,
    parts_of,
    verdict_of,
)
from reproduction.claims.verdicts import Control, Estimate, Verdict
from reproduction.evaluation.profile_parts import answers, draws, scores
from reproduction.measurement.dataset import TRAINED, UNIFORM, UNTRAINED
from reproduction.measurement.measurement_run import measure
from reproduction.profiles import VARIATIONS, Profile

# Fields of a claim that its verdicts have, too.
COPIED_FIELDS = {"id", "claim", "reading", "source", "unit", "range", "certain"}


def gather(profile: Profile) -> dict[str, dict[str, Any]]:
    """Return the evidence of a profile by model, as `evidence_by_model`; what is not
    stored is computed now.

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
    """Return the evidence about each model: by name, its Dataset `measured`, its
    `answers`, and its rows of the other tables (scores, ablations, draws).

    answers: a table per part. The column `plain` is added to them: whether prompts are
    plain and answers are not elicited.
    """
    accuracy = profile.accuracy
    is_plain = not is_chat(accuracy.format) and not accuracy.elicit
    all_answers = pd.concat(answers, ignore_index=True).assign(plain=is_plain)
    evidence: dict[str, dict[str, Any]] = defaultdict(dict)
    for model, dataset in measured.items():
        evidence[model]["measured"] = dataset
    for kind, table in {"answers": all_answers, **(tables or {})}.items():
        if table is not None:
            for model, rows in table.groupby("model", sort=False):
                evidence[str(model)][kind] = rows
    return dict(evidence)


def judge(
    claims: Sequence[Claim], evidence: Mapping[str, Mapping[str, Any]]
) -> list[Verdict]:
    """Return a verdict for each claim and each model that can test it, with p-values
    corrected for all of these verdicts (Holm).

    A claim that no model can test has one verdict, on the first model that has the
    tables of its measure, or else on the first model.
    """
    verdicts = []
    for claim in claims:
        models = [name for name in evidence if not claim.lacking(evidence[name])]
        models = models or list(evidence)[:1]
        judged = [judge_one(claim, model, evidence[model]) for model in models]
        verdicts += [verdict for verdict in judged if verdict.n] or judged[:1]

    tested = [verdict for verdict in verdicts if verdict.n]
    corrected = holm([verdict.p for verdict in tested])
    for verdict, p in zip(tested, corrected, strict=True):
        verdict.p_holm = float(p)
        verdict.survives = verdict.verdict != "undecided" and bool(p <= ALPHA)
    return verdicts


def judge_one(claim: Claim, model: str, evidence: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a claim for one model, with n = 0 and the reason if the
    evidence cannot test it. `judge` adds the corrected p-value.
    """
    copied = claim.model_dump(include=COPIED_FIELDS)
    untested = Verdict(**copied, model=model, written=claim.written_for(model))
    try:
        values = values_of(claim, evidence)
        parts = parts_of(values.sel(network=TRAINED))
    except Untestable as reason:
        return replace(untested, reason=str(reason))

    decision = decide(parts, *claim.bounds)
    untrained = _control(claim, values, decision.part, UNTRAINED)
    return replace(
        untested,
        verdict=decision.verdict,
        p=p_value(parts, *claim.bounds),
        part=decision.part,
        **vars(estimate_of(decision.interval)),
        parts=len(parts),
        holds=tuple(decision.holds),
        refuted=tuple(decision.refuted),
        otherwise=_otherwise(claim, evidence),
        of_example=_share_of_example(claim, evidence, parts),
        control=untrained,
        uniform=_control(claim, values, decision.part, [UNIFORM]),
        specific=_is_specific(decision, untrained),
    )


def _otherwise(claim: Claim, evidence: Mapping[str, Any]) -> str | None:
    """Return the verdict by the claim's other way to decide it, uncorrected; None if it
    has none.
    """
    other = claim.otherwise
    if other is None:
        return None
    changes: dict[str, Any] = {"arguments": claim.arguments | other.arguments}
    if other.range:
        changes["range"] = other.range
    changed = claim.model_copy(update=changes)
    try:
        parts = parts_of(values_of(changed, evidence).sel(network=TRAINED))
    except Untestable:
        return None
    decision = decide(parts, *changed.bounds)
    return verdict_of(decision.holds, decision.refuted, parts, other.parts)


def estimate_of(result: Interval) -> Estimate:
    """Return an Interval as an Estimate, which can be stored and formatted."""
    bounds = float(result.low), float(result.high)
    return Estimate(float(result.estimate), *bounds, result.n)


def _share_of_example(
    claim: Claim, evidence: Mapping[str, Any], parts: Parts
) -> Estimate | None:
    """Return a change of log-likelihood in % of the gain by a worked example in the
    prompt (the positive control) with the same model.

    Both are taken on the problems that have both, and the interval includes the errors
    of both. None for claims on something else than a single change of log-likelihood,
    without a problem that has both, and if the interval of the example's gain includes
    0, so that it sets no scale.
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
    if both.empty or not interval(both["gain"], both.index).low > 0:
        return None
    share = ratio_of_means(POINTS * both["change"], both["gain"], both.index)
    return estimate_of(share)


def _is_specific(decision: Decision, untrained: Control | None) -> bool | None:
    """Return whether any untrained network gets another verdict than the trained one.

    None if there is no untrained network, or the claim is neither supported nor holds
    in part: that untrained networks miss a limit, too, says nothing about a
    contradiction, since they may do so by another number.
    """
    if not untrained or decision.verdict not in ("supported", "in part"):
        return None
    return untrained.verdict != decision.verdict


def _control(
    claim: Claim, values: xr.DataArray, part: str, names: Sequence[str]
) -> Control | None:
    """Combine the networks with these names into a control, without averaging; None if
    none of them can test the claim.

    part: label of the part that decides the claim in the trained network. A network
    whose values cannot test the claim is left out: uniform attention has no values and
    no activations.
    """
    verdicts = set()
    intervals = []
    for name in values.network.values:
        if name in names:
            of_network = values.sel(network=name, drop=True)
            with contextlib.suppress(Untestable):
                parts = parts_of(of_network)
                verdicts.add(decide(parts, *claim.bounds).verdict)
                intervals.append(interval(*parts[part]))
    if not intervals:
        return None
    middle = median(float(found.estimate) for found in intervals)
    low = min(found.low for found in intervals)
    high = max(found.high for found in intervals)
    n = min(found.n for found in intervals)
    verdict = verdicts.pop() if len(verdicts) == 1 else "mixed"
    return Control(middle, low, high, n, verdict)
