"""What data/make_families.py keeps of scores: whole problems, the same bytes whatever the order they came in."""

import gzip
import importlib.util
import json

import pytest

from lib import paths

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
