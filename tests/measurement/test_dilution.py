"""Lambda and flatness over problems, and the panels' curves, on the demo model."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from eager import matrices, outputs_of, received

from lib import progress
from lib.attention.received import observe
from lib.errors import InputError
from lib.measurement.dilution import measure_dilution
from lib.measurement.networks import every_layer, first_layers
from lib.measurement.run import panel_curves
from lib.models.loading import load
from lib.profiles import load_profile, override
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems


@pytest.fixture(scope="module")
def problems():
    return load_problems("embedded", limit=5)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=3, device="cpu")


def reference(loaded, problem, condition):
    """The variables of one problem, (L, H) each, from the definitions and the whole matrices."""
    before, after = (build_prompt(loaded.tokenizer, problem.problem, name) for name in ("none", condition))
    span, matrix = after.spans["inserted"], matrices(loaded.model, after.input_ids)
    old = received(matrices(loaded.model, before.input_ids))[..., before.original[1:-1]].numpy()
    new, inserted = (received(matrix)[..., tokens].numpy() for tokens in (after.original[1:-1], span))
    values = outputs_of(loaded.model, after.input_ids, "self_attn.v_proj")
    width = loaded.model.config.head_dim
    spreads = []
    for layer in range(1, loaded.layers + 1):
        heads = values[layer, "self_attn.v_proj"][span].numpy()
        heads = heads.reshape(len(heads), -1, width)  # (inserted, key heads, D)
        away = [((head - head.mean(0)) ** 2).sum() / (head**2).sum() for head in heads.swapaxes(0, 1)]
        served = loaded.heads // len(away)
        spreads.append([away[head // served] ** 0.5 for head in range(loaded.heads)])
    return {
        "lambda": new.mean(-1) / old.mean(-1),
        "level": new.mean(-1),
        "baseline": old.mean(-1),
        "irregularity": np.log(new / old).std(-1),
        "unevenness": new.std(-1) / new.mean(-1),
        "mass": matrix[:, :, span.stop :, span].sum(-1).mean(-1).numpy(),
        "flatness": inserted.std(-1) / inserted.mean(-1),
        "dispersion": np.array(spreads),
        "portion": inserted.mean(-1) / new.mean(-1),
    }


def test_every_number_agrees_with_the_attention_matrices(loaded, problems):
    found = measure_dilution(loaded, problems, ["mless", "random"])
    assert dict(found.sizes) == {"condition": 2, "problem": 5, "layer": 3, "head": 9}
    for problem in problems:
        for condition in ("mless", "random"):
            there = found.sel(problem=problem.id, condition=condition)
            for name, expected in reference(loaded, problem, condition).items():
                np.testing.assert_allclose(there[name], expected, rtol=2e-3, atol=2e-3, err_msg=name)


def test_a_single_layer_is_the_one_that_was_asked_for(loaded, problems):
    (second,) = measure_dilution(loaded, problems[:1], ["mless"], [2])["lambda"].values
    np.testing.assert_allclose(second[:, 0], reference(loaded, problems[0], "mless")["lambda"][[1]], rtol=1e-3)


def test_whatever_changes_the_numbers_has_a_file_of_its_own(loaded, problems, tmp_path):
    asked = [
        (loaded, problems[:1], {}),
        (replace(loaded, dtype="bfloat16"), problems[:1], {}),
        (replace(loaded, device="cuda"), problems[:1], {}),
        (replace(loaded, revision="other"), problems[:1], {}),
        (replace(loaded, name="other"), problems[:1], {}),
        (loaded, problems[1:2], {}),
        (loaded, problems[:2], {}),
        (loaded, problems[:1], {"format": "chat"}),
        (loaded, problems[:1], {"filler": Filler(mless="-")}),
        (loaded, problems[:1], {"filler": Filler(length=7)}),
        (loaded, problems[:1], {"layers": [1, 2, 3]}),
        (loaded, problems[:1], {"layers": [1, 3]}),
    ]
    for files, (model, some, given) in enumerate(asked, 1):
        measure_dilution(model, some, ["mless"], **{"layers": [1], **given}, folder=tmp_path)
        assert len(list(tmp_path.iterdir())) == files


def test_a_bar_counts_every_prompt_of_a_condition_once(loaded, problems, capsys):
    with progress.switched_on():
        measure_dilution(loaded, problems, ["mless"], [1])
    shown = capsys.readouterr().err
    for condition in ("none", "mless"):
        assert f"SmolLM2-135M-Instruct, attention under {condition} in 1 layers: 100%" in shown and "5/5" in shown


def test_slashes_are_flatter_than_a_sentence(loaded, problems):
    flat = measure_dilution(loaded, problems, ["mless", "random"], [1]).flatness.mean(["problem", "head"])
    assert flat.sel(condition="mless") < flat.sel(condition="random")


def test_equal_tokens_have_equal_values_in_layer_1_alone(loaded, problems):
    spread = measure_dilution(loaded, problems, ["mless", "random"], [1, 2]).dispersion
    assert abs(spread.sel(condition="mless", layer=1)).max() < 1e-3
    assert (spread.sel(condition="mless", layer=2) > 0.01).all()
    assert (spread.sel(condition="random", layer=1) > 0.5).all()


def test_each_condition_is_kept_as_soon_as_it_is_measured(loaded, problems, tmp_path):
    def stop(model, ids, *args, **options):
        if len(list(tmp_path.iterdir())):
            raise KeyboardInterrupt
        return observe(model, ids, *args, **options)

    options = {"folder": tmp_path, "observing": stop}
    with pytest.raises(KeyboardInterrupt):
        measure_dilution(loaded, problems, ["mless", "random"], [1], **options)
    (kept,) = tmp_path.iterdir()
    assert "mless" in kept.name
    written = kept.stat().st_mtime_ns
    found = measure_dilution(loaded, problems, ["mless", "random"], [1], folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2 and kept.stat().st_mtime_ns == written
    xr.testing.assert_allclose(found, measure_dilution(loaded, problems, ["mless", "random"], [1]))


def test_nothing_to_measure_is_refused(loaded):
    with pytest.raises(InputError, match="no problems"):
        measure_dilution(loaded, [], ["mless"], [1])


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

    monkeypatch.setattr("lib.measurement.networks.load", counted)
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
    monkeypatch.setattr("lib.measurement.networks.load", lambda spec, **_: held.extend(alive))
    every_layer(str(tiny_checkpoint))
    assert not held and not alive
