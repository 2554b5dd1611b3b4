"""Which claims a profile can decide: those that the stored verdicts did decide."""

import pandas as pd
import pytest

from lib import paths
from lib.plan.decidable_claims import decidable, models_of_profile
from lib.profiles import load_profile


@pytest.mark.parametrize("name", ["demo", "families"])
def test_claims_that_were_decided_are_those_that_can_be(name):
    verdicts = pd.read_csv(paths.DATA / name / "verdicts.csv")
    tested = verdicts[verdicts.n > 0]
    by_evidence = decidable(load_profile(name)).values()
    expected = {claim.id for claims in by_evidence for claim in claims}
    assert set(tested.id) == expected


def test_without_a_section_nothing_of_its_kind_is_decided():
    profile = load_profile("demo")
    assert profile.likelihood is None
    assert not decidable(profile)["likelihood"]
    bare = profile.accuracy.model_copy(update={"fillers": None})
    fewer = decidable(profile.model_copy(update={"accuracy": bare}))["accuracy"]
    assert {claim.arguments.get("part") for claim in fewer}.isdisjoint({"fillers"})


def test_claims_are_decided_on_the_models_of_their_section():
    families = with_section(load_profile("families"), "pass_rates", models=["demo"])
    models = {
        "attention and activations": families.attention.models,
        "accuracy": families.accuracy.models,
        "likelihood": families.likelihood.models,
        "weighted pass rates": families.pass_rates.models,
    }
    assert len({len(names) for names in models.values()}) == 3
    for evidence, names in models.items():
        assert models_of_profile(families, evidence) == names
    assert not models_of_profile(load_profile("demo"), "weighted pass rates")


def test_a_claim_on_deep_layers_needs_a_map():
    profile = load_profile("demo")
    flat = profile.attention.model_copy(update={"map_problems": None})
    shallow = profile.model_copy(update={"attention": flat})
    lost = set()
    for evidence, claims in decidable(profile).items():
        kept = decidable(shallow)[evidence]
        lost |= {claim.id for claim in claims} - {claim.id for claim in kept}
    assert lost == {"later-layers"}


def with_section(profile, section, **changes):
    changed = getattr(profile, section).model_copy(update=changes)
    return profile.model_copy(update={section: changed})


def ids(profile, evidence):
    return {claim.id for claim in decidable(profile)[evidence]}


# Conditions beside none and mless, and what is decided with them beside the slashes.
WEIGHTED = """
hidden-from-layer-1 : points-layer-1-needed
gap :
gap layer-1-only : points-layer-1-suffices
mful : points-mful
random : points-sentence
arm : points-arm
"""


@pytest.mark.parametrize("line", WEIGHTED.strip().splitlines())
def test_pass_rates_need_both_conditions_that_they_compare(line):
    conditions, decided = (words.split() for words in line.split(":"))
    scored = ["none", "mless", *conditions]
    profile = with_section(load_profile("families"), "pass_rates", conditions=scored)
    assert ids(profile, "weighted pass rates") == {"points-slashes", *decided}


@pytest.mark.parametrize("format", ["plain", "chat"])
@pytest.mark.parametrize("elicit", [True, False])
def test_what_a_model_writes_unaided_needs_a_plain_prompt_and_no_box(format, elicit):
    how = {"format": format, "elicit": elicit, "examples": []}
    profile = with_section(load_profile("demo"), "accuracy", **how)
    is_unaided = format == "plain" and not elicit
    assert ("position-end" in ids(profile, "accuracy")) == is_unaided


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_claim_on_several_layers_needs_the_last_of_them(layers):
    demo = load_profile("demo")
    shallow = with_section(demo, "attention", layers=layers, map_problems=None)
    decided = ids(shallow, "attention and activations")
    assert ("layer-1-most" in decided) == (layers == 3)


def test_an_answer_that_is_scored_at_once_needs_its_own_conditions():
    profile = load_profile("families")
    at_once = set()
    for claim in decidable(profile)["likelihood"]:
        if claim.arguments.get("target") == "answer":
            at_once.add(claim.id)
    fewer = with_section(profile, "likelihood", at_once=[])
    lost = ids(profile, "likelihood") - ids(fewer, "likelihood")
    assert lost == at_once
    assert at_once
