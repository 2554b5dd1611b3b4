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
    families = load_profile("families")
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
