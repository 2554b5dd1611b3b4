"""Evaluation of whatever an engine gives back: nothing, its prompt, broken text, too little; and ARM's records."""

import json
import sys

import pytest

from lib import progress
from lib.errors import InputError
from lib.evaluation import run as module
from lib.evaluation.records import FIELDS
from lib.evaluation.run import evaluate
from lib.generation.interface import Completion, Sampling
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

SETTINGS = {"problems": "embedded", "limit": 4, "format": "plain", "max_new_tokens": 6, "elicit": False}
SETTINGS |= {"elicit_tokens": 4, "temperature": 0.0, "top_p": 1.0, "samples": 1, "batch_size": 8}


def accuracy(checkpoint, *conditions, **changes):
    return Accuracy(**(SETTINGS | changes), models=[str(checkpoint)], conditions=["none", *conditions])


class Says:
    """An engine that answers every prompt with the same text, but for the first so many, which it loses."""

    def __init__(self, text, loses=0):
        self.text, self.loses = text, loses

    def complete(self, requests, sampling, arm=None):
        for request in requests[self.loses :]:
            yield Completion(request.key, self.text, "stop", len(request.input_ids), len(self.text))


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("", "no-box"),
        (r"Please reason step by step and put your final answer within \boxed{}. What is 1 + 1?", "empty-box"),
        ("broken \ud800 \\boxed{\udfff}", None),
        ("\x00\ufffd" * 50, "no-box"),
    ],
)
def test_whatever_a_model_writes_is_kept_and_graded(tiny_checkpoint, tmp_path, monkeypatch, text, method):
    monkeypatch.setattr(module, "make_engine", lambda *args: Says(text))
    records = evaluate(accuracy(tiny_checkpoint, "mless"), Filler(), 0, tmp_path)
    assert len(records) == 8 and not any(record["correct"] for record in records)
    assert all(record["response"] == text for record in records)
    assert method is None or {record["method"] for record in records} == {method}
    assert evaluate(accuracy(tiny_checkpoint, "mless"), Filler(), 0, tmp_path) == records
    assert json.loads((tmp_path / "summary.json").read_text())[0]["accuracy"] == 0


def test_an_engine_is_asked_for_what_the_settings_say(tiny_checkpoint, tmp_path, monkeypatch):
    asked = []

    class Listens(Says):
        def complete(self, requests, sampling, arm=None):
            asked.append((requests, sampling, arm))
            return super().complete(requests, sampling, arm)

    monkeypatch.setattr(module, "make_engine", lambda *args: Listens("1"))
    drawn = {"temperature": 0.7, "top_p": 0.9, "samples": 3}
    records = evaluate(accuracy(tiny_checkpoint, "arm:c=2", **drawn), Filler(), 0, tmp_path)
    assert {sampling for _, sampling, _ in asked} == {Sampling(6, 0.7, 0.9, "", 4)}
    assert {arm and arm.c for _, _, arm in asked} == {None, 2}
    seeds = {request.key: request.seed for requests, _, _ in asked for request in requests}
    assert seeds == {record["key"]: int(record["key"], 16) % 2**63 for record in records} and len(seeds) == 24
    assert {record["arm"]["c"] for record in records if record["condition"] != "none"} == {2}
    asked.clear()
    evaluate(accuracy(tiny_checkpoint, elicit=True), Filler(), 0, tmp_path / "elicited")
    assert {sampling for _, sampling, _ in asked} == {Sampling(6, 0.0, 1.0, module.ELICITATION, 4)}


def test_each_rule_grades_what_it_is_to_read(tiny_checkpoint, tmp_path, monkeypatch):
    right = "correct", "correct_exact", "correct_authors", "correct_authors_on_completion", "run_on"

    def graded(text, folder):
        monkeypatch.setattr(module, "make_engine", lambda *args: Says(text))
        (record,) = evaluate(accuracy(tiny_checkpoint, limit=None, problems=str(path)), Filler(), 0, tmp_path / folder)
        assert record["extracted"] is None or record["extracted"] in text
        return [record[name] for name in right]

    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"problem": "What is $6 + 6$?", "answer": "12"}))
    # The authors' rule finds the prompt's empty box where there is none, and part of the answer is enough for it.
    assert graded("I do not know.", "a") == [False, False, True, False, False]
    assert graded(r"It is \boxed{1}.", "b") == [False, False, True, True, False]
    assert graded(r"It is \boxed{12.0}.", "c") == [True, False, False, False, False]
    run_on = "It is \\boxed{12}.\n\nProblem: What is $1 + 1$?\nSolution: \\boxed{2}"
    assert graded(run_on, "d") == [True, True, True, True, True]


