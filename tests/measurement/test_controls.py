"""Controls have the layout of what they are held against, and are what they say."""

import numpy as np
import pytest
import xarray as xr

from lib.claims.internals import class_differences, head_lambdas
from lib.measurement.measured import SEEDS, whole
from lib.measurement.run import measure_activations, measure_attention, measure_controls
from lib.measurement.tables import controls_table
from lib.profiles import load_profile, override
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems


@pytest.fixture
def profile(tiny_checkpoint):
    profile = override(load_profile("demo"), model=str(tiny_checkpoint), limit=3)
    attention = profile.attention.model_copy(update={"map_problems": None, "layers": 2})
    return profile.model_copy(update={"attention": attention})


def test_controls_are_paired_with_the_trained_model_over_problems(profile):
    (control,), (trained,) = measure_controls(profile).values(), measure_attention(profile).values()
    (changed,) = measure_activations(profile).values()
    assert len(control.attention) == len(control.activations) == len(SEEDS)
    for one in (*control.attention, control.uniform):
        xr.align(one.first, trained.first, join="exact")
        assert one.first["lambda"].dims == trained.first["lambda"].dims
    for one in control.attention:
        xr.align(one.causes, trained.causes, join="exact")
    for one in control.activations:
        assert one.first.problem.equals(changed.first.problem)
    assert not control.attention[0].first.equals(control.attention[1].first)
    table = controls_table({"tiny": control}, "mless").set_index(["control", "layer"])
    means = [one.first["lambda"].sel(condition="mless", layer=2).mean("problem") for one in control.attention]
    assert table.lowest["untrained", 2] == min(map(float, map(np.min, means)))
    assert table.highest["untrained", 2] == max(map(float, map(np.max, means)))
    assert table.lowest["uniform", 1] == table.highest["uniform", 1]
    found = whole(trained, changed, control)
    assert list(found.network.values) == ["trained", *(f"untrained {seed}" for seed in SEEDS), "uniform"]
    for name, of in (("trained", trained), ("untrained 1", control.attention[1]), ("uniform", control.uniform)):
        np.testing.assert_array_equal(
            found["lambda"]
            .sel(network=name, layer=[1, 2])
            .transpose(*of.first["lambda"].dims)
            .sel(condition=of.first.condition),
            of.first["lambda"],
        )
    assert head_lambdas(found, "mless", 1).sizes["component"] == 2
    assert class_differences(found, "none", 1).sizes["component"] == 3


def test_uniform_attention_depends_on_lengths_alone(profile, demo):
    (control,) = measure_controls(profile).values()
    lam = control.uniform.first["lambda"]
    problem = load_problems("embedded", limit=3)[0]
    means = []
    for condition in ("none", "mless"):
        prompt = build_prompt(demo.tokenizer, problem.problem, condition)
        given = [np.mean(1 / np.arange(token + 2, len(prompt) + 1)) for token in prompt.original[1:-1].tolist()]
        means.append(np.mean(given))
    np.testing.assert_allclose(lam.sel(condition="mless", problem=problem.id), means[1] / means[0], rtol=1e-5)
    assert control.uniform.first.dispersion.isnull().all()


def test_controls_are_kept_and_read_again(profile, tmp_path, monkeypatch):
    first = measure_controls(profile, tmp_path)
    monkeypatch.setattr("lib.measurement.dilution._seen", lambda *_: pytest.fail("measured again"))
    monkeypatch.setattr("lib.measurement.redistribution._measure", lambda *_: pytest.fail("measured again"))
    again = measure_controls(profile, tmp_path)
    for one, other in zip(first.values(), again.values(), strict=True):
        xr.testing.assert_identical(one.uniform.first, other.uniform.first)
        xr.testing.assert_identical(one.attention[2].causes, other.attention[2].causes)
