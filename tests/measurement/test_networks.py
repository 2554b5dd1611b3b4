"""What a profile asks for reaches the networks: its filler, format, seed and ARM."""

import gc
import weakref

import numpy as np
import pytest

from lib import paths
from lib.arm.settings import Arm
from lib.attention.received import observe, observe_uniform
from lib.measurement import networks
from lib.measurement.activations import measure_activations
from lib.measurement.affine import measure_affine
from lib.measurement.attention import measure_attention, prompts_of, received_by
from lib.measurement.plan import INSERTIONS, STEPS
from lib.measurement.run import measure
from lib.models.loading import load
from lib.profiles import run_profile
from lib.prompts.conditions import Filler
from lib.prompts.problems import drawn_problem, load_problems, stratified_sample

SEED = 3
FILLER = Filler(length=7, mless="!")
ARM = Arm(c=0.4, p1=90)


@pytest.fixture(scope="module")
def profile(tiny_llama):
    """A profile none of whose settings is that of the shipped ones."""
    profile = run_profile("demo", model=str(tiny_llama), limit=3, name="mine")
    attention = profile.attention.model_copy(
        update={"layers": 1, "map_problems": 1, "format": "chat"}
    )
    return profile.model_copy(
        update={"attention": attention, "seed": SEED, "filler": FILLER}
    )


@pytest.fixture(scope="module")
def measured(profile, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results"))
        patch.setattr(networks, "arm_for", lambda spec: ARM)
        (measured,) = measure(profile).values()
        return measured


@pytest.fixture(scope="module")
def problems():
    problems = load_problems("embedded", limit=3, seed=SEED)
    assert problems != load_problems("embedded", limit=3)
    return problems


def built(loaded, problems, *conditions):
    """Return the prompts that the profile's settings make."""
    return prompts_of(loaded, problems, conditions, "chat", FILLER)


def same(step, measured, **place):
    """Say whether a step's numbers are those of the measurements at a place."""
    labels = {name: step[name].values for name in step.dims if name in measured}
    there = measured[list(step)].sel(labels | place)
    for name in step:
        np.testing.assert_allclose(there[name], step[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("network", "seed", "observing"),
    [
        ("trained", None, observe),
        ("untrained 0", 0, observe),
        ("untrained 2", 2, observe),
        ("uniform", None, observe_uniform),
    ],
)
def test_a_networks_attention_is_that_of_the_profiles_prompts(
    measured, profile, problems, network, seed, observing
):
    loaded = load(*profile.attention.models, layers=1, seed=seed)
    prompts = built(loaded, problems, *INSERTIONS)
    same(measure_attention(loaded, prompts, [1], observing), measured, network=network)


def test_maps_and_activations_are_those_of_the_profiles_prompts(
    measured, profile, problems
):
    loaded = load(*profile.attention.models, layers=1)
    fits = measure_affine(loaded, built(loaded, problems, "mless"))
    same(fits, measured, network="trained")
    prompts = built(loaded, problems, "mless", "arm")
    activations = measure_activations(loaded, prompts, [1], arm=ARM, seed=SEED)
    same(activations, measured, network="trained")


def test_every_layer_takes_the_problems_that_the_profiles_seed_draws(
    measured, problems
):
    deep = measured["lambda"].sel(network="trained", condition="mless", layer=3)
    there = deep.problem[deep.notnull().any("head")]
    assert there == [problem.id for problem in stratified_sample(problems, 1, SEED)]


def test_the_problems_of_every_layer_are_drawn_by_the_profiles_seed(profile):
    problems = load_problems("embedded")
    drawn = stratified_sample(problems, 1, SEED)
    assert drawn != stratified_sample(problems, 1, 0)
    deep = next(step for step in STEPS if step.deep and step.measure == "attention")
    assert networks._problems_of(deep, profile, problems) == drawn


def test_the_problem_that_is_drawn_is_that_of_the_profiles_seed(profile):
    without = profile.attention.model_copy(update={"example": None})
    profile = profile.model_copy(update={"attention": without})
    drawn = drawn_problem("embedded", None, without.limit, SEED)
    assert drawn != drawn_problem("embedded", None, without.limit, 0)
    tokens = next(step for step in STEPS if step.measure == "tokens")
    assert networks._problems_of(tokens, profile, []) == [drawn]


def test_the_drawn_prompt_has_the_profiles_filler_and_format(
    measured, profile, problems
):
    loaded = load(*profile.attention.models, layers=1)
    example = next(p for p in load_problems("embedded") if p.id == measured.example)
    prompt = built(loaded, [example], "mless")["mless"][example.id]
    drawn = measured.received.sel(condition="mless", layer=[1]).values[
        ..., : len(prompt)
    ]
    np.testing.assert_array_equal(drawn, received_by(loaded, prompt, [1]))
    assert (measured.part.sel(condition="mless") == "inserted").sum() == FILLER.length


def test_memory_holds_one_model(tiny_checkpoint, monkeypatch):
    alive = weakref.WeakSet()

    def counted(spec, **options):
        gc.collect()
        assert not alive
        loaded = load(spec, **options)
        alive.add(loaded.model)
        return loaded

    monkeypatch.setattr(networks, "load", counted)
    spec = str(tiny_checkpoint)
    for layers, seed in ((1, None), (1, None), (2, 0)):
        networks.load_cached(spec, layers, "auto", seed)
