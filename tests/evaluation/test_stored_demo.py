"""The completions stored with the repository are those that the demo profile asks for today."""

import pytest

from lib.evaluation import run
from lib.evaluation.of_profile import STORED_DEMO
from lib.evaluation.run import evaluate
from lib.evaluation.store import read_records
from lib.profiles import PARTS, load_profile, variation


@pytest.mark.parametrize("part", [None, *PARTS])
def test_stored_completions_have_the_keys_that_are_asked_for(part, tmp_path, monkeypatch):
    class Refusing:
        def complete(self, *_):
            raise AssertionError("a stored completion is asked for again: its key has changed")

    monkeypatch.setattr(run, "make_engine", lambda *_: Refusing())
    profile = load_profile("demo")
    accuracy = variation(profile.accuracy, part) if part else profile.accuracy
    stored = STORED_DEMO.with_name(f"demo_{part}.jsonl") if part else STORED_DEMO
    (tmp_path / "completions.jsonl").write_bytes(stored.read_bytes())
    records = evaluate(accuracy, profile.filler, profile.seed, tmp_path)
    assert {record["key"] for record in records} <= {record["key"] for record in read_records(stored)}
    assert len(records) == len(accuracy.conditions) * accuracy.limit * accuracy.samples
