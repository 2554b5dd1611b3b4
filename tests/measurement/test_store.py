"""A model's file: what it holds, when it is used again, and what is said when it cannot
be.
"""

import itertools
import json
import subprocess
import sys
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest
import xarray as xr
from transformers import LlamaForCausalLM

from lib import paths, progress
from lib.errors import InputError
from lib.measurement import networks, plan
from lib.measurement.run import measure
from lib.measurement.store import load_measured, save_measured
from lib.profiles import load_profile, run_profile

NAME = "tiny-llama"


def tiny(folder, **changes):
    """Return a profile of two problems on a tiny model, two of whose three layers are
    the first.
    """
    profile = run_profile("demo", model=str(folder), limit=2, name="mine")
    attention = profile.attention.model_copy(
        update={"layers": 2, "map_problems": 1, **changes}
    )
    return profile.model_copy(update={"attention": attention})


@pytest.fixture(scope="module")
def whole(tiny_llama, tmp_path_factory):
    """Everything that is measured on it: its profile, Dataset and file, and what a
    terminal shows.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results"))
        profile = tiny(tiny_llama)
        return (
            profile,
            measure(profile)[NAME],
            (profile.results / f"{NAME}.nc").read_bytes(),
        )


@pytest.fixture
def profile(tiny_checkpoint, tmp_path, monkeypatch):
    """The same of a copy, with folders of its own."""
    profile = tiny(tiny_checkpoint)
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    profile.results.mkdir(parents=True)
    return profile


def test_a_file_has_every_variable_of_every_network(whole, tmp_path):
    _, found, content = whole
    (tmp_path / "m.nc").write_bytes(content)
    opened = xr.open_dataset(tmp_path / "m.nc")
    for variables in plan.VARIABLES.values():
        for name, (dims, meaning) in variables.items():
            assert (
                set(opened[name].dims) == set(dims.split())
                and opened[name].attrs["long_name"] == meaning
            )
    one_key_head = [name for name in plan.NETWORKS if name != plan.OTHER_KEYS]
    assert found.network.values.tolist() == one_key_head and found.label.startswith(
        f"{NAME} @ "
    )
    lam = found["lambda"].sel(condition="mless")
    counts = lam.notnull().sum("problem").isel(head=0)
    assert counts.sel(network="trained").values.tolist() == [2, 2, 1]
    assert (
        counts.sel(network=["untrained 1", "uniform"]).values.tolist()
        == [[2, 2, 0]] * 2
    )
    first = lam.sel(layer=1)
    drawn = [first.sel(network=name).values for name in plan.UNTRAINED]
    for one, other in itertools.combinations(drawn, 2):
        assert not np.array_equal(one, other)
    assert found.dispersion.sel(network="uniform").isnull().all()
    assert found.received.notnull().any(["condition", "token"]).all()  # of all layers


def test_what_is_there_is_not_measured_again(whole, profile, monkeypatch, capsys):
    steps, pieces = [], networks.run_step
    monkeypatch.setattr(
        networks, "run_step", lambda *given: steps.append(given[2]) or pieces(*given)
    )
    (tokens,) = measure(profile, "tokens").values()
    assert set(tokens) == set(plan.VARIABLES["tokens"])
    monkeypatch.setattr(progress, "shown", True)
    (found,) = measure(profile, "tokens", "activations").values()
    assert (
        "activations in 2 layers: 100%" in (shown := capsys.readouterr().err)
        and "2/2" in shown
    )
    parts = [("tokens", False), ("activations", False), ("activations", True)]
    assert [(step.measure, step.deep) for step in steps] == parts and {
        step.network for step in steps
    } == {"trained"}
    assert set(found) == {
        *tokens,
        *plan.VARIABLES["activations"],
    } and found.measures.equals(whole[1].measures[:1])
    monkeypatch.setattr(networks, "load", None)
    xr.testing.assert_equal(measure(profile, "activations")[NAME], found)


def test_an_interruption_loses_one_condition(profile, monkeypatch):
    observe = Mock(
        wraps=networks.observe,
        side_effect=[DEFAULT, DEFAULT, KeyboardInterrupt, *[DEFAULT] * 9],
    )
    monkeypatch.setattr(networks, "observe", observe)
    with pytest.raises(KeyboardInterrupt):
        measure(profile, "attention")
    assert (
        load_measured(profile, *profile.attention.models).done
        == '["trained: attention: mless"]'
    )
    measure(profile, "attention")
    assert (
        observe.call_count == 3 + 3 + 4
    )  # none again, the two that were missing, then the deeper layer


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
    save_measured(profile.results / f"{NAME}.nc", other)
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
    (profile.results / f"{NAME}.nc").write_bytes(whole[2])
    content, (spec,) = profile.model_dump(), profile.attention.models
    for name, value in changed.items():
        content[name] = content[name] | value if isinstance(value, dict) else value
    content["attention"]["panels"] = {}
    if not changed:
        monkeypatch.setitem(plan.VERSIONS, "causes", 2)
    found = load_measured(type(profile).model_validate(content), spec)
    assert {step.split(": ")[1] for step in json.loads(found.done)} == set(
        plan.VERSIONS
    ) - lost
    assert {
        measure
        for measure, names in plan.VARIABLES.items()
        if not names.keys() & found.keys()
    } == lost


@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: c[:-9], lambda c: c[:999] + b"?" + c[1000:]]
)
def test_a_damaged_file_counts_for_nothing_and_is_named(whole, profile, damage, capsys):
    file = profile.results / f"{NAME}.nc"
    file.write_bytes(damage(whole[2]))
    found = load_measured(profile, *profile.attention.models)
    assert (
        not found
        and found.done == "[]"
        and capsys.readouterr().err == f"{file} is damaged: it is measured again\n"
    )


def test_what_the_repository_keeps_is_used_where_nothing_was_measured_here(
    whole, profile
):
    path = paths.DATA / "mine" / f"{NAME}.nc"
    save_measured(path, whole[1].drop_vars("text"))
    assert profile.stored and set(measure(profile)[NAME]) == set(whole[1]) - {"text"}
    with pytest.raises(
        InputError,
        match=r"other settings than mine has now: python -m lib reproduce .* --fresh",
    ):
        measure(profile.model_copy(update={"seed": 1}))
    assert not load_measured(profile, *profile.attention.models, stored=False)
    with pytest.raises(
        InputError, match=r"cannot keep measurements in .*tiny-llama\.nc"
    ):
        save_measured(path / "m.nc", whole[1])
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"data/mine/tiny-llama\.nc cannot be read"):
        measure(profile)
    (profile.results / f"{NAME}.nc").write_bytes(
        whole[2]
    )  # what was measured here comes before it
    assert not profile.stored and "text" in load_measured(
        profile, *profile.attention.models
    )


def test_another_example_is_drawn_and_nothing_else_is_measured_again(whole, profile):
    def drawing(example):
        return profile.model_copy(
            update={
                "attention": profile.attention.model_copy(update={"example": example})
            }
        )

    with pytest.raises(
        InputError, match="example 'x' is none of the problems of embedded"
    ):
        measure(drawing("x"), "tokens")
    (profile.results / f"{NAME}.nc").write_bytes(whole[2])
    before = whole[1]
    for wanted in ("embedded/draw/160", "embedded/draw/159", None):
        found = measure(drawing(wanted), "tokens", "attention")[NAME]
        assert found.example == (
            wanted or found.problem[0]
        )  # of a profile that names none it is the sample's first
        assert (found.example in found.problem) == (not wanted)
        assert found["lambda"].equals(before["lambda"]) and not found.received.equals(
            before.received
        )
        before = found


def test_what_is_stored_is_read_without_the_libraries_that_run_a_network():
    code = """if True:
        import sys
        import lib.measurement.measured_tables, lib.reproduce
        from lib.claims.evidence import gather
        from lib.profiles import load_profile
        assert gather(load_profile("families"))
        assert not {"torch", "transformers"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, check=True)


def test_the_file_of_a_model_has_a_name_that_every_system_takes(tmp_path):
    assert (
        load_profile("demo").measured_in(tmp_path, "my model (2)")
        == tmp_path / "my-model-2-.nc"
    )
