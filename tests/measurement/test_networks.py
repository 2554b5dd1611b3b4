"""A profile's filler, format, seed and ARM settings reach the networks."""

import gc
import weakref

import numpy as np
import pytest

from lib.arm.settings import Arm
from lib.models.loading import load
from lib.models.sources import resolve
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems, stratified_sample
from reproduction import paths
from reproduction.measurement import networks
from reproduction.measurement.activation_changes import measure_activations
from reproduction.measurement.affine_map import measure_affine
from reproduction.measurement.attention_changes import measure_attention, prompts_of
from reproduction.measurement.dataset import INSERTIONS
from reproduction.measurement.measurement_run import measure
from reproduction.measurement.single_prompt import received_by
from reproduction.profiles import profile_with_overrides

SEED = 2
LIMIT = 6
FILLER = Filler(length=7, mless="!")
ARM = Arm(c=0.4, p1=90)


@pytest.fixture(scope="module")
def profile(tiny_llama):
    """A profile whose settings all differ from those of the shipped profiles."""
    profile = profile_with_overrides(
        "demo", model=str(tiny_llama), limit=LIMIT, name="mine"
    )
    changes = {"layers": 1, "map_problems": 1, "format": "chat", "example": None}
    attention = profile.attention.model_copy(update=changes)
    return profile.model_copy(
        update={"attention": attention, "seed": SEED, "filler": FILLER}
    )


@pytest.fixture(scope="module")
def measured(profile, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results"))
        source = resolve(*profile.attention.models).model_copy(update={"arm": ARM})
        patch.setattr(networks, "resolve", lambda spec: source)
        (measured,) = measure(profile).values()
        return measured


@pytest.fixture(scope="module")
def problems():
    """The problems drawn with the profile's seed; another seed draws others."""
    problems = load_problems("embedded", limit=LIMIT, seed=SEED)
    assert problems[0] != load_problems("embedded", limit=LIMIT)[0]
    assert stratified_sample(problems, 1, SEED) != stratified_sample(problems, 1, 0)
    return problems


def built(loaded, problems, *conditions):
    """Return the prompts with the profile's settings."""
    return prompts_of(loaded, problems, conditions, "chat", FILLER)


def same(step, measured, network):
    """Assert that a step's numbers are those of a network's measurements."""
    labels = {name: step[name].values for name in step.dims if name in measured}
    found = measured[list(step)].sel(labels | {"network": network})
    for name in step:
        np.testing.assert_allclose(found[name], step[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("network", "seed"),
    [("trained", None), ("untrained 0", 0), ("untrained 2", 2), ("uniform", None)],
)
def test_a_networks_attention_is_that_of_the_profiles_prompts(
    measured, tiny_llama, problems, network, seed
):
    loaded = load(str(tiny_llama), layers=1, seed=seed)
    prompts = built(loaded, problems, *INSERTIONS)
    found = measure_attention(loaded, prompts, [1], network == "uniform")
    same(found, measured, network)


def test_maps_and_activations_are_those_of_the_profiles_prompts(
    measured, tiny_llama, problems
):
    loaded = load(str(tiny_llama), layers=1)
    same(measure_affine(loaded, built(loaded, problems, "mless")), measured, "trained")
    prompts = built(loaded, problems, "mless", "arm")
    activations = measure_activations(loaded, prompts, [1], ARM, SEED)
    same(activations, measured, "trained")


def test_all_layers_are_measured_on_problems_drawn_with_the_profiles_seed(
    measured, problems
):
    deep = measured["lambda"].sel(network="trained", condition="mless", layer=3)
    reached = deep.problem[deep.notnull().any("head")]
    assert reached == [problem.id for problem in stratified_sample(problems, 1, SEED)]


def test_the_example_is_the_first_problem_in_the_profiles_filler_and_format(
    measured, tiny_llama, problems
):
    loaded = load(str(tiny_llama), layers=1)
    (prompt,) = built(loaded, problems[:1], "mless")["mless"].values()
    tokens = measured.sel(condition="mless", layer=1, token=range(len(prompt)))
    (received,) = received_by(loaded, prompt, [1])
    np.testing.assert_array_equal(tokens.received, received)
    assert tokens.part.values.tolist() == prompt.parts
    assert measured.example == problems[0].id


def test_memory_holds_one_model(tiny_llama, monkeypatch):
    alive = weakref.WeakSet()

    def counted(spec, **options):
        gc.collect()
        assert not alive
        loaded = load(spec, **options)
        alive.add(loaded.model)
        return loaded

    monkeypatch.setattr(networks, "load", counted)
    for layers, seed in ((1, None), (1, None), (2, 0)):
        networks.load_cached(str(tiny_llama), layers, "auto", seed)
