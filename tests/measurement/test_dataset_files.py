"""Stored measurements of a model: their steps by key, when they are used again, and the
messages if the repository's cannot be used.
"""

import json
import re
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr
from transformers import LlamaForCausalLM

from lib.arm.settings import Arm
from lib.files.atomic import write_atomically
from lib.files.text_files import read
from lib.models.sources import resolve
from lib.prompts.problems import listed_problems
from reproduction import paths
from reproduction.measurement import dataset, measurement_run, networks
from reproduction.measurement.dataset import STEPS_FILE, encoded, merged
from reproduction.measurement.measurement_run import Measurements, measure
from reproduction.profiles import profile_with_overrides

NAME = "tiny-llama"


def changed(profile, **attention):
    """Return a profile with other settings of its attention section."""
    other = profile.attention.model_copy(update=attention)
    return profile.model_copy(update={"attention": other})


def tiny(folder):
    """Return a profile of two problems on a tiny model of three layers, of which two
    are measured on both problems and all three on one.
    """
    profile = profile_with_overrides("demo", model=str(folder), limit=2, name="mine")
    profile = changed(profile, layers=2, map_problems=1)
    return profile.model_copy(update={"seed": 2})


@pytest.fixture(scope="module")
def whole(tiny_llama, tmp_path_factory):
    """All measurements of the tiny model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results"))
        return measure(tiny(tiny_llama))[NAME]


@pytest.fixture
def profile(tiny_checkpoint, tmp_path, monkeypatch):
    """The same profile on a copy of the model, with empty folders."""
    profile = tiny(tiny_checkpoint)
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    return profile


@pytest.fixture
def steps(monkeypatch):
    """A function that returns the steps that were run."""
    run_step = Mock(wraps=networks.run_step)
    monkeypatch.setattr(networks, "run_step", run_step)
    return lambda: [call.args[2] for call in run_step.call_args_list]


def test_every_network_is_measured_and_unmeasured_cells_are_nan(whole):
    assert whole.network.values.tolist() == list(dataset.SEEDS)
    assert whole.condition.values.tolist() == ["none", *dataset.CHANGES]
    assert whole.model == NAME

    lam = whole["lambda"].sel(condition="mless")
    counts = lam.notnull().sum("problem").isel(head=0)  # (network, layer)
    assert counts.sel(network="trained").values.tolist() == [2, 2, 1]
    for network in ("untrained 1", "uniform"):
        assert counts.sel(network=network).values.tolist() == [2, 2, 0]
    assert whole.dispersion.sel(network="uniform").isnull().all()
    # No claim uses more than layer 1 of the control networks.
    has_activations = whole.measures.notnull().any(["condition", "problem", "measure"])
    of_networks = has_activations.sel(network=["trained", "untrained 1"])
    assert of_networks.values.tolist() == [[True, True, False], [True, False, False]]
    of_each_layer = whole.received.notnull().any(["condition", "token", "head"])
    assert of_each_layer.values.tolist() == [True, True, False]
    # Counts may exceed the integers that float32 can hold.
    assert whole.counts.dtype == "float64"

    # Each seed gives different weights.
    drawn = lam.sel(network=dataset.UNTRAINED, layer=1).values.reshape(3, -1)
    assert len(np.unique(drawn, axis=0)) == 3


def test_steps_are_joined_in_order_with_nan_and_empty_parts():
    def step(condition, problems, *values):
        of_each = ("condition", "problem"), np.array([values], "float32")
        return xr.Dataset(
            {"x": of_each}, {"condition": [condition], "problem": problems}
        )

    part = xr.DataArray(np.array(["word"], object), {"condition": ["mless"]})
    steps = [step("mless", ["b", "a"], 1, 2), xr.Dataset()]
    steps += [step("none", ["a", "c"], 3, 4), part.to_dataset(name="part")]
    together = merged(steps)
    assert together.condition.values.tolist() == ["mless", "none"]
    assert together.problem.values.tolist() == ["b", "a", "c"]
    assert together.x.dtype == "float32"
    np.testing.assert_array_equal(together.x, [[1, 2, np.nan], [np.nan, 3, 4]])
    assert together.part.values.tolist() == ["word", ""]
    some = dataset.select_problems(together, {"a", "b", "not measured"})
    assert some.problem.values.tolist() == ["b", "a"]


def test_stored_steps_are_not_measured_again(whole, profile, steps, monkeypatch):
    tokens = measure(profile, "tokens")[NAME]
    assert set(tokens) == set(dataset.VARIABLES["tokens"])
    both = measure(profile, "tokens", "activations")[NAME]
    assert set(both) == set(tokens) | set(dataset.VARIABLES["activations"])
    assert both.measures.equals(whole.measures[:1].sel(layer=both.layer))
    assert [(step.network, step.measure) for step in steps()] == [
        ("trained", "tokens"),
        ("trained", "activations"),
    ]
    monkeypatch.setattr(networks, "load", None)
    xr.testing.assert_equal(measure(profile, "tokens", "activations")[NAME], both)


def test_an_interruption_loses_one_step(profile, steps, monkeypatch):
    kept = []

    def keep_one(key, measured):
        if kept:
            raise KeyboardInterrupt
        kept.append(key)
        return dataset.row_of(key, measured)

    with monkeypatch.context() as patch:
        patch.setattr(measurement_run, "row_of", keep_one)
        with pytest.raises(KeyboardInterrupt):
            measure(profile, "attention")
    first, *others = read(profile.results / "measured" / NAME / STEPS_FILE)
    assert [first["key"]] == kept
    assert not others
    measure(profile, "attention")
    assert read(profile.results / "measured" / NAME / STEPS_FILE)[0] == first
    _, lost, again, *_ = steps()
    assert again == lost


def test_steps_of_other_weights_are_refused(profile, tiny_checkpoint, refused):
    before = measure(profile, "tokens")[NAME]
    model = LlamaForCausalLM.from_pretrained(tiny_checkpoint)
    model.model.layers[0].self_attn.q_proj.weight.data[0, 0] += 50
    model.save_pretrained(tiny_checkpoint)
    for parts in (["tokens"], ["tokens", "attention"]):
        message = refused(measure, profile, *parts)
        assert f"revision = {before.revision}, not " in message


def test_a_revision_that_the_profile_names_decides_which_steps_are_found(profile):
    steps = dataset.STEPS
    specs = ["org/model", "org/model@step1000", "org/model@step2000"]
    keys = [Measurements(profile, spec).steps_by_key(steps) for spec in specs]
    assert len(set().union(*keys)) == len(specs) * len(steps)


def test_other_arm_settings_or_versions_invalidate_only_the_steps_that_use_them(
    profile, monkeypatch
):
    (spec,) = profile.attention.models

    def lost():
        after = Measurements(profile, spec).steps_by_key(dataset.STEPS)
        return {step.measure for key, step in keys.items() if key not in after}

    keys = Measurements(profile, spec).steps_by_key(dataset.STEPS)
    assert len(keys) == len(dataset.STEPS)
    source = resolve(spec).model_copy(update={"arm": Arm(c=0.3)})
    monkeypatch.setattr(measurement_run, "resolve", lambda spec: source)
    assert lost() == {"activations"}
    monkeypatch.setitem(dataset.VERSIONS, "affine", 2)
    assert lost() == {"activations", "affine"}


def test_a_damaged_step_is_refused_and_a_half_written_one_measured_again(
    profile, capsys, refused
):
    before = measure(profile, "tokens")[NAME]
    file = profile.results / "measured" / NAME / STEPS_FILE
    content = bytearray(file.read_bytes())
    file.write_bytes(content[:-99])
    xr.testing.assert_equal(measure(profile, "tokens")[NAME], before)
    assert "dropped a half-written last line" in capsys.readouterr().err
    content[-999] = ord("B") if content[-999] == ord("A") else ord("A")
    key = read(file)[0]["key"]
    shortened = [json.dumps({"key": key, "dataset": data}) for data in ("abc", None)]
    for damaged in (content, *(f"{row}\n".encode() for row in shortened)):
        file.write_bytes(damaged)
        assert "steps.jsonl is damaged: delete it" in refused(
            measure, profile, "tokens"
        )


def uses_shipped(profile):
    """Whether the repository's measurements are used of the only model of a profile."""
    (spec,) = profile.attention.models
    return Measurements(profile, spec).uses_shipped