def test_what_an_engine_loses_is_named_and_made_up_for_later(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "make_engine", lambda *args: Says("1", loses=3))
    with pytest.raises(InputError, match="engine transformers returned nothing for 3 prompts; run again to retry"):
        evaluate(accuracy(tiny_checkpoint), Filler(), 0, tmp_path)
    monkeypatch.setattr(module, "make_engine", lambda *args: Says("1"))
    assert len(evaluate(accuracy(tiny_checkpoint), Filler(), 0, tmp_path)) == 4


def test_the_line_of_a_continued_run_counts_what_was_done_before(tiny_checkpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "make_engine", lambda *args: Says("1", loses=3))
    with pytest.raises(InputError):
        evaluate(accuracy(tiny_checkpoint), Filler(), 0, tmp_path)
    capsys.readouterr()
    monkeypatch.setattr(module, "make_engine", lambda *args: Says("1"))
    with progress.switched_on():
        evaluate(accuracy(tiny_checkpoint), Filler(), 0, tmp_path)
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "4/4" in shown and "0% correct" in shown and "tokens/s" in shown


def test_arm_is_a_condition_whose_settings_are_kept_with_each_record(tiny_checkpoint, tmp_path):
    asked = accuracy(tiny_checkpoint, "arm", "mless:5+arm", "arm:c=1:p1=90:layer=2:mode=code", arm={"c": 0.5})
    by_condition = {}
    for record in evaluate(asked, Filler(), 0, tmp_path):
        by_condition.setdefault(record["condition"], []).append(record)
    assert {name: len(some) for name, some in by_condition.items()} == dict.fromkeys(asked.conditions, 4)
    assert list(by_condition["arm"][0]) == FIELDS  # the documented ones, in their order
    assert list(by_condition["none"][0]) == [name for name in FIELDS if name != "arm"]
    settings = [by_condition[name][0]["arm"] for name in asked.conditions[1:]]
    assert [s["c"] for s in settings] == [0.5, 0.5, 1] and settings[2]["mode"] == "code" and settings[2]["layer"] == 2
    assert {s["statistics"] for s in settings} == {"sequence"}
    tokens = [by_condition[name][0]["prompt_tokens"] for name in asked.conditions]
    assert tokens[0] == tokens[1] == tokens[3] == tokens[2] - 5


@pytest.mark.parametrize("mode", ["text", "code"])
def test_answers_under_arm_do_not_depend_on_the_batch(tiny_checkpoint, tmp_path, mode):
    answers = []
    for batch in (1, 5):
        asked = accuracy(tiny_checkpoint, f"arm:c=1:mode={mode}", batch_size=batch, max_new_tokens=12)
        answers.append(evaluate(asked, Filler(), 0, tmp_path / str(batch)))
    assert answers[0] == answers[1]


def test_other_arm_settings_are_other_completions(tiny_checkpoint, tmp_path):
    first = evaluate(accuracy(tiny_checkpoint, "arm", arm={"c": 0.5}), Filler(), 0, tmp_path)
    other = evaluate(accuracy(tiny_checkpoint, "arm", arm={"c": 0.6}), Filler(), 0, tmp_path)
    assert len({record["key"] for record in [*first, *other]}) == 12  # none is shared


def test_another_dtype_is_another_completion_and_every_record_says_which(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "make_engine", lambda *args: Says("1"))
    plain, narrow, auto = (
        evaluate(accuracy(tiny_checkpoint, dtype=dtype), Filler(), 0, tmp_path / dtype)
        for dtype in ("float32", "bfloat16", "auto")
    )
    assert {record["dtype"] for record in narrow} == {"bfloat16"} and all(r["processor"] for r in narrow)
    assert auto == plain and not {r["key"] for r in plain} & {r["key"] for r in narrow}
    assert json.loads((tmp_path / "bfloat16/run.json").read_text())["environment"]["dtype"] == "bfloat16"


def test_absent_ray_is_one_line_that_says_how_to_install(tiny_llama, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "lib.generation.workers", raising=False)
    with pytest.raises(InputError, match=r"pip install --no-deps -r requirements/ray.txt") as caught:
        evaluate(accuracy(tiny_llama, workers=2), Filler(), 0, tmp_path)
    assert "\n" not in str(caught.value)
