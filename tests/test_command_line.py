"""The commands as a user types them: real runs, in a temporary copy of the repository."""

import json
import shutil

import pandas as pd
import pytest
import yaml
from commands import copy_repository

from lib import paths, progress
from lib.__main__ import main
from lib.measurement.networks import free

ROOT = paths.ROOT


@pytest.fixture(scope="module")
def copy(tmp_path_factory, tiny_llama):
    """A copy of the repository with a profile `tiny` whose completions take seconds."""
    folder = copy_repository(tmp_path_factory.mktemp("copy"))
    profile = yaml.safe_load((paths.PROFILES / "demo.yaml").read_text())
    del profile["attention"]["panels"]
    profile["name"] = "tiny"
    profile["accuracy"] |= {
        "models": [str(tiny_llama)],
        "limit": 6,
        "max_new_tokens": 100,
        "batch_size": 1,
    }
    profile["accuracy"] |= dict.fromkeys(
        ("fillers", "sampling", "interventions", "arm_map")
    )
    profile["attention"] |= {"models": [str(tiny_llama)], "limit": 3, "map_problems": 2}
    (folder / "data" / "profiles" / "tiny.yaml").write_text(yaml.safe_dump(profile))
    return folder


@pytest.fixture
def typed(copy, monkeypatch, capsys):
    """Run a command in the copy, within this process; it must succeed, and what it
    wrote is returned.
    """
    for name in ("ROOT", "NOTEBOOKS", "DATA", "PROFILES", "FIGURES", "RESULTS"):
        monkeypatch.setattr(paths, name, copy / getattr(paths, name).relative_to(ROOT))
    monkeypatch.setenv("PYTHONPATH", str(copy))
    monkeypatch.setattr(progress, "shown", True)
    monkeypatch.chdir(copy)

    def run(*arguments):
        code, written = main(list(arguments)), capsys.readouterr()
        assert code == 0, written.err
        return written

    yield run
    free()


def keys(path):
    return [
        json.loads(line)["key"]
        for line in path.read_text().splitlines()
        if line.endswith("}")
    ]


def test_another_model_is_measured_over_the_problems_given_and_what_is_committed_stays(
    copy, typed, tiny_llama
):
    shutil.copytree(ROOT / "figures" / "demo", copy / "figures" / "demo")
    before = {
        path: path.read_bytes()
        for path in (copy / "figures").rglob("*")
        if path.is_file()
    }
    done = typed(
        "reproduce", "--only", "01,02,04", "--model", str(tiny_llama), "--limit", "4"
    )
    (name,) = {path.name for path in (copy / "results").iterdir()} - {"tiny"}
    assert (
        name.startswith("demo-")
        and f"profile {name}: results/{name}, figures/{name}" in done.err
    )
    assert {path: path.read_bytes() for path in before} == before
    for figure in (
        "fig13",
        "fig18",
        "fig09",
        "fig11",
        "lambda_by_head",
        "lambda_map",
        "causes",
        "fig04",
        "fig07",
    ):
        table = pd.read_csv(copy / "figures" / name / f"{figure}.csv")
        assert (
            set(table.model) == {tiny_llama.name}
            and table.get("n", pd.Series(4)).max() == 4
        )


def test_a_profile_is_run_judged_and_reported_with_nothing_but_the_main_run(
    copy, typed
):
    done, results = (
        typed("reproduce", "--profile", "tiny", "--only", "03"),
        copy / "results" / "tiny",
    )
    assert len(keys(results / "completions.jsonl")) == 18
    assert (
        "1 new figure was drawn" in done.out
        and (copy / "figures" / "tiny" / "fig10.csv").exists()
    )
    done, rows = (
        typed("claims", "--profile", "tiny"),
        json.loads((results / "claims.json").read_text()),
    )
    numbers = {row["id"]: row["n"] for row in rows}
    assert (
        numbers["dilution"] == 3
        and numbers["accuracy-mless"] == 6
        and not numbers["length"]
    )
    assert (
        all(name in done.out for name in numbers)
        and "activations in 3 layers: 100%" in done.err
    )
    done = typed("report", "--profile", "tiny")
    assert (
        done.out.strip().endswith("results/tiny/report.html")
        and (results / "report.html").is_file()
    )


def test_grade_prints_a_line_per_response_and_reads_fields_by_their_paths(
    tmp_path, capsys
):
    solved = ("1/2", r"so \boxed{0.5}"), (3, "three")
    rows = [
        {"doc": {"answer": gold}, "resps": [[said, "other"]]} for gold, said in solved
    ]  # lm-evaluation-harness's
    (tmp_path / "samples.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert (
        main(
            [
                "grade",
                str(tmp_path / "samples.jsonl"),
                "--answer",
                "doc.answer",
                "--response",
                "resps.0.0",
            ]
        )
        == 0
    )
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.out.splitlines()]
    assert [(row["correct"], row["extracted"]) for row in found] == [
        (True, "0.5"),
        (False, None),
    ]
    assert "50 [1, 99] % correct, n = 2" in captured.err


@pytest.fixture
def evaluate(tiny_llama, tmp_path, capsys):
    """Run `evaluate`; return its exit code, what it wrote, and the summary."""

    def run(options):
        code = main(
            f"evaluate --model {tiny_llama} --format plain --out {tmp_path} {options}".split()
        )
        return (
            code,
            capsys.readouterr(),
            json.loads((tmp_path / "summary.json").read_text()),
        )

    return run


def test_evaluate_takes_shards_lengths_places_and_samples_and_keeps_to_its_settings(
    evaluate, tmp_path
):
    options = (
        "--limit 3 --conditions none,mless:5,question@end --max-new-tokens 4"
        " --temperature 1 --samples 2"
    )
    assert [evaluate(f"{options} --shard {shard}")[0] for shard in ("1/2", "2/2")] == [
        0,
        0,
    ]
    code, written, summary = evaluate(options)
    parts = [keys(tmp_path / f"completions-{i}-of-2.jsonl") for i in (1, 2)]
    assert [len(part) for part in parts] == [9, 9] and not set(parts[0]) & set(parts[1])
    assert code == 0 and keys(tmp_path / "completions.jsonl") == []
    assert [line.split()[0] for line in written.out.splitlines()] == [
        "none",
        "mless:5",
        "question@end",
        "files:",
    ]
    assert [(row["n"], row["samples"]) for row in summary] == [(3, 2)] * 3
    settings = json.loads((tmp_path / "run.json").read_text())["settings"]
    assert settings["problems"] == "embedded set" and settings["problems_sha256"]
    code, written, _ = evaluate(f"{options} --max-new-tokens 5")
    assert code == 2 and "max_new_tokens" in written.err.splitlines()[-1]


def test_a_context_too_short_is_counted_and_said(evaluate):
    code, written, summary = evaluate(
        "--limit 2 --max-new-tokens 480 --conditions none,mless"
    )
    assert code == 0 and summary[1]["truncated"] == 100
    assert (
        "context too short, counted as truncated: " in written.err
        and "(mless)" in written.err
    )
