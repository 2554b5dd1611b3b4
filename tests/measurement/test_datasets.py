"""What is kept of a model: steps by key, when they are used again, and what is said
when the repository's are not.
"""

import itertools
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr
from transformers import LlamaForCausalLM

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.measurement import datasets, networks, run, variables
from lib.measurement.datasets import STEPS_FILE, MeasuredSteps, joined, save_measured
from lib.measurement.run import measure
from lib.profiles import load_profile, run_profile
from lib.prompts.conditions import Filler
from lib.store import read

NAME = "tiny-llama"


def tiny(folder):
    """Return a profile of two problems on a tiny model of three layers.

    Two are its first layers, and one problem goes through all.
    """
    profile = run_profile("demo", model=str(folder), limit=2, name="mine")
    changes = {"layers": 2, "map_problems": 1}
    attention = profile.attention.model_copy(update=changes)
    return profile.model_copy(update={"attention": attention})


@pytest.fixture(scope="module")
def whole(tiny_llama, tmp_path_factory):
    """Everything that is measured on the tiny model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results"))
        return measure(tiny(tiny_llama))[NAME]


@pytest.fixture
def profile(tiny_checkpoint, tmp_path, monkeypatch):
    """The same of a copy, with folders of its own."""
    profile = tiny(tiny_checkpoint)
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    return profile


@pytest.fixture
def steps(monkeypatch):
    """What returns the steps that were run."""
    run_step = Mock(wraps=networks.run_step)
    monkeypatch.setattr(networks, "run_step", run_step)
    return lambda: [call.args[2] for call in run_step.call_args_list]


def test_a_file_has_every_variable_with_its_meaning(whole, tmp_path):
    save_measured(tmp_path / "m.nc", whole)
    opened = xr.open_dataset(tmp_path / "m.nc")
    for of_measure in variables.VARIABLES.values():
        for name, (dims, meaning) in of_measure.items():
            assert set(opened[name].dims) == set(dims.split())
            assert opened[name].attrs["long_name"] == meaning


def test_every_network_is_measured_and_nan_stands_where_nothing_was(whole):
    assert whole.network.values.tolist() == list(variables.SEEDS)
    assert whole.condition.values.tolist() == variables.ORDER["condition"]
    assert whole.label.startswith(f"{NAME} @ ")

    lam = whole["lambda"].sel(condition="mless")
    counts = lam.notnull().sum("problem").isel(head=0)  # (network, layer)
    assert counts.sel(network="trained").values.tolist() == [2, 2, 1]
    for network in ("untrained 1", "uniform"):
        assert counts.sel(network=network).values.tolist() == [2, 2, 0]
    assert whole.dispersion.sel(network="uniform").isnull().all()
    of_each_layer = whole.received.notnull().any(["condition", "token", "head"])
    assert of_each_layer.values.tolist() == [True, True, False]

    # Each seed draws weights of its own.
    first = lam.sel(layer=1)
    drawn = [first.sel(network=name).values for name in variables.UNTRAINED]
    for one, other in itertools.combinations(drawn, 2):
        assert not np.array_equal(one, other)


def test_steps_are_joined_in_order_with_nan_and_empty_parts():
    one = {"condition": ["mless"], "problem": ["b", "a"]}
    other = {"condition": ["none"], "problem": ["a", "c"]}
    dims = ("condition", "problem")
    word = np.array(["word"], object)
    steps = [
        xr.Dataset({"x": (dims, np.array([[1, 2]], "float32"))}, one),
        xr.Dataset(),
        xr.Dataset({"x": (dims, np.array([[3, 4]], "float32"))}, other),
        xr.Dataset({"part": ("condition", word)}, {"condition": ["mless"]}),
    ]
    together = joined(steps)
    assert together.condition.values.tolist() == ["none", "mless"]
    assert together.problem.values.tolist() == ["b", "a", "c"]
    assert together.x.dtype == "float32"
    nan = np.nan
    np.testing.assert_array_equal(together.x, [[nan, 3, 4], [1, 2, nan]])
    assert together.part.values.tolist() == ["", "word"]


def test_what_is_there_is_not_measured_again(whole, profile, steps, monkeypatch):
    tokens = measure(profile, "tokens")[NAME]
    assert set(tokens) == set(variables.VARIABLES["tokens"])
    both = measure(profile, "tokens", "activations")[NAME]
    assert set(both) == set(tokens) | set(variables.VARIABLES["activations"])
    here = both.measures.layer
    assert both.measures.equals(whole.measures[:1].sel(layer=here))
    assert [step.measure for step in steps()] == ["tokens", "activations"]
    assert {step.network for step in steps()} == {"trained"}
    monkeypatch.setattr(networks, "load", None)
    xr.testing.assert_equal(measure(profile, "tokens", "activations")[NAME], both)


def test_an_interruption_loses_one_step(profile, steps, monkeypatch):
    kept = []

    def keep_one(key, measured):
        if kept:
            raise KeyboardInterrupt
        kept.append(key)
        return datasets.row_of(key, measured)

    with monkeypatch.context() as patch:
        patch.setattr(run, "row_of", keep_one)
        with pytest.raises(KeyboardInterrupt):
            measure(profile, "attention")
    first, *others = read(profile.measured_in(NAME) / STEPS_FILE)
    assert [first["key"]] == kept
    assert not others
    measure(profile, "attention")
    assert read(profile.measured_in(NAME) / STEPS_FILE)[0] == first
    _, lost, again, *_ = steps()
    assert again == lost


def test_steps_of_other_weights_are_refused(profile, tiny_checkpoint):
    before = measure(profile, "tokens")[NAME]
    model = LlamaForCausalLM.from_pretrained(tiny_checkpoint)
    model.model.layers[0].self_attn.q_proj.weight.data[0, 0] += 50
    model.save_pretrained(tiny_checkpoint)
    # What is there is read without the weights, and nothing joins it.
    assert measure(profile, "tokens")[NAME].revision == before.revision
    with pytest.raises(InputError, match=f'revision = "{before.revision}", not "'):
        measure(profile, "tokens", "attention")


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({"seed": 1}, set(variables.VERSIONS)),
        ({"filler": Filler(length=7).model_dump()}, set(variables.VERSIONS)),
        ({"attention": {"example": "embedded/draw/160"}}, {"tokens"}),
        ({"attention": {"models": ["gemma-3-270m"]}}, set()),
        ("arm", {"activations"}),
        ("version", {"affine"}),
    ],
)
def test_what_other_settings_or_another_version_decide_has_another_key(
    profile, changed, lost, monkeypatch
):
    (spec,) = profile.attention.models
    content = profile.model_dump()
    content["attention"]["panels"] = {}
    before = MeasuredSteps(profile, spec)
    if changed == "arm":
        monkeypatch.setattr(datasets, "arm_for", lambda spec: Arm(c=0.3))
    elif changed == "version":
        monkeypatch.setitem(variables.VERSIONS, "affine", 2)
    else:
        for name, value in changed.items():
            content[name] = content[name] | value if isinstance(value, dict) else value
    after = MeasuredSteps(type(profile).model_validate(content), spec)
    keys = before.wanted(variables.STEPS)
    assert len(keys) == len(variables.STEPS)
    same = keys.keys() & after.wanted(variables.STEPS).keys()
    assert {step.measure for key, step in keys.items() if key not in same} == lost


def test_a_damaged_step_is_refused_and_a_half_written_one_measured_again(
    profile, capsys
):
    before = measure(profile, "tokens")[NAME]
    file = profile.measured_in(NAME) / STEPS_FILE
    content = file.read_bytes()
    file.write_bytes(content[:-99])
    xr.testing.assert_equal(measure(profile, "tokens")[NAME], before)
    assert "dropped a half-written last line" in capsys.readouterr().err
    other = b"B" if content[-999:-998] == b"A" else b"A"
    file.write_bytes(content[:-999] + other + content[-998:])
    with pytest.raises(InputError, match=r"steps\.jsonl is damaged: delete it"):
        measure(profile, "tokens")


@pytest.fixture
def kept(whole, profile):
    """The file that the repository keeps of the model."""
    path = paths.DATA / "mine" / f"{NAME}.nc"
    save_measured(path, whole.drop_vars("shape"))
    return path


def test_what_the_repository_keeps_is_used_where_nothing_was_measured_here(
    whole, profile, kept
):
    assert profile.stored
    assert set(measure(profile)[NAME]) == set(whole) - {"shape"}
    # What is measured here comes before it.
    assert "shape" in measure(profile, "activations", stored=False)[NAME]
    assert not profile.stored
    found = measure(profile, "activations")[NAME]
    assert set(found) == set(variables.VARIABLES["activations"])


def test_what_the_repository_keeps_of_other_settings_or_damaged_is_refused(
    whole, profile, kept
):
    words = r"other settings than mine has now: python -m lib reproduce .* --fresh"
    with pytest.raises(InputError, match=words):
        measure(profile.model_copy(update={"seed": 1}))
    words = r"cannot write .*tiny-llama\.nc"
    with pytest.raises(InputError, match=words):
        save_measured(kept / "m.nc", whole)
    kept.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"data/mine/tiny-llama\.nc is damaged"):
        measure(profile)


def test_another_example_is_drawn_and_nothing_else_is_measured_again(profile, steps):
    def drawing(example):
        attention = profile.attention.model_copy(update={"example": example})
        return profile.model_copy(update={"attention": attention})

    words = "example 'x' is none of the problems of embedded"
    with pytest.raises(InputError, match=words):
        measure(drawing("x"), "tokens")
    measure(profile, "attention")
    received = []
    for example in ("embedded/draw/160", "embedded/draw/159", None):
        after = measure(drawing(example), "tokens", "attention")[NAME]
        # Of a profile that names none it is the sample's first.
        assert after.example == (example or after.problem[0])
        assert (after.example in after.problem) == (example is None)
        assert not any(after.received.equals(before) for before in received)
        received.append(after.received)
    attention = [step for step in steps() if step.measure == "attention"]
    assert [step.deep for step in attention] == [False, True]


def test_what_is_stored_is_read_without_the_libraries_that_run_a_network():
    code = """if True:
        import sys
        import lib.measurement.head_curves, lib.reproduce
        from lib.claims.judging import gather
        from lib.profiles import load_profile
        assert gather(load_profile("families"))
        assert not {"torch", "transformers"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, check=True)


def test_the_folder_of_a_model_has_a_name_that_every_system_takes():
    demo = load_profile("demo")
    assert demo.measured_in("my model (2)").name == "my-model-2-"
    assert demo.kept_measurements("my model (2)").name == "my-model-2-.nc"
