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
from report_folder import claim

from lib import paths
from lib.__main__ import main
from lib.claims.sentences import verdict_text

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


BAD = [
    ("reproduce --profile nope", "unknown profile 'nope': choose from demo, laptop, paper"),
    ("reproduce --only 77", "unknown notebook '77': choose from 01_attention_maps"),
    ("reproduce --model nowhere", "unknown model 'nowhere': give demo"),
    ("reproduce --limit 0", "limit must be at least 1"),
    ("reproduce --problems missing.jsonl", "missing.jsonl"),
    ("evaluate --model demo --conditions none,loud --out {tmp}/o", "unknown condition 'loud'"),
    ("evaluate --model demo --conditions mless --out {tmp}/o", "must hold 'none'"),
    ("evaluate --model demo --max-new-tokens 0 --out {tmp}/o", "max_new_tokens"),
    ("evaluate --model demo --limit 2 --engine steam --out {tmp}/o", "unknown engine 'steam'"),
    ("evaluate --model demo --limit 2 --engine ../x --out {tmp}/o", "unknown engine '../x'"),
    ("evaluate --model demo --limit 2 --out {tmp}/file/o", "cannot write results to"),
    ("evaluate --model demo --problems {tmp}/broken.jsonl --out {tmp}/o", "line 2"),
    ("evaluate --model demo --problems {tmp}/empty.jsonl --out {tmp}/o", "empty.jsonl"),
    (
        "evaluate --model {tmp}/pickles --out {tmp}/o",
        "only pickle weights (pytorch_model.bin), which are refused",
    ),
    ("evaluate --model demo --conditions none,mless@up --out {tmp}/o", "position: input should be 'before'"),
    ("evaluate --model demo --samples 2 --out {tmp}/o", "samples is 2 at temperature 0"),
    ("evaluate --model demo --shard 3/2 --out {tmp}/o", "shard '3/2': give i/n"),
    ("evaluate --model demo --engine-option fast --out {tmp}/o", "engine option 'fast': give NAME=N"),
    (
        "evaluate --model demo --limit 2 --engine-option fast=2 --out {tmp}/o",
        "has no option 'fast'",
    ),
    ("evaluate --model demo --temperature -1 --out {tmp}/o", "temperature"),
    ("evaluate --model demo --top-p 0 --out {tmp}/o", "top_p"),
    ("evaluate --model demo --conditions none,arm:c=-1 --out {tmp}/o", "c: input should be greater than or"),
    ("evaluate --model demo --conditions none,arm:q=1 --out {tmp}/o", "ARM setting 'q=1'"),
    (
        "evaluate --model demo --conditions none,arm --arm p1=101 --out {tmp}/o",
        "ARM's settings: p1: input should be",
    ),
    (
        "evaluate --model demo --conditions none,arm --arm fraction=2 --out {tmp}/o",
        "settings: fraction: input should",
    ),
    ("evaluate --model demo --limit 1 --conditions none,arm:layer=31 --out {tmp}/o", "the model has layers 1 to 30"),
    ("evaluate --model demo --filler= --out {tmp}/o", "filler: mless: string should have at least 1 character"),
    ("evaluate --model demo --format html --samples 0 --out {tmp}/o", "format: input should be 'plain' or 'chat', not"),
    ("reproduce --limit 2 --name demo", "name 'demo' is a profile of data/profiles"),
    ("report --limit 2 --name three", "no claims of profile three yet"),
    ("claims --profile nope", "unknown profile 'nope'"),
    ("claims --problems {tmp}/empty.jsonl", "empty.jsonl"),
    ("report", "no claims of profile demo yet"),
    ("grade {tmp}/broken.jsonl", "line 2 is not JSON"),
    ("grade {tmp}/good.jsonl --from lm-eval", "line 1: no text in field 'doc.answer'"),
    ("grade {tmp}/empty.jsonl", "no lines to grade"),
    ("grade {tmp}/good.jsonl --response text", "line 1: no text in field 'text'"),
]


@pytest.mark.parametrize("command, message", BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(command, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    row = json.dumps({"problem": "What is $1 + 1$?", "answer": "2", "unique_id": "a", "response": "2"})
    (tmp_path / "good.jsonl").write_text(row + "\n")
    (tmp_path / "broken.jsonl").write_text(row + "\n{half\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "pickles").mkdir()
    (tmp_path / "pickles" / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "pickles" / "pytorch_model.bin").write_bytes(b"")
    assert main(command.format(tmp=tmp_path).split()) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ") and message in error
    written = tmp_path / "o" / "completions.jsonl"
    assert not written.exists() or not written.read_text()


NEEDS_TORCH = ("file/o", "pickles", "fast=2")  # found where a store is made, or a model or an engine is loaded


def test_bad_arguments_and_the_report_are_answered_without_torch(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "claims.json").write_text(json.dumps([claim()]))
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text("{half")
    commands = [
        command.format(tmp=tmp_path).split() for command, _ in BAD if not any(n in command for n in NEEDS_TORCH)
    ]
    code = f"""if True:
        import sys
        from pathlib import Path
        from lib import paths
        from lib.__main__ import main
        paths.RESULTS = Path({str(tmp_path)!r})
        for command in {[c for c in commands if c[0] != "grade"]!r}:
            assert main(command) == (0 if command == ["report"] else 2), command
            assert not {{"torch", "transformers"}} & set(sys.modules), command
    """
    subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, check=True)


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
    assert by_id["length"]["reason"].startswith("the profile answers no problems under mless:70")
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
    assert "50.0% correct" in captured.err


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
