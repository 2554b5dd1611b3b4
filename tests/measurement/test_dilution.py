"""Lambda and flatness over problems, and the panels' curves, on the demo model."""

import functools
import gc
import weakref

import numpy as np
import pytest
import torch
import xarray as xr

from lib import progress
from lib.attention.received import observe, received_attention
from lib.errors import InputError
from lib.measurement.curves import panel_curves
from lib.measurement.dilution import measure_dilution
from lib.measurement.weights import every_layer, first_layers
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
        np.testing.assert_allclose(found["lambda"].sel(condition="mless")[i], means[1] / means[0], rtol=1e-4)


def test_a_bar_counts_every_prompt_of_a_condition_once(demo, problems, capsys):
    with progress.switched_on():
        measure_dilution(demo, problems, ["mless"], [1])
    shown = capsys.readouterr().err
    for condition in ("none", "mless"):
        assert f"SmolLM2-135M-Instruct, attention under {condition} in 1 layers: 100%" in shown and "5/5" in shown


def test_slashes_are_flatter_than_a_sentence(demo, problems):
    flat = measure_dilution(demo, problems, ["mless", "random"], [1]).flatness.mean(["problem", "head"])
    assert flat.sel(condition="mless") < flat.sel(condition="random")


def test_equal_tokens_have_equal_values_in_layer_1_alone(demo, problems):
    spread = measure_dilution(demo, problems, ["mless", "random"], [1, 2]).dispersion
    assert abs(spread.sel(condition="mless", layer=1)).max() < 1e-3
    assert (spread.sel(condition="mless", layer=2) > 0.01).all()
    assert (spread.sel(condition="random", layer=1) > 0.5).all()


def test_mass_is_the_share_that_later_tokens_give_the_insertion(problems):
    demo = load("demo", layers=1, device="cpu")
    found = measure_dilution(demo, problems, ["mless"], [1])
    prompt = build_prompt(demo.tokenizer, problems[0].problem, "mless")
    span = prompt.spans["inserted"]
    demo.model.set_attn_implementation("eager")
    with torch.inference_mode():
        matrix = demo.model(prompt.input_ids[None], output_attentions=True).attentions[0][0]  # (H, T, T)
    expected = matrix[:, span.stop :, span].sum(-1).mean(-1)
    np.testing.assert_allclose(found.mass.sel(condition="mless", layer=1)[0], expected, rtol=1e-4)
    assert found.mass.max() < 1 and found.flatness.min() > 0


def test_irregularity_is_the_spread_of_single_tokens_ratios(demo, problems):
    found = measure_dilution(demo, problems, ["mless"], [2])
    rows = []
    for condition in ("none", "mless"):
        prompt = build_prompt(demo.tokenizer, problems[3].problem, condition)
        rows.append(received_attention(demo.model, prompt.input_ids, [2])[0, 0][:, prompt.original[1:-1]])
    expected = (rows[1] / rows[0]).log().std(-1, correction=0)
    np.testing.assert_allclose(found.irregularity.sel(condition="mless", layer=2)[3], expected, rtol=1e-3)


def test_each_condition_is_kept_as_soon_as_it_is_measured(demo, problems, tmp_path):
    def stop(model, ids, *args, **options):
        if len(list(tmp_path.iterdir())):
            raise KeyboardInterrupt
        return observe(model, ids, *args, **options)

    options = {"folder": tmp_path, "observing": stop}
    with pytest.raises(KeyboardInterrupt):
        measure_dilution(demo, problems, ["mless", "random"], [1], **options)
    (kept,) = tmp_path.iterdir()
    assert "mless" in kept.name
    written = kept.stat().st_mtime_ns
    found = measure_dilution(demo, problems, ["mless", "random"], [1], folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 and kept.stat().st_mtime_ns == written
    xr.testing.assert_allclose(found, measure_dilution(demo, problems, ["mless", "random"], [1]))


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


@pytest.fixture
def alive(monkeypatch):
    """The models that were loaded and are still held."""
    models = weakref.WeakSet()

    def counted(spec, layers=None, **options):
        loaded = load(spec, layers=layers, **options)
        models.add(loaded.model)
        return loaded

    monkeypatch.setattr("lib.measurement.weights.load", counted)
    return models


def test_figures_of_several_models_keep_one_in_memory(tiny_checkpoint, alive):
    first = first_layers("demo", 1)
    second = first_layers(str(tiny_checkpoint), 1)
    assert first_layers(str(tiny_checkpoint), 1) is second
    del first
    gc.collect()
    assert list(alive) == [second.model]


def test_the_first_layers_are_let_go_before_a_whole_model_is_loaded(tiny_checkpoint, alive, monkeypatch):
    first_layers(str(tiny_checkpoint), 1)
    held = []
    monkeypatch.setattr("lib.measurement.weights.load", lambda spec, **_: held.extend(alive))
    every_layer(str(tiny_checkpoint))
    assert not held and not alive
