"""What data/make_families.py keeps of scores: whole problems, in one order."""

import gzip
import importlib.util
import json

from lib import paths

SPEC = importlib.util.spec_from_file_location(
    "make_families", paths.DATA / "make_families.py"
)


def rows(counts, target="solution"):
    """Return lines of a run that scored each condition on so many problems."""
    fixed = {
        "model": "m",
        "revision": "r",
        "target": target,
        "level": 1,
        "tokens": 3,
        "nats": -1.5,
        "dtype": "float32",
    }
    for name, problem in (
        (name, f"p{i:02d}") for name, count in counts.items() for i in range(count)
    ):
        known = {
            "key": f"{target}-{name}-{problem}",
            "condition": name,
            "problem_id": problem,
            "processor": "CPU",
        }
        yield json.dumps(fixed | known) + "\n"


def test_scores_of_problems_that_every_condition_reached_are_kept_and_the_order_of_a_run_is_not(
    tmp_path, monkeypatch
):
    script, kept = (
        importlib.util.module_from_spec(SPEC),
        tmp_path / "likelihood" / "m.jsonl.gz",
    )
    SPEC.loader.exec_module(script)
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    lines = [*rows({"none": 30, "mless": 25, "bare": 3}), *rows({"none": 22}, "answer")]
    for store, content in (("a", [*lines, '{"key": "half a li']), ("b", lines[::-1])):
        (tmp_path / f"{store}.jsonl").write_text("".join(content))
    script.write_scores([tmp_path / "a.jsonl"])
    first, found = (
        kept.read_bytes(),
        [json.loads(line) for line in gzip.decompress(kept.read_bytes()).splitlines()],
    )
    assert {(row["target"], row["condition"], row["problem_id"]) for row in found} == {
        *(
            ("solution", name, f"p{i:02d}")
            for name in ("none", "mless")
            for i in range(25)
        ),
        *(("answer", "none", f"p{i:02d}") for i in range(22)),
    }
    assert "processor" not in found[0] and found[0]["nats"] == -1.5
    script.write_scores([tmp_path / "b.jsonl", tmp_path / "a.jsonl"])
    assert kept.read_bytes() == first
