"""Measurements that are stored with the repository: what they give, what they lack, and when they are refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from lib import paths
from lib.errors import InputError
from lib.figures.comparing import TOLERANCE, largest_difference
from lib.measurement.curves import Curves, curves_dataset
from lib.measurement.measured import SEEDS
from lib.measurement.run import measure_activations, measure_attention, measure_controls, panel_curves
from lib.measurement.stored import stored, write_stored
from lib.measurement.tables import causes_table, heads_table
from lib.models.names import Card, resolve
from lib.profiles import Panel, check, load_profile

FAMILIES = load_profile("families")
CARD = Card("tiny", "tiny", "abc", 2, 3, 512, "float32", "Q4_K_M, dequantised")
PANEL = Panel(model="tiny", layer=1, head=2)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A profile of one model with a folder for what is stored of it."""
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    (tmp_path / "data" / "mine").mkdir(parents=True)
    (tmp_path / "tiny").mkdir()
    content = FAMILIES.model_dump() | {"name": "mine"}
    content["attention"] |= {"models": [str(tmp_path / "tiny")], "panels": {}}
    return type(FAMILIES).model_validate(content)


@pytest.mark.parametrize("name", ["gemma-3-270m"])
def test_stored_measurements_give_the_numbers_behind_the_figures(name):
    one = {name: measure_attention(FAMILIES)[name]}
    for table, drawn in ((heads_table, "lambda_by_head"), (causes_table, None)):
        found = table(one)
        assert len(found)
        if drawn:
            written = pd.read_csv(FAMILIES.figures / f"{drawn}.csv")
            there = written[written.model == name].reset_index(drop=True)
            assert largest_difference(there, found)[0] < TOLERANCE


def test_every_part_of_every_model_is_stored_with_its_weights_and_no_tokens():
    check(FAMILIES)  # without weights, wheels or MATH-500
    names = [resolve(spec).name for spec in FAMILIES.attention.models]
    activations, controls = measure_activations(FAMILIES), measure_controls(FAMILIES)
    assert list(activations) == list(controls) == names
    assert all("dequantised" in found.model.label for found in activations.values())
    assert all(len(found.attention) == len(found.activations) == len(SEEDS) for found in controls.values())
    n = {len(one.first.problem) for found in controls.values() for one in found.attention}
    assert n == {FAMILIES.attention.limit}
    for figure in ("fig09", "fig10", "fig11", "fig13", "fig18"):
        for head in panel_curves(FAMILIES, figure, ["none", "mless"]):
            assert set(head.tokens) == {"received", "part"}
            assert np.isfinite(head.whole("mless")[:-1]).all() and len(head.original("none")) > 10


def test_curves_come_back_with_the_parts_of_their_prompts(tiny):
    parts = {"none": ["instruction"] * 2 + ["problem"] * 3, "mless": ["inserted"] * 3 + ["problem"] * 4}
    padded = np.array([parts["none"] + [""] * 2, parts["mless"]])
    arrays = {"part": (("condition", "token"), padded), "received": (("condition", "token"), np.full((2, 7), 1 / 3))}
    joined = xr.Dataset(arrays, {"condition": list(parts)})
    content = tiny.model_dump()
    content["attention"]["panels"]["fig13"] = [PANEL.model_dump() | {"model": tiny.attention.models[0]}]
    profile = type(tiny).model_validate(content)
    path = paths.DATA / "mine" / "tiny.nc"
    write_stored(path, profile, {"curves/example": (CARD, curves_dataset([Curves(PANEL, CARD, joined)]))})
    (head,) = panel_curves(profile, "fig13", list(parts))
    assert head.model == CARD and head.drawn("mless")[-1] == slice(0, 3)
    for condition, part in parts.items():
        found = head.of(condition)
        assert found.part.values.tolist() == part
        np.testing.assert_allclose(found.received, 1 / 3, rtol=2.5e-4)


def test_numbers_are_exact_to_a_thousandth_and_other_settings_are_refused(tiny):
    values = np.random.default_rng(0).lognormal(0, 5, 1000)
    write_stored(
        paths.DATA / "mine" / "tiny.nc", tiny, {"attention/first": (CARD, xr.Dataset({"lambda": ("problem", values)}))}
    )
    found = stored(tiny)["tiny"].group("attention/first")
    np.testing.assert_allclose(found["lambda"], values, rtol=2.5e-4)
    other = tiny.model_copy(update={"seed": 1})
    with pytest.raises(InputError, match=r"other settings than mine has now: python -m lib reproduce .* --fresh"):
        stored(other)
    (tiny.results / "measurements").mkdir(parents=True)
    assert stored(tiny) == {}  # it is measured anew


def test_a_group_is_read_once_and_again_when_its_file_has_changed(tiny, monkeypatch):
    path = paths.DATA / "mine" / "tiny.nc"
    load, asked = xr.load_dataset, []

    def counted(*args, group, **options):
        asked.append(group)
        return load(*args, group=group, **options)

    monkeypatch.setattr(xr, "load_dataset", counted)
    for value in (1.0, 2.0):
        write_stored(path, tiny, {"attention/first": (CARD, xr.Dataset({"lambda": ("problem", [value])}))})
        for _ in range(2):
            assert stored(tiny)["tiny"].group("attention/first")["lambda"] == value
    assert asked == ["/", "attention/first"] * 2


def test_what_is_stored_is_drawn_without_the_libraries_that_run_a_network():
    code = """
import sys
import lib.claims.asked, lib.figures.activations, lib.figures.dilution, lib.measurement.findings, lib.reproduce
from lib.measurement.run import measure_controls, panel_curves
from lib.profiles import load_profile
profile = load_profile("families")
assert panel_curves(profile, "fig13", ["none"]) and lib.claims.asked.completions_for(profile, None)[0]
print(sorted({"torch", "transformers"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_a_damaged_file_is_named(tiny):
    (paths.DATA / "mine" / "tiny.nc").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"tiny\.nc cannot be read"):
        stored(tiny)
