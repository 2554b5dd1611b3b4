"""What data/make_families.py keeps: measurements rounded and without texts; of scores whole problems, in one order."""

import gzip
import importlib.util
import json

import numpy as np
import pytest
import xarray as xr

from lib import paths
from lib.measurement import store

SPEC = importlib.util.spec_from_file_location("make_families", paths.DATA / "make_families.py")


@pytest.fixture
def script(tmp_path, monkeypatch):
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


def scores(counts, target="solution"):
    """Return rows of a run that scored each condition on so many problems."""
    fixed = {"model": "m", "revision": "r", "target": target, "level": 1, "tokens": 3, "nats": -1.5, "dtype": "float32"}
    return [
        fixed | {"key": f"{target}-{name}-{i}", "condition": name, "problem_id": f"p{i:02d}", "processor": "CPU"}
        for name, count in counts.items()
        for i in range(count)
    ]


def kept(script, *stores):
    script.write_scores(list(stores))
    content = (script.FOLDER / "likelihood" / "m.jsonl.gz").read_bytes()
    return content, [json.loads(line) for line in gzip.decompress(content).splitlines()]


def test_scores_of_problems_that_every_condition_reached_are_kept_and_the_order_of_a_run_is_not(
    script, tmp_path, capsys
):
    rows = scores({"none": 30, "mless": 25, "bare": 3}) + scores({"none": 22}, "answer")
    first, second = tmp_path / "first", tmp_path / "second.jsonl"
    first.mkdir()
    lines = [json.dumps(row) + "\n" for row in rows]
    (first / "scores.jsonl").write_text("".join(lines) + '{"key": "half a li')
    second.write_text("".join(lines[::-1]))
    content, found = kept(script, first)
    assert {(row["target"], row["condition"], row["problem_id"]) for row in found} == {
        *(("solution", name, f"p{i:02d}") for name in ("none", "mless") for i in range(25)),
        *(("answer", "none", f"p{i:02d}") for i in range(22)),
    }
    assert "processor" not in found[0] and found[0]["nats"] == -1.5
    assert "m: solutions of 25 problems under 2 conditions, 30 begun" in capsys.readouterr().out
    assert kept(script, second, first)[0] == content


def test_measurements_are_rounded_and_keep_no_texts(script, tmp_path, monkeypatch):
    values = np.float32([0.12345678, -3e-7, 0, np.nan, 98765.43])
    arrays = {"level": ("token", values), "counts": ("token", values), "text": ("token", list("abcde"))}
    arrays["part"] = "token", ["problem"] * 5
    monkeypatch.setattr(script, "measure", lambda profile, stored: {"m": xr.Dataset(arrays, attrs={"model": "m"})})
    script.write_measurements(None)
    found = store.read(tmp_path / "m.nc")
    assert set(found) == {"level", "counts", "part"} and found.model == "m" and found.level.dtype == "float32"
    np.testing.assert_array_equal(found.counts, values)
    np.testing.assert_allclose(found.level, values, rtol=2.5e-4)
    mantissas = np.frexp(found.level.values[:3])[0] * 2**12
    assert found.level[0] != values[0] and (mantissas == mantissas.round()).all()
