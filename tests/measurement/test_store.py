"""A model's file: what it holds, when it is used again, and what is said when it cannot be."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

from lib import paths, progress
from lib.errors import InputError
from lib.measurement import networks, store
from lib.measurement.run import measure
from lib.measurement.store import every_layer, first_layers, joined, load, save
from lib.models.names import resolve
from lib.profiles import check, load_profile, override

FAMILIES = load_profile("families")
HEADS = store.HEADS.split()


def piece(value, network="trained", condition="mless", problems=("a", "b"), layers=(1, 2)):
    """Return lambda of one head, the same everywhere."""
    coords = {"network": [network], "condition": [condition], "problem": list(problems), "layer": list(layers)}
    shape = [*map(len, coords.values()), 1]
    return xr.Dataset({"lambda": (HEADS, np.full(shape, value, "float32"))}, coords | {"head": [1]})


@pytest.fixture
def profile(tiny_checkpoint, tmp_path, monkeypatch):
    """Two problems on a tiny model, two of whose layers are the first, with folders of their own."""
    for name in ("DATA", "RESULTS"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())
    profile = override(load_profile(paths.ROOT / "data/profiles/demo.yaml"), model=str(tiny_checkpoint), limit=2)
    attention = profile.attention.model_copy(update={"layers": 2, "map_problems": 1})
    return profile.model_copy(update={"attention": attention})


def test_a_piece_takes_its_place_and_what_was_not_measured_is_nan():
    whole = joined(joined(xr.Dataset(), piece(0.5, condition="random")), piece(0.7, problems="b", layers=[3]))
    whole = joined(whole, piece(0.9, network="uniform"))
    assert whole.condition.values.tolist() == ["mless", "random"] and whole.layer.values.tolist() == [1, 2, 3]
    lam = whole["lambda"].sel(network="trained", head=1)
    assert lam.sel(condition="random", problem="a").values.tolist()[:2] == [0.5, 0.5]
    np.testing.assert_allclose(lam.sel(condition="mless", problem="b"), [np.nan, np.nan, 0.7])
    again = joined(whole, piece(np.nan, network="uniform"))  # what is measured again leaves nothing of the old
    assert (
        again["lambda"].sel(network="uniform").isnull().all()
        and not whole["lambda"].sel(network="uniform").isnull().all()
    )


def test_the_first_layers_have_all_problems_and_every_layer_fewer():
    whole = joined(piece(0.5), piece(0.7, problems="b", layers=[3]))
    whole = joined(joined(whole, piece(0.6, condition="random")), piece(0.9, network="uniform", layers=[1]))
    first, every = first_layers(whole["lambda"]), every_layer(whole["lambda"])
    assert first.condition.size == 2 and first.layer.values.tolist() == [1, 2] and first.problem.size == 2
    assert every.condition.values == ["mless"] and every.problem.values == ["b"] and every.layer.size == 3
    assert first.notnull().all() and every.notnull().all() and "network" not in first.coords


def test_everything_is_measured_once_into_one_file(profile, monkeypatch, capsys):
    with progress.switched_on():
        (found,) = measure(profile).values()
    shown = capsys.readouterr().err
    assert "tiny-llama, attention under mless in 2 layers: 100%" in shown and "2/2" in shown
    (file,) = profile.results.iterdir()
    assert file.name == "tiny-llama.nc" and found.network.values.tolist() == store.NETWORKS
    opened = xr.open_dataset(file)
    for variables in store.VARIABLES.values():
        for name, (dims, unit, _) in variables.items():
            assert set(opened[name].dims) == set(dims.split()) and opened[name].attrs["units"] == unit
    counts = found["lambda"].sel(condition="mless").notnull().sum("problem").isel(head=0)
    assert counts.sel(network="trained").values.tolist() == [2, 2, 1]
    assert (
        counts.sel(network="untrained 1").values.tolist() == counts.sel(network="uniform").values.tolist() == [2, 2, 0]
    )
    assert not found["lambda"].sel(network="untrained 0").equals(found["lambda"].sel(network="untrained 1"))
    assert found.dispersion.sel(network="uniform").isnull().all()
    assert found.received.notnull().any(["condition", "token"]).all() and found.label.startswith("tiny-llama @ ")
    monkeypatch.setattr(networks, "load", None)
    xr.testing.assert_equal(measure(profile)["tiny-llama"], found)


def test_a_part_that_is_asked_for_is_measured_beside_what_is_there(profile, monkeypatch):
    (tokens,) = measure(profile, "tokens").values()
    assert set(tokens) == set(store.VARIABLES["tokens"])
    steps, pieces = [], networks.pieces
    monkeypatch.setattr(networks, "pieces", lambda *given: steps.append(given[2]) or pieces(*given))
    (both,) = measure(profile, "tokens", "activations").values()
    assert [step.measure for step in steps] == ["activations", "activations"]
    assert set(both) == {*tokens, *store.VARIABLES["activations"]}


def test_an_interruption_loses_one_condition(profile, monkeypatch):
    observe, seen = networks.observe, []

    def stopping(*given, **options):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return observe(*given, **options)

    monkeypatch.setattr(networks, "observe", stopping)
    with pytest.raises(KeyboardInterrupt):
        measure(profile, "attention")
    _, done = load(profile, "tiny-llama")
    assert done == ["trained: attention: mless"]
    measure(profile, "attention")
    assert len(seen) == 3 + 3 + 4  # none again with the two that were missing, then the deeper layer
    monkeypatch.setattr(networks, "observe", observe)


def fake(profile):
    """Write a file in which each measure has one variable."""
    names = {measure: next(iter(names)) for measure, names in store.VARIABLES.items()}
    whole = store.blank(profile).assign({name: ("token", [1.0]) for name in names.values()})
    save(
        profile.measured_in(profile.results, "m"),
        whole.assign_attrs(done=json.dumps([f"trained: {m}: a" for m in names])),
    )


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({"seed": 1}, set()),
        ({"attention": {"limit": 3}}, set()),
        ({"attention": {"example": 1}}, {"attention", "causes", "activations"}),
        ({"accuracy": {"arm": {"c": 0.3}}}, {"attention", "causes", "tokens"}),
        ({"attention": {"models": ["gemma-3-270m"]}}, {"attention", "causes", "tokens", "activations"}),
    ],
)
def test_what_other_settings_decide_is_measured_again(profile, changed, kept):
    fake(profile)
    content = profile.model_dump()
    for name, value in changed.items():
        content[name] = content[name] | value if isinstance(value, dict) else value
    content["attention"]["panels"] = {}
    found, done = load(type(profile).model_validate(content), "m")
    assert {step.split(": ")[1] for step in done} == kept
    assert {measure for measure, names in store.VARIABLES.items() if names.keys() & found.keys()} == kept


def test_another_version_is_measured_again(profile, monkeypatch):
    fake(profile)
    monkeypatch.setitem(store.VERSIONS, "causes", 2)
    assert {step.split(": ")[1] for step in load(profile, "m")[1]} == {"attention", "tokens", "activations"}


def test_other_weights_are_measured_again(profile, tiny_checkpoint):
    before = measure(profile, "tokens")["tiny-llama"]
    config = json.loads((tiny_checkpoint / "config.json").read_text())
    (tiny_checkpoint / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-3}))
    after = measure(profile, "tokens", "activations")["tiny-llama"]
    assert after.revision != before.revision and not after.received.equals(before.received)


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:-9], lambda c: c[:999] + b"?" + c[1000:]])
def test_a_damaged_file_is_measured_again_and_named(profile, damage, capsys):
    measure(profile, "tokens")
    file = profile.results / "tiny-llama.nc"
    file.write_bytes(damage(file.read_bytes()))
    found = measure(profile, "tokens")["tiny-llama"]
    assert capsys.readouterr().err == f"{file} is damaged: it is measured again\n"
    assert measure(profile, "tokens")["tiny-llama"].equals(found) and not capsys.readouterr().err


def test_what_the_repository_keeps_is_rounded_and_has_no_texts(profile, capsys):
    found = measure(profile)["tiny-llama"]
    path = paths.DATA / profile.name / "tiny-llama.nc"
    save(path, found, small=True)
    (profile.results / "tiny-llama.nc").unlink()
    assert profile.stored
    small = measure(profile)["tiny-llama"]
    assert "text" not in small and "part" in small
    for name in set(small) - {"part", "counts"}:
        np.testing.assert_allclose(small[name], found[name], rtol=2.5e-4, err_msg=name)
    assert small.counts.equals(found.counts)
    other = profile.model_copy(update={"seed": 1})
    with pytest.raises(InputError, match=r"other settings than demo has now: python -m lib reproduce .* --fresh"):
        measure(other)
    measure(other, "tokens", stored=False)
    assert not other.stored and (other.results / "tiny-llama.nc").is_file()
    (profile.results / "tiny-llama.nc").unlink()
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"data/demo/tiny-llama\.nc cannot be read"):
        measure(profile)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"cannot keep measurements in .*taken"):
        save(tmp_path / "taken" / "m.nc", piece(1))


def test_an_example_beyond_the_problems_is_refused(profile):
    attention = profile.attention.model_copy(update={"example": 3})
    with pytest.raises(InputError, match="example 3 is beyond the 2 problems"):
        measure(profile.model_copy(update={"attention": attention}), "tokens")


def test_every_model_of_families_is_stored_whole():
    check(FAMILIES)  # without weights, wheels or MATH-500
    measured = measure(FAMILIES)
    assert list(measured) == [resolve(spec).name for spec in FAMILIES.attention.models] and FAMILIES.stored
    for found in measured.values():
        assert "dequantised" in found.label and "text" not in found and found.network.values.tolist() == store.NETWORKS
        lam = found["lambda"].sel(condition="mless")
        assert lam.sel(layer=[1, 2, 3]).notnull().all()
        assert (lam.sel(network="trained").notnull().sum("problem").isel(layer=slice(3, None)) == 24).all()


CODE = """
import sys
import lib.claims.asked, lib.figures.activations, lib.figures.dilution, lib.measurement.findings, lib.reproduce
from lib.measurement.heads import drawn_heads
from lib.profiles import load_profile
profile = load_profile("families")
assert drawn_heads(profile, "fig13") and len(lib.evaluation.answers(profile))
print(sorted({"torch", "transformers"} & set(sys.modules)))
"""


def test_what_is_stored_is_drawn_without_the_libraries_that_run_a_network():
    done = subprocess.run([sys.executable, "-c", CODE], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


WRITER = """
import numpy as np, sys, xarray as xr
from pathlib import Path
from lib.measurement.store import save
print("ready", flush=True)
for number in range(10**6):
    save(Path(sys.argv[1]), xr.Dataset({"even": (("condition", "token"), np.random.rand(10, 10**5))}))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_while_writing_a_file_is_whole_or_absent(tmp_path):
    for wait in (0.05, 0.4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "m.nc")], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        for path in tmp_path.glob("*.nc"):
            assert store.read(path).sizes == {"condition": 10, "token": 10**5}
