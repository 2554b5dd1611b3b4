"""Every claim of the paper beside an effect, an interval, an n and a verdict, for the models of a profile.

rows = judge(load_claims(), gather(profile))
"""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from lib.claims.evidence import UNIFORM, Evidence, Untestable
from lib.claims.likelihood import positive_gain
from lib.claims.rule import NO_EFFECT
from lib.claims.sentences import learnt
from lib.claims.statements import MEASURES, Claim
from lib.claims.verdicts import Component, Decision, decide, p_value
from lib.paths import write_json
from lib.profiles import Profile
from lib.statistics import ALPHA, ENOUGH, holm


def judge(claims: Sequence[Claim], evidence: dict[str, Evidence]) -> list[dict]:
    """Return a row per claim and model that can test it, or one that says why none can; `survives`: Holm, all rows."""
    rows = []
    for claim in claims:
        judged = [_row(claim, one) for one in evidence.values()]
        tested = [row for row in judged if row["n"]]
        rows += tested or judged[:1]
    tested = [row for row in rows if row["n"]]
    for row, p in zip(tested, holm([row["p"] for row in tested]) if tested else [], strict=True):
        row["p_holm"] = float(p)
        row["survives"] = row["verdict"] != "undecided" and row["p_holm"] <= ALPHA
    return [row | {"sentence": learnt(row)} for row in rows]


def _row(claim: Claim, evidence: Evidence) -> dict:
    row: dict = {"id": claim.id, "claim": claim.claim, "source": claim.source, "model": evidence.model}
    row |= {"unit": claim.unit, "range": list(claim.range), "written": claim.written}
    row |= {"paper": claim.reported(evidence.model), "control": None, "uniform": None, "specific": None}
    try:
        components = MEASURES[claim.measure](evidence, **claim.arguments)
        decision = decide(components, *claim.range, row["paper"] and row["paper"]["value"])
    except (Untestable, ValueError) as reason:
        nothing = dict.fromkeys([*(field.name for field in fields(Decision)), "p", "p_holm", "survives"])
        return row | nothing | {"verdict": "undecided", "n": 0, "components": 0, "reason": str(reason)}
    row |= asdict(decision) | {"p": p_value(components, *claim.range), "p_holm": None, "survives": None, "reason": None}
    if claim.equivalence:
        row["equivalence"] = _equivalence(claim, evidence)
        if decision.verdict == "undecided" and _all_within(components, row["equivalence"]):
            row["verdict"] = NO_EFFECT
    return row | _controls(claim, evidence, components, decision)


def _equivalence(claim: Claim, evidence: Evidence) -> float | None:
    """Return how far from 0, in the claim's unit, a difference still counts as none; None without positive control."""
    try:
        return (claim.equivalence or 0) * positive_gain(evidence, claim.arguments["target"])
    except (Untestable, ValueError):
        return None


def _all_within(components: Sequence[Component], margin: float | None) -> bool:
    """Return whether every component's 95 % interval, of ENOUGH problems, lies within the margin on both sides of 0."""
    found = [component.interval(ALPHA) for component in components]
    return margin is not None and all(one.n >= ENOUGH and -margin < one.low <= one.high < margin for one in found)


def _controls(claim: Claim, evidence: Evidence, components: list[Component], decision: Decision) -> dict:
    """Return what the rule says of the controls, and whether the component that decides differs from each of theirs."""
    found, result = {}, {}
    for name, control in evidence.controls.items():
        # Uniform attention has no values and no activations.
        with contextlib.suppress(Untestable, ValueError):
            measured = MEASURES[claim.measure](control, **claim.arguments)
            if name == UNIFORM:
                result["uniform"] = _control(claim, measured)
            else:
                found[name] = measured
    if not found:
        return result
    averaged = [
        Component(same[0].label, np.mean([one.values for one in same], 0), problems=same[0].problems)
        for same in zip(*found.values(), strict=True)
    ]
    trained = _named(components, decision.component)
    control = _control(claim, averaged)
    apart = _less(trained, averaged).interval(ALPHA)
    control |= {"difference": apart.estimate, "difference_low": apart.low, "difference_high": apart.high}
    control["networks"] = len(found)
    each = [_less(trained, some).interval(ALPHA) for some in found.values()]
    specific = all(one.low > 0 for one in each) or all(one.high < 0 for one in each)
    return result | {"control": control, "specific": specific}


def _control(claim: Claim, components: list[Component]) -> dict:
    decision = asdict(decide(components, *claim.range))
    return {name: decision[name] for name in ("verdict", "component", "effect", "low", "high", "margin")}


def _named(components: Sequence[Component], label: str) -> Component:
    return next((component for component in components if component.label == label), components[0])


def _less(component: Component, other: Sequence[Component]) -> Component:
    """Return a component less that of the same name among others."""
    values = component.values - _named(other, component.label).values
    return Component(component.label, values, problems=component.problems)


def write_claims(profile: Profile, rows: list[dict]) -> Path:
    """Write results/<profile>/claims.json and return its path."""
    profile.results.mkdir(parents=True, exist_ok=True)
    write_json(profile.results / "claims.json", rows)
    return profile.results / "claims.json"
