"""The commands as a user types them, in real runs in a copy of the repository."""

import json
import shutil

import pandas as pd
import pytest
from commands import copy_repository
from hand_written import keep

from lib import progress
from reproduction import paths
from reproduction.__main__ import main
from reproduction.measurement.networks import release_cached

ROOT = paths.ROOT


PROFILE = """
name: tiny
description: all of it takes seconds
attention: {{models: [{model}], limit: 3, map_problems: 2}}
accuracy: {{models: [{model}], limit: 6, max_new_tokens: 9}}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory, tiny_llama):
    """A copy of the repository with the profile `tiny`."""
    folder = copy_repository(tmp_path_factory.mktemp("copy"))
    profile = folder / "data" / "profiles" / "tiny.yaml"
    profile.write_text(PROFILE.format(model=tiny_llama))
    return folder


@pytest.fixture
def typed(copy, monkeypatch, capsys):
    """A function that runs a command in the copy, within this process. It must succeed;
    its output is returned.
    """
    for name in ("ROOT", "NOTEBOOKS", "DATA", "PROFILES", "FIGURES", "RESULTS"):
        monkeypatch.setattr(paths, name, copy / getattr(paths, name).relative_to(ROOT))
    monkeypatch.setenv("PYTHONPATH", str(copy))
    monkeypatch.setattr(progress, "shown", True)
    monkeypatch.chdir(copy)

    def run(*arguments):
        code = main(list(arguments))
        written = capsys.readouterr()
        assert code == 0, written.err
        return written

    yield run
    release_cached()


def keys(path):
    lines = path.read_text().splitlines()
    return [json.loads(line)["key"] for line in lines if line.endswith("}")]


def test_reproduce_measures_another_model_and_leaves_committed_figures_unchanged(
    copy, typed, tiny_llama
):
    shutil.copytree(ROOT / "figures" / "demo", copy / "figures" / "demo")
    committed = list((copy / "figures" / "demo").iterdir())
    before = [path.read_bytes() for path in committed]
    options = ["--only", "01,02,04", "--model", str(tiny_llama), "--limit", "4"]
    done = typed("reproduce", *options)
    (name,) = {path.name for path in (copy / "results").iterdir()} - {"tiny"}
    assert name.startswith("demo-")
    assert f"profile {name}: results/{name}, figures/{name}" in done.err
    assert [path.read_bytes() for path in committed] == before
    drawn = "fig13 fig18 fig09 fig11 lambda_map mass_by_layer fig04 fig07"
    for figure in drawn.split():
        table = pd.read_csv(copy / "figures" / name / f"{figure}.csv")
        assert set(table.model) == {tiny_llama.name}
        assert table.get("n", pd.Series(4)).max() == 4


def test_a_profile_with_only_the_main_run_is_judged(copy, typed):
    results = copy / "results" / "tiny"
    done = typed("reproduce", "--profile", "tiny", "--only", "03")
    assert len(keys(results / "completions.jsonl")) == 18
    assert (copy / "figures" / "tiny" / "fig10.csv").exists()

    (results / "claims.json").write_text("[]")  # of an older run
    done = typed("reproduce", "--profile", "tiny", "--only", "06")
    rows = json.loads((results / "claims.json").read_text())
    numbers = {row["id"]: row["n"] for row in rows}
    counted = {"dilution": 3, "accuracy-mless": 6, "length": 0}
    assert counted.items() <= numbers.items()
    assert "activations in 3 layers: 100%" in done.err
    assert "The paper's literal claims: " in done.out


def test_grade_prints_a_line_per_response_and_reads_fields_by_their_paths(
    tmp_path, capsys
):
    written = {"1/2": r"so \boxed{0.5}", 3: "three", float("nan"): r"\boxed{3}"}
    file = tmp_path / "samples.jsonl"
    # The format of lm-evaluation-harness.
    rows = [
        {"doc": {"answer": answer}, "resps": [[response, "other"]]}
        for answer, response in written.items()
    ]
    keep(file, rows)
    fields = ["--answer", "doc.answer", "--response", "resps.0.0"]
    assert main(["grade", str(file), *fields]) == 0

    captured = capsys.readouterr()
    grades = [json.loads(line) for line in captured.out.splitlines()]
    assert [grade["correct"] for grade in grades] == [True, False, False]
    assert [grade["extracted"] for grade in grades] == ["0.5", None, "3"]
    assert captured.err.endswith("% correct, n = 3, 1 no-box, 1 unreadable-gold\n")
