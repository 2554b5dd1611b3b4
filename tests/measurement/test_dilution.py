"""Lambda and flatness over problems, and the panels' curves, on the demo model."""

import functools
import gc
import weakref

import numpy as np
import pytest
import torch

from lib.attention.received import received_attention
from lib.errors import InputError
from lib.measurement.curves import first_layers, panel_curves
from lib.measurement.dilution import measure_dilution
from lib.models.loading import load
from lib.profiles import load_profile, override
from lib.prompts.batches import in_batches
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems


@pytest.fixture(scope="module")
def problems():
    return load_problems("embedded", limit=5)


def test_lambda_agrees_with_one_prompt_at_a_time(demo, problems, monkeypatch):
    monkeypatch.setattr("lib.measurement.dilution.in_batches", functools.partial(in_batches, tokens=200))
    found = measure_dilution(demo, problems, ["mless"], [1, 2])
    for i, problem in enumerate(problems):
        means = []
        for condition in ("none", "mless"):
            prompt = build_prompt(demo.tokenizer, problem.problem, condition)
            received = received_attention(demo.model, prompt.input_ids, [1, 2])[0]
            means.append(received[..., prompt.original[1:-1]].mean(-1).numpy())
        np.testing.assert_allclose(found.ratio["mless"][i], means[1] / means[0], rtol=1e-4)


def test_report_counts_every_prompt_once(demo, problems):
    seen = []
    measure_dilution(demo, problems, ["mless", "random"], [1], report=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (15, 15)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_slashes_are_flatter_than_a_sentence(demo, problems):
    flat = measure_dilution(demo, problems, ["mless", "random"], [1]).flatness
    assert flat["mless"].mean() < flat["random"].mean()


def test_equal_tokens_have_equal_values_in_layer_1_alone(demo, problems):
    found = measure_dilution(demo, problems, ["mless", "random"], [1, 2])
    assert np.abs(found.dispersion["mless"][:, 0]).max() < 1e-3
    assert (found.dispersion["mless"][:, 1] > 0.01).all() and (found.dispersion["random"][:, 0] > 0.5).all()


def test_mass_is_the_share_that_later_tokens_give_the_insertion(problems):
    demo = load("demo", layers=1, device="cpu")
    found = measure_dilution(demo, problems, ["mless"], [1])
    prompt = build_prompt(demo.tokenizer, problems[0].problem, "mless")
    span = prompt.spans["inserted"]
    demo.model.set_attn_implementation("eager")
    with torch.inference_mode():
        matrix = demo.model(prompt.input_ids[None], output_attentions=True).attentions[0][0]  # (H, T, T)
    expected = matrix[:, span.stop :, span].sum(-1).mean(-1)
    np.testing.assert_allclose(found.mass["mless"][0, 0], expected, rtol=1e-4)
    assert found.mass["mless"].max() < 1 and found.flatness["mless"].min() > 0


def test_each_condition_is_kept_as_soon_as_it_is_measured(demo, problems, tmp_path, monkeypatch):
    def stop(done, total):
        if done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_dilution(demo, problems, ["mless", "random"], [1], folder=tmp_path, report=stop)
    assert len(list(tmp_path.iterdir())) == 1  # none
    measure_dilution(demo, problems, ["mless", "random"], [1], folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_to_measure_is_refused(demo):
    with pytest.raises(InputError, match="no problems"):
        measure_dilution(demo, [], ["mless"], [1])


def test_panels_compare_the_same_tokens():
    profile = override(load_profile("demo"), limit=3)
    for curves in panel_curves(profile, "fig13", ["none", "mless"]):
        assert curves.original("none").shape == curves.original("mless").shape
        assert len(curves.whole("mless")) == len(curves.whole("none")) + 55
        assert (curves.table().groupby(["condition", "part"]).size()["mless", "inserted"]) == 55


def test_example_beyond_the_problems_is_refused():
    profile = override(load_profile("demo"), limit=1)
    profile.attention.__dict__["example"] = 3
    with pytest.raises(InputError, match="example 3 is beyond the 1 problems"):
        panel_curves(profile, "fig13", ["none"])


def test_panels_of_several_models_keep_one_in_memory(tiny_checkpoint, monkeypatch):
    alive = weakref.WeakSet()

    def counted(spec, layers):
        loaded = load(spec, layers=layers)
        alive.add(loaded.model)
        return loaded

    monkeypatch.setattr("lib.measurement.curves.load", counted)
    first = first_layers("demo", 1)
    second = first_layers(str(tiny_checkpoint), 1)
    assert first_layers(str(tiny_checkpoint), 1) is second
    del first
    gc.collect()
    assert list(alive) == [second.model]


def test_curves_keep_no_weights():
    for curves in panel_curves(override(load_profile("demo"), limit=2), "fig10", ["none"]):
        assert curves.loaded.model is None and curves.loaded.name == "SmolLM2-135M-Instruct"
