"""Evaluation of whatever an engine gives back, ARM's settings, and runs that go on where a shorter one was cut."""

import json
import sys

import pytest
from pandas.testing import assert_frame_equal

from lib import progress
from lib.errors import InputError
from lib.evaluation import run as module
from lib.evaluation.run import begun, evaluate
from lib.evaluation.store import FIELDS, read
from lib.generation import Completion, Sampling
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

SETTINGS = {"problems": "embedded", "limit": 4, "format": "plain", "max_new_tokens": 6, "elicit": False}
SETTINGS |= {"elicit_tokens": 4, "temperature": 0.0, "top_p": 1.0, "samples": 1, "batch_size": 8}


def accuracy(checkpoint, *conditions, **changes):
    return Accuracy(**(SETTINGS | changes), models=[str(checkpoint)], conditions=["none", *conditions])


class Says:
    """An engine that answers every prompt alike, but for the first so many, which it loses; `asked`: its calls."""

    def __init__(self, text, loses=0):
        self.text, self.loses, self.asked = text, loses, []

    def complete(self, requests, sampling):
        self.asked.append((requests, sampling))
        for request in requests[self.loses :]:
            words = self.text.split(" ")[: sampling.max_new_tokens]
            finish = "stop" if len(words) < sampling.max_new_tokens else "length"
            yield Completion(request.key, " ".join(words), finish, len(request.input_ids), len(words))


@pytest.fixture
def says(monkeypatch):
    def use(text, loses=0):
        engine = Says(text, loses)
        monkeypatch.setattr(module, "make_engine", lambda *args: engine)
        return engine

    return use


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("", "no-box"),
        (r"within \boxed{}. What is 1 + 1?", "empty-box"),
        ("broken\ud800 \\boxed{\udfff}", None),
        ("\x00\ufffd" * 50, "no-box"),
    ],
)
def test_whatever_a_model_writes_is_kept_and_graded(tiny_checkpoint, tmp_path, says, text, method):
    says(text)
    asked = accuracy(tiny_checkpoint, "mless", max_new_tokens=99)
    answers = evaluate(asked, Filler(), 0, tmp_path)
    assert len(answers) == 8 and not answers.correct.any() and set(answers.response) == {text}
    assert method is None or set(answers.method) == {method}
    assert_frame_equal(evaluate(asked, Filler(), 0, tmp_path), answers)
    assert json.loads((tmp_path / "summary.json").read_text())[0]["accuracy"] == 0


def test_an_engine_is_asked_for_what_the_settings_say(tiny_checkpoint, tmp_path, says):
    drawn, engine = {"temperature": 0.7, "top_p": 0.9, "samples": 3}, says("1")
    answers = evaluate(accuracy(tiny_checkpoint, "arm:c=2", **drawn), Filler(), 0, tmp_path)
    ((requests, sampling),) = engine.asked
    assert sampling == Sampling(6, 0.7, 0.9, "", 4) and {r.arm and r.arm.c for r in requests} == {None, 2}
    seeds = {request.key: request.seed for request in requests}
    assert seeds == {key: int(key, 16) % 2**63 for key in answers.key} and len(seeds) == 24
    assert {arm["c"] for arm in answers[answers.condition != "none"].arm} == {2}
    engine = says("1")
    evaluate(accuracy(tiny_checkpoint, elicit=True), Filler(), 0, tmp_path / "elicited")
    assert {sampling for _, sampling in engine.asked} == {Sampling(6, 0.0, 1.0, module.ELICITATION, 4)}


@pytest.mark.parametrize(
    "text, right",  # correct, exact, authors', theirs on the completion, run on
    [
        # The authors' rule finds the prompt's empty box where there is none, and part of the answer is enough for it.
        ("I do not know.", [False, False, True, False, False]),
        (r"It is \boxed{1}.", [False, False, True, True, False]),
        (r"It is \boxed{12.0}.", [True, False, False, False, False]),
        ("It is \\boxed{12}.\n\nProblem: What is $1 + 1$?\nSolution: \\boxed{2}", [True, True, True, True, True]),
    ],
)
def test_each_rule_grades_what_it_is_to_read(tiny_checkpoint, tmp_path, says, text, right):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"problem": "What is $6 + 6$?", "answer": "12"}))
    says(text)
    asked = accuracy(tiny_checkpoint, limit=None, problems=str(path), max_new_tokens=99)
    (row,) = evaluate(asked, Filler(), 0, tmp_path / "out").to_dict("records")
    assert row["extracted"] is None or row["extracted"] in text
    fields = "correct", "correct_exact", "correct_authors", "correct_authors_on_completion", "run_on"
    assert [row[name] for name in fields] == right


def test_what_an_engine_loses_is_named_and_made_up_for_later(tiny_checkpoint, tmp_path, says, capsys, monkeypatch):
    says("1", loses=3)
    with pytest.raises(InputError, match="engine transformers returned nothing for 3 prompts; run again to retry"):
        evaluate(accuracy(tiny_checkpoint), Filler(), 0, tmp_path)
    capsys.readouterr()
    says("1")
    monkeypatch.setattr(progress, "shown", True)
    assert len(evaluate(accuracy(tiny_checkpoint), Filler(), 0, tmp_path)) == 4
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "4/4" in shown and "0% correct" in shown and "tokens/s" in shown


