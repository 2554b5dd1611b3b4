"""Which claims of the paper a profile can decide, and on which models.

Nothing is measured: a claim can be decided where the profile measures, answers or
scores what its measure asks for.
"""

import inspect
from collections.abc import Iterator

from lib.claims.claim import MEASURES, Claim, load_claims
from lib.profiles import Profile, variation

# What a measure is given, and how a person calls it.
EVIDENCE = {
    "measured": "attention and activations",
    "answers": "accuracy",
    "scores": "likelihood",
    "draws": "weighted pass rates",
}
# The measure of what a model writes with no turns of a chat and no second step.
UNAIDED = "accuracy_unaided"


def decidable(profile: Profile) -> dict[str, list[Claim]]:
    """Return by kind of evidence the claims that the profile can decide."""
    claims: dict[str, list[Claim]] = {name: [] for name in EVIDENCE.values()}
    for claim in load_claims():
        kind = kind_of(claim)
        if is_decidable(claim, kind, profile):
            claims[EVIDENCE[kind]].append(claim)
    return claims


def models_of_profile(profile: Profile, evidence: str) -> list[str]:
    """Return the models that claims of this evidence are decided on."""
    if evidence == EVIDENCE["measured"]:
        return profile.attention.models
    if evidence == EVIDENCE["answers"]:
        return profile.accuracy.models
    if evidence == EVIDENCE["scores"]:
        return profile.likelihood.models if profile.likelihood else []
    return profile.pass_rates.models if profile.pass_rates else []


def kind_of(claim: Claim) -> str:
    """Return what a claim's measure is given: a key of EVIDENCE."""
    return next(iter(inspect.signature(MEASURES[claim.measure]).parameters))


def is_decidable(claim: Claim, kind: str, profile: Profile) -> bool:
    """Say whether a profile has what a claim of this kind asks for."""
    if kind == "measured":
        return _deepest(claim) <= profile.attention.layers or bool(
            profile.attention.map_problems
        )
    if kind == "draws":
        pair = {claim.arguments["more"], claim.arguments["less"]}
        return pair <= _weighted(profile)
    if kind == "scores":
        at_hand = _scored_problems(profile, claim.arguments.get("target", "solution"))
    else:
        at_hand = _answered(profile, claim.arguments.get("part", "sampling"))
    if claim.measure == UNAIDED and not _is_unaided(profile):
        return False
    return bool(at_hand) and at_hand.issuperset(_conditions(claim))


def _is_unaided(profile: Profile) -> bool:
    """Say whether a model answers the plain prompt, and is not asked for a box."""
    return profile.accuracy.format == "plain" and not profile.accuracy.elicit


def _deepest(claim: Claim) -> int:
    """Return the last layer that a claim names."""
    layers = claim.arguments.get("layers", [claim.arguments.get("layer", 1)])
    return max(layers)


def _conditions(claim: Claim) -> Iterator[str]:
    """Yield the conditions that a claim on answers or scores compares."""
    for pair in claim.arguments.get("pairs", []):
        yield from pair
    if "condition" in claim.arguments:
        yield "none"
        yield claim.arguments["condition"]


def _scored_problems(profile: Profile, target: str) -> set[str]:
    """Return the conditions under which a profile scores solutions, or answers."""
    if profile.likelihood is None:
        return set()
    likelihood = profile.likelihood
    by_target = {"solution": likelihood.conditions, "answer": likelihood.at_once}
    return {str(condition) for condition in by_target[target]}


def _weighted(profile: Profile) -> set[str]:
    """Return the conditions under which a profile scores drawn answers."""
    conditions = profile.pass_rates.conditions if profile.pass_rates else []
    return {str(condition) for condition in conditions}


def _answered(profile: Profile, part: str) -> set[str]:
    """Return the conditions under which a part of a profile answers; none where it has
    no such part.
    """
    if part != "main" and getattr(profile.accuracy, part) is None:
        return set()
    accuracy = profile.accuracy if part == "main" else variation(profile.accuracy, part)
    return {str(condition) for condition in accuracy.conditions}
