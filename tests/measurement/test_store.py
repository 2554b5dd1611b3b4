"""A model's file: what it holds, when it is used again, and what is said when not."""

import itertools
import json
import subprocess
import sys
from typing import NamedTuple
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest
import xarray as xr
from transformers import LlamaForCausalLM

from lib import paths, progress
from lib.errors import InputError
from lib.measurement import networks, plan
from lib.measurement.run import measure
from lib.measurement.store import load_measured, save_measured, settings_of
from lib.profiles import load_profile, run_profile
from lib.prompts.conditions import Filler

NAME = "tiny-llama"


class Measured(NamedTuple):
    """What was measured, and the bytes of its file."""

    dataset: xr.Dataset
    content: bytes


def tiny(folder):
    """Return a profile of two problems on a tiny model of three layers.

    Two are its first layers, and one problem goes through all.
    """
    profile = run_profile("demo", model=str(folder), limit=2, name="mine")
    changes = {"layers": 2, "map_problems": 1}
    attention = profile.attention.model_copy(update=changes)
    return profile.model_copy(update={"attention": attention})


def file_of(profile):
    return profile.results / f"{NAME}.nc"


@pytest.fixture(scope="module")
def whole(tiny_llama, tmp_path_factory):
    """Everything that is measured on the tiny model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results"))
        profile = tiny(tiny_llama)
        dataset = measure(profile)[NAME]
        return Measured(dataset, file_of(profile).read_bytes())


@pytest.fixture
def profile(tiny_checkpoint, tmp_path, monkeypatch):
    """The same of a copy, with folders of its own."""
    profile = tiny(tiny_checkpoint)
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    profile.results.mkdir(parents=True)
    return profile


def test_a_file_has_every_variable_with_its_meaning(whole, tmp_path):
    (tmp_path / "m.nc").write_bytes(whole.content)
    opened = xr.open_dataset(tmp_path / "m.nc")
    for variables in plan.VARIABLES.values():
        for name, (dims, meaning) in variables.items():
            assert set(opened[name].dims) == set(dims.split())
            assert opened[name].attrs["long_name"] == meaning


def test_a_file_has_every_network_and_nan_where_nothing_was_measured(whole):
    measured = whole.dataset
    # The tiny model has one key head, so that no head can meet another's keys.
    networks = [name for name in plan.NETWORKS if name != plan.OTHER_KEYS]
    assert measured.network.values.tolist() == networks
    assert measured.label.startswith(f"{NAME} @ ")

    lam = measured["lambda"].sel(condition="mless")
    counts = lam.notnull().sum("problem").isel(head=0)  # (network, layer)
    assert counts.sel(network="trained").values.tolist() == [2, 2, 1]
    for network in ("untrained 1", "uniform"):
        assert counts.sel(network=network).values.tolist() == [2, 2, 0]
    assert measured.dispersion.sel(network="uniform").isnull().all()
    of_each_layer = measured.received.notnull().any(["condition", "token"])
    assert of_each_layer.all()

    # Each seed draws weights of its own.
    first = lam.sel(layer=1)
    drawn = [first.sel(network=name).values for name in plan.UNTRAINED]
    for one, other in itertools.combinations(drawn, 2):
        assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"filler": Filler(length=7)}, {"filler": Filler(mless="!")}],
    ids=str,
)
def test_a_profiles_own_settings_are_those_of_its_measurements(changes):
    demo = load_profile("demo")
    other = demo.model_copy(update=changes)
    assert settings_of(other, "demo", None) != settings_of(demo, "demo", None)


def test_what_is_there_is_not_measured_again(whole, profile, monkeypatch, capsys):
    run_step = Mock(wraps=networks.run_step)
    monkeypatch.setattr(networks, "run_step", run_step)
    tokens = measure(profile, "tokens")[NAME]
    assert set(tokens) == set(plan.VARIABLES["tokens"])

    monkeypatch.setattr(progress, "shown", True)
    both = measure(profile, "tokens", "activations")[NAME]
    bars = capsys.readouterr().err
    assert "activations in 2 layers: 100%" in bars
    assert "2/2" in bars
    assert set(both) == set(tokens) | set(plan.VARIABLES["activations"])
    assert both.measures.equals(whole.dataset.measures[:1])

    steps = [call.args[2] for call in run_step.call_args_list]
    expected = [("tokens", False), ("activations", False), ("activations", True)]
    assert [(step.measure, step.deep) for step in steps] == expected
    assert {step.network for step in steps} == {"trained"}
    monkeypatch.setattr(networks, "load", None)
    xr.testing.assert_equal(measure(profile, "activations")[NAME], both)


def test_an_interruption_loses_one_condition(profile, monkeypatch):
    effects = [DEFAULT, DEFAULT, KeyboardInterrupt, *[DEFAULT] * 9]
    observe = Mock(wraps=networks.observe, side_effect=effects)
    monkeypatch.setattr(networks, "observe", observe)
    with pytest.raises(KeyboardInterrupt):
        measure(profile, "attention")
    kept = load_measured(profile, *profile.attention.models)
    assert json.loads(kept.done) == ["trained: attention: mless"]
    measure(profile, "attention")
    # None again and the two that were missing, then the deeper layer.
    assert observe.call_count == 3 + 3 + 4


def test_other_weights_are_measured_again(profile, tiny_checkpoint):
    before = measure(profile, "tokens", "attention")[NAME]
    model = LlamaForCausalLM.from_pretrained(tiny_checkpoint)
    model.model.layers[0].self_attn.q_proj.weight.data[0, 0] += 50
    model.save_pretrained(tiny_checkpoint)
    after = measure(profile, "tokens", "attention", "activations")[NAME]
    assert after.revision != before.revision
    here = {"network": "trained", "condition": "mless", "layer": 1}
    change = abs(after["lambda"].sel(here).values - before["lambda"].sel(here).values)
    assert (change > 1e-4).any()
    assert not np.array_equal(after.received.values, before.received.values)


@pytest.mark.parametrize("name", ["revision", "dtype", "device", None])
def test_numbers_of_another_provenance_are_measured_again(profile, name):
    before = measure(profile, "tokens")[NAME]
    other = before.assign(received=2 * before.received)
    if name is not None:
        other = other.assign_attrs({name: "another"})
    save_measured(file_of(profile), other)
    after = measure(profile, "tokens", "attention")[NAME]
    expected = other if name is None else before
    first = after.received.sel(layer=1).values
    np.testing.assert_array_equal(first, expected.received.sel(layer=1).values)
    assert after.attrs[name or "device"] == before.attrs[name or "device"]
    assert set(plan.VARIABLES["attention"]) < set(after)


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({"seed": 1}, set(plan.VERSIONS)),
        ({"attention": {"example": "embedded/sum/1"}}, {"tokens"}),
        ({"accuracy": {"arm": {"c": 0.3}}}, {"activations"}),
        ({"attention": {"models": ["gemma-3-270m"]}}, set()),
        ({}, {"causes"}),
    ],
)
def test_what_other_settings_or_another_version_decide_is_measured_again(
    whole, profile, changed, lost, monkeypatch
):
    file_of(profile).write_bytes(whole.content)
    (spec,) = profile.attention.models
    content = profile.model_dump()
    content["attention"]["panels"] = {}
    for name, value in changed.items():
        content[name] = content[name] | value if isinstance(value, dict) else value
    if not changed:
        monkeypatch.setitem(plan.VERSIONS, "causes", 2)
    kept = load_measured(type(profile).model_validate(content), spec)
    done = {label.split(": ")[1] for label in json.loads(kept.done)}
    assert done == set(plan.VERSIONS) - lost
    for measure_name, variables in plan.VARIABLES.items():
        assert kept.keys().isdisjoint(variables) == (measure_name in lost)


@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: c[:-9], lambda c: c[:999] + b"?" + c[1000:]]
)
def test_a_damaged_file_counts_for_nothing_and_is_named(whole, profile, damage, capsys):
    file = file_of(profile)
    file.write_bytes(damage(whole.content))
    nothing = load_measured(profile, *profile.attention.models)
    assert not nothing
    assert nothing.done == "[]"
    words = f"{file} is damaged: it is measured again\n"
    assert capsys.readouterr().err == words


@pytest.fixture
def kept(whole, profile):
    """The file that the repository keeps of the model, without the tokens' texts."""
    path = paths.DATA / "mine" / f"{NAME}.nc"
    save_measured(path, whole.dataset.drop_vars("text"))
    return path