@pytest.fixture
def kept(whole, profile):
    """The repository's file of measurements of the model."""
    path = paths.DATA / "mine" / f"{NAME}.nc"
    write_atomically(path, encoded(whole.drop_vars("shape")))
    return path


def test_the_repositorys_measurements_are_used_if_results_has_none(
    whole, profile, kept
):
    assert uses_shipped(profile)
    assert set(measure(profile)[NAME]) == set(whole) - {"shape"}
    # Measurements in results/ precede those of the repository.
    assert "shape" in measure(profile, "activations", stored=False)[NAME]
    assert not uses_shipped(profile)
    found = measure(profile, "activations")[NAME]
    assert set(found) == set(dataset.VARIABLES["activations"])


def test_a_smaller_run_is_selected_from_the_repositorys_measurements(
    whole, kept, profile, monkeypatch
):
    monkeypatch.setattr(
        "reproduction.measurement.measurement_run.load_profile", lambda name: profile
    )
    smaller = changed(profile, limit=1)
    smaller = smaller.model_copy(update={"part_of": "mine", "name": "less"})
    assert uses_shipped(smaller)
    found = measure(smaller)[NAME]
    (first,) = listed_problems("embedded", 1, profile.seed)
    xr.testing.assert_equal(found, whole.drop_vars("shape").sel(problem=[first.id]))
    larger = changed(profile, limit=3).model_copy(update={"part_of": "mine"})
    assert not uses_shipped(larger)


def test_the_repositorys_measurements_are_refused_if_damaged_or_of_other_settings(
    whole, profile, kept, refused
):
    reseeded = profile.model_copy(update={"seed": 1})
    for other in (reseeded, changed(profile, example="embedded/draw/160")):
        words = "other settings than mine has now: .*--fresh"
        assert re.search(words, refused(measure, other))
    kept.write_bytes(b"nonsense")
    assert "data/mine/tiny-llama.nc is damaged" in refused(measure, profile)


def test_another_example_does_not_measure_the_attention_again(profile, steps, refused):
    message = refused(measure, changed(profile, example="x"), "tokens")
    assert message == "example 'x' is none of the problems of embedded"
    measure(profile, "attention")
    received = []
    for example in ("embedded/draw/160", "embedded/draw/159", None):
        drawing = changed(profile, example=example)
        after = measure(drawing, "tokens", "attention")[NAME]
        # The default example is the first problem of the sample.
        assert after.example == (example or after.problem[0])
        assert (after.example in after.problem) == (example is None)
        assert not any(after.received.equals(before) for before in received)
        received.append(after.received)
    attention = [step for step in steps() if step.measure == "attention"]
    assert [step.deep for step in attention] == [False, True]
