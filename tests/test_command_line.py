"""The commands as a user types them: bad input and real runs, in a temporary copy of the repository."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import yaml
from commands import ROOT, commands_in, copy_repository

from lib import paths
from lib.__main__ import main
from lib.claims.words import verdict_text

LINE = ("evaluate", "--format", "plain", "--out", "o", "--model")


@pytest.fixture(scope="module")
def copy(tmp_path_factory, tiny_llama):
    """A copy of the repository with a profile `tiny` whose completions take seconds."""
    folder = copy_repository(tmp_path_factory.mktemp("copy"))
    profile = yaml.safe_load((paths.PROFILES / "demo.yaml").read_text())
    del profile["attention"]["panels"]
    profile["name"] = "tiny"
    profile["accuracy"] |= {"models": [str(tiny_llama)], "limit": 6, "max_new_tokens": 100, "batch_size": 1}
    profile["accuracy"] |= dict.fromkeys(("fillers", "sampling", "interventions", "arm_map"))
    profile["attention"] |= {"models": [str(tiny_llama)], "limit": 3, "map_problems": 2}
    (folder / "data" / "profiles" / "tiny.yaml").write_text(yaml.safe_dump(profile))
    return folder


@pytest.fixture
def typed(copy):
    """Run a command in the copy; it must succeed."""
    with commands_in(copy) as run:

        def succeeds(*arguments):
            done = run(*arguments)
            assert done.code == 0, done.err
            return done

        yield succeeds


def keys(path):
    return [json.loads(line)["key"] for line in path.read_text().splitlines() if line.endswith("}")]


def digests(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_an_override_leaves_what_is_committed_as_it_is(copy, typed, tiny_llama):
    shutil.copytree(ROOT / "figures" / "demo", copy / "figures" / "demo")
    (copy / "results" / "demo").mkdir(parents=True)
    (copy / "results" / "demo" / "claims.json").write_text("[]")
    before, folders = digests(copy / "figures") | digests(copy / "results"), {"demo", *os.listdir(copy / "results")}
    done = typed("reproduce", "--only", "01", "--model", str(tiny_llama), "--limit", "3")
    (name,) = {path.name for path in (copy / "results").iterdir()} - folders
    assert name.startswith("demo-") and name in done.out
    assert f"profile {name}: results/{name}, figures/{name}" in done.err
    assert {path: path.read_bytes() for path in before} == before
    assert (copy / "figures" / name / "fig13.png").exists()


def test_a_head_the_model_lacks_is_refused_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    profile = (paths.PROFILES / "demo.yaml").read_text().replace("head: 9", "head: 10")
    (tmp_path / "lacking.yaml").write_text(profile.replace("name: demo", "name: lacking"))
    assert main(["reproduce", "--profile", str(tmp_path / "lacking.yaml")]) == 2
    assert "error: fig11: demo has heads 1 to 9, not 10" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_store_with_other_settings_is_refused(tiny_checkpoint, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*LINE, str(tiny_checkpoint), "--limit", "1", "--max-new-tokens"]
    assert main([*arguments, "2"]) == 0
    assert main([*arguments, "3"]) == 2
    assert "max_new_tokens" in capsys.readouterr().err.splitlines()[-1]


@pytest.fixture(scope="module")
def killed(copy):
    """A run of the profile's accuracy, as a process of its own, that was killed in the middle: its keys so far."""
    store, command = copy / "results" / "tiny" / "completions.jsonl", [sys.executable, "-m", "lib", "reproduce"]
    environment = os.environ | {"PYTHONPATH": str(copy), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen([*command, "--profile", "tiny", "--only", "03"], cwd=copy, env=environment)
    while process.poll() is None and not (store.exists() and keys(store)):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    return keys(store)


def test_killed_and_started_again_loses_and_repeats_nothing(copy, killed, typed):
    assert 0 < len(killed) < 18
    done = typed("reproduce", "--profile", "tiny", "--only", "03")  # whose notebook asks for the completions once more
    found = keys(copy / "results" / "tiny" / "completions.jsonl")
    assert found[: len(killed)] == killed
    assert len(found) == len(set(found)) == 18
    assert "fig10.png" in done.out and (copy / "figures" / "tiny" / "fig10.csv").exists()


def test_claims_and_report_of_a_profile_with_nothing_but_the_main_run(copy, killed, typed):
    done = typed("claims", "--profile", "tiny")
    rows = json.loads((copy / "results" / "tiny" / "claims.json").read_text())
    by_id = {row["id"]: row for row in rows}
    assert by_id["dilution"]["n"] == 3 and by_id["accuracy-mless"]["n"] == 6
    assert by_id["length"]["reason"].startswith("the profile answers no problems (fillers) under mless:70")
    assert all(f"{verdict_text(row).upper()}: {row['id']}" in done.out for row in rows)
    assert "activations in 3 layers: 100%" in done.err
    done = typed("report", "--profile", "tiny")
    assert done.out.strip().endswith("results/tiny/report.html") and (copy / "results/tiny/report.html").is_file()


def test_evaluate_writes_the_contracts_fields(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*LINE, str(tiny_checkpoint), "--limit", "2", "--max-new-tokens", "3"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "o" / "completions.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    contract = "model condition problem_id sample response finish_reason prompt_tokens completion_tokens"
    assert set(f"{contract} extracted correct correct_authors".split()) <= set(lines[0])
    run = json.loads((tmp_path / "o" / "run.json").read_text())
    assert run["settings"]["problems"] == "embedded set" and run["settings"]["problems_sha256"]
    assert json.loads((tmp_path / "o" / "summary.json").read_text())


@pytest.mark.parametrize("command", ["", "reproduce", "evaluate", "grade", "claims", "report"])
def test_help_exits_with_0(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert "usage: python -m lib" in capsys.readouterr().out


def test_grade_prints_a_line_per_response(tmp_path, capsys):
    rows = [{"answer": "1/2", "response": r"so \boxed{0.5}"}, {"answer": "3", "response": "three"}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert main(["grade", str(tmp_path / "a.jsonl")]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["correct"] for line in captured.out.splitlines()] == [True, False]
    assert "50 [1, 99] % correct, n = 2" in captured.err


def test_grade_reads_fields_of_other_programs_by_their_paths(tmp_path, capsys):
    row = {"doc": {"answer": 7}, "resps": [[r"\boxed{7}", "other"]]}  # as lm-evaluation-harness writes it
    (tmp_path / "samples.jsonl").write_text(json.dumps(row))
    assert main(["grade", str(tmp_path / "samples.jsonl"), "--answer", "doc.answer", "--response", "resps.0.0"]) == 0
    assert json.loads(capsys.readouterr().out)["extracted"] == "7"


def test_unwritable_results_are_one_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "results").write_text("in the way")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    assert main(["reproduce", "--only", "01", "--limit", "2"]) == 2
    assert "error: cannot write results to" in capsys.readouterr().err


def test_shards_lengths_places_and_samples_through_the_command(tiny_checkpoint, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*LINE, str(tiny_checkpoint), "--limit", "3", "--max-new-tokens", "4", "--temperature", "1"]
    arguments += ["--conditions", "none,mless:5,question@end", "--top-p", "0.9", "--samples", "2"]
    for shard in ("1/2", "2/2"):
        assert main([*arguments, "--shard", shard]) == 0
    capsys.readouterr()
    assert main(arguments) == 0
    out = capsys.readouterr().out.splitlines()
    parts = [keys(tmp_path / "o" / f"completions-{i}-of-2.jsonl") for i in (1, 2)]
    assert [len(part) for part in parts] == [9, 9] and not set(parts[0]) & set(parts[1])
    assert keys(tmp_path / "o" / "completions.jsonl") == []
    assert [line.split()[0] for line in out] == ["none", "mless:5", "question@end", "files:"]
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert [(row["n"], row["samples"]) for row in summary] == [(3, 2)] * 3


def test_a_context_too_short_is_counted_and_said(tiny_checkpoint, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*LINE, str(tiny_checkpoint), "--limit", "2", "--max-new-tokens", "480"]
    assert main([*arguments, "--conditions", "none,mless"]) == 0
    error = capsys.readouterr().err
    assert "context too short, counted as truncated: " in error and "(mless)" in error
    rows = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert rows[1]["truncated"] == 100