def test_what_the_repository_keeps_is_used_where_nothing_was_measured_here(
    whole, profile, kept
):
    assert profile.stored
    assert set(measure(profile)[NAME]) == set(whole.dataset) - {"text"}
    (spec,) = profile.attention.models
    assert not load_measured(profile, spec, stored=False)
    # What was measured here comes before it.
    file_of(profile).write_bytes(whole.content)
    assert not profile.stored
    assert "text" in load_measured(profile, spec)


def test_what_the_repository_keeps_of_other_settings_or_damaged_is_refused(
    whole, profile, kept
):
    words = r"other settings than mine has now: python -m lib reproduce .* --fresh"
    with pytest.raises(InputError, match=words):
        measure(profile.model_copy(update={"seed": 1}))
    words = r"cannot keep measurements in .*tiny-llama\.nc"
    with pytest.raises(InputError, match=words):
        save_measured(kept / "m.nc", whole.dataset)
    kept.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"data/mine/tiny-llama\.nc cannot be read"):
        measure(profile)


def test_another_example_is_drawn_and_nothing_else_is_measured_again(whole, profile):
    def drawing(example):
        attention = profile.attention.model_copy(update={"example": example})
        return profile.model_copy(update={"attention": attention})

    words = "example 'x' is none of the problems of embedded"
    with pytest.raises(InputError, match=words):
        measure(drawing("x"), "tokens")
    file_of(profile).write_bytes(whole.content)
    before = whole.dataset
    for example in ("embedded/draw/160", "embedded/draw/159", None):
        after = measure(drawing(example), "tokens", "attention")[NAME]
        # Of a profile that names none it is the sample's first.
        assert after.example == (example or after.problem[0])
        assert (after.example in after.problem) == (example is None)
        assert after["lambda"].equals(before["lambda"])
        assert not after.received.equals(before.received)
        before = after


def test_what_is_stored_is_read_without_the_libraries_that_run_a_network():
    code = """if True:
        import sys
        import lib.measurement.head_curves, lib.reproduce
        from lib.claims.gathering import gather
        from lib.profiles import load_profile
        assert gather(load_profile("families"))
        assert not {"torch", "transformers"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, check=True)


def test_the_file_of_a_model_has_a_name_that_every_system_takes(tmp_path):
    path = load_profile("demo").measured_in(tmp_path, "my model (2)")
    assert path == tmp_path / "my-model-2-.nc"