def test_arm_is_a_condition_whose_settings_are_kept_with_each_row(tiny_checkpoint, tmp_path):
    asked = accuracy(tiny_checkpoint, "arm", "mless:5+arm", "arm:c=1:p1=90:layer=2:mode=code", arm={"c": 0.5})
    answers, by_condition = evaluate(asked, Filler(), 0, tmp_path), {}
    for row in read(tmp_path / "completions.jsonl"):
        by_condition.setdefault(row["condition"], []).append(row)
    assert {name: len(some) for name, some in by_condition.items()} == dict.fromkeys(asked.conditions, 4)
    assert list(by_condition["arm"][0]) == FIELDS  # the documented ones, in their order
    assert list(by_condition["none"][0]) == [name for name in FIELDS if name != "arm"]
    settings = [by_condition[name][0]["arm"] for name in asked.conditions[1:]]
    assert [s["c"] for s in settings] == [0.5, 0.5, 1] and settings[2]["mode"] == "code" and settings[2]["layer"] == 2
    assert {s["statistics"] for s in settings} == {"sequence"}
    tokens = [some.prompt_tokens.iloc[0] for _, some in answers.groupby("condition", sort=False)]
    assert tokens[0] == tokens[1] == tokens[3] == tokens[2] - 5
    other = evaluate(accuracy(tiny_checkpoint, "arm", arm={"c": 0.6}), Filler(), 0, tmp_path)
    known = {row["key"] for row in by_condition["arm"]}
    assert not known & set(other[other.condition == "arm"].key)  # other settings are other completions


def test_another_dtype_is_another_completion_and_every_row_says_which(tiny_checkpoint, tmp_path, says):
    says("1")
    plain, narrow, auto = (
        evaluate(accuracy(tiny_checkpoint, dtype=dtype), Filler(), 0, tmp_path / dtype)
        for dtype in ("float32", "bfloat16", "auto")
    )
    assert set(narrow.dtype) == {"bfloat16"} and all(narrow.processor)
    assert auto.equals(plain) and not set(plain.key) & set(narrow.key)
    assert json.loads((tmp_path / "bfloat16/run.json").read_text())["environment"]["dtype"] == "bfloat16"


def test_absent_ray_is_one_line_that_says_how_to_install(tiny_llama, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "lib.generation.workers", raising=False)
    with pytest.raises(InputError, match=r"pip install --no-deps -r requirements/ray.txt") as caught:
        evaluate(accuracy(tiny_llama, workers=2), Filler(), 0, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_longer_run_takes_over_what_is_finished_and_continues_what_was_cut(
    tiny_checkpoint, tmp_path, says, monkeypatch
):
    monkeypatch.setattr(module, "begun", lambda tokenizer, row: (7, 8, row["completion_tokens"]))
    says("one two three four five")
    cut = evaluate(accuracy(tiny_checkpoint, max_new_tokens=3), Filler(), 0, tmp_path / "short")
    engine = says("one two three four five")
    longer, longest = accuracy(tiny_checkpoint, max_new_tokens=9), accuracy(tiny_checkpoint, max_new_tokens=12)
    whole = evaluate(longer, Filler(), 0, tmp_path / "long", shorter=tmp_path / "short")
    assert [request.begun for request in engine.asked[0][0]] == [(7, 8, 3)] * 4
    assert set(cut.finish_reason) == {"length"} and set(whole.finish_reason) == {"stop"}
    assert list(cut.key) == list(whole.key)
    again = evaluate(longest, Filler(), 0, tmp_path / "longest", shorter=tmp_path / "long")
    assert again.equals(whole) and len(engine.asked) == 1


@pytest.mark.parametrize("change, back", [({}, True), ({"completion_tokens": 4}, False), ({"arm": {"c": 0.1}}, False)])
def test_tokens_are_read_back_from_the_text_where_it_gives_them(demo, change, back):
    ids = demo.tokenizer("First, $3 + 4 = 7$, so", add_special_tokens=False)["input_ids"]
    row = {"response": "First, $3 + 4 = 7$, so", "completion_tokens": len(ids)} | change
    assert begun(demo.tokenizer, row) == (tuple(ids) if back else ())


@pytest.mark.parametrize(
    "shorter, limit, changes, message",
    [
        ("short", 3, {}, "short allows 3 new tokens already: ask for more"),
        ("short", 9, {"format": "chat"}, "was made with format = plain, not chat: it cannot go on"),
        ("short", 9, {"temperature": 0.5}, "only greedy answers without elicitation can be continued"),
        ("short", 9, {"elicit": True}, "only greedy answers without elicitation can be continued"),
        ("nowhere", 9, {}, r"nowhere holds no run: it has no run.json"),
    ],
)
def test_a_run_that_cannot_be_continued_is_refused(tiny_checkpoint, tmp_path, says, shorter, limit, changes, message):
    says("one two three four five")
    evaluate(accuracy(tiny_checkpoint, max_new_tokens=3), Filler(), 0, tmp_path / "short")
    asked = accuracy(tiny_checkpoint, **{"max_new_tokens": limit} | changes)
    with pytest.raises(InputError, match=message):
        evaluate(asked, Filler(), 0, tmp_path / "long", shorter=tmp_path / shorter)
    assert not (tmp_path / "long").exists()
