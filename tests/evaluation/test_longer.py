"""A run with a higher token limit takes over what a shorter one finished, and continues what it cut."""

import json

import pytest

from lib.errors import InputError
from lib.evaluation import longer
from lib.evaluation import run as module
from lib.evaluation.run import evaluate
from lib.generation.interface import Completion
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler


class Says:
    """An engine that writes the same words, as many as there is room for, and notes what it was asked."""

    words = ("one", "two", "three", "four", "five")

    def __init__(self):
        self.asked = []

    def complete(self, requests, sampling, arm=None):
        for request in requests:
            self.asked.append(request)
            room = sampling.max_new_tokens
            finish = "length" if room < 5 else "stop"
            yield Completion(request.key, " ".join(self.words[:room]), finish, len(request.input_ids), min(room, 5))


@pytest.fixture
def asked(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(module, "complete_all", lambda *args: None)

    def run(folder, limit, shorter=None, **changes):
        engine = Says()
        monkeypatch.setattr(module, "make_engine", lambda *args: engine)
        settings = {"models": [str(tiny_checkpoint)], "conditions": ["none"], "limit": 4, "format": "plain"} | changes
        records = evaluate(Accuracy(max_new_tokens=limit, **settings), Filler(), 0, folder, shorter=shorter)
        return records, engine.asked

    return run


def test_finished_answers_are_taken_over(asked, tmp_path):
    first, _ = asked(tmp_path / "short", 5)
    again, requests = asked(tmp_path / "long", 9, tmp_path / "short")
    assert again == first and not requests


def test_cut_answers_are_continued_from_their_last_token(asked, tmp_path, monkeypatch):
    cut, _ = asked(tmp_path / "short", 3)
    monkeypatch.setattr(module, "begun", lambda tokenizer, record: (7, 8, record["completion_tokens"]))
    whole, requests = asked(tmp_path / "long", 9, tmp_path / "short")
    assert [request.begun for request in requests] == [(7, 8, 3)] * 4
    assert {row["finish_reason"] for row in cut} == {"length"} and {row["finish_reason"] for row in whole} == {"stop"}
    assert [row["key"] for row in cut] == [row["key"] for row in whole]


def test_tokens_are_read_back_from_the_text(demo):
    text = "First, $3 + 4 = 7$, so"
    ids = demo.tokenizer(text, add_special_tokens=False)["input_ids"]
    record = {"response": text, "completion_tokens": len(ids)}
    assert longer.begun(demo.tokenizer, record) == tuple(ids)


@pytest.mark.parametrize("change", [{"completion_tokens": 4}, {"arm": {"c": 0.1}}])
def test_what_the_text_does_not_give_back_is_begun_anew(demo, change):
    ids = demo.tokenizer("So it is", add_special_tokens=False)["input_ids"]
    assert longer.begun(demo.tokenizer, {"response": "So it is", "completion_tokens": len(ids)} | change) == ()


@pytest.mark.parametrize(
    "limit, changes, message",
    [
        (3, {}, "short allows 3 new tokens already: ask for more"),
        (9, {"format": "chat"}, "was made with format = plain, not chat: it cannot go on"),
        (9, {"temperature": 0.5}, "only greedy answers without elicitation can be continued"),
        (9, {"elicit": True}, "only greedy answers without elicitation can be continued"),
    ],
)
def test_a_run_that_cannot_be_continued_is_refused(asked, tmp_path, limit, changes, message):
    asked(tmp_path / "short", 3)
    with pytest.raises(InputError, match=message):
        asked(tmp_path / "long", limit, tmp_path / "short", **changes)
    assert not (tmp_path / "long").exists()


def test_a_folder_without_a_run_is_named(asked, tmp_path):
    with pytest.raises(InputError, match=r"nowhere holds no run: it has no run.json"):
        asked(tmp_path / "long", 9, tmp_path / "nowhere")


def test_a_continued_run_says_the_same_as_one_that_was_never_cut(tiny_checkpoint, tmp_path):
    def run(folder, limit, shorter=None):
        settings = {"models": [str(tiny_checkpoint)], "conditions": ["none", "mless"], "limit": 3, "format": "plain"}
        return evaluate(Accuracy(max_new_tokens=limit, **settings), Filler(), 0, tmp_path / folder, shorter=shorter)

    run("short", 4)
    whole, found = run("whole", 12), run("long", 12, tmp_path / "short")
    assert found == whole
    assert len(json.loads((tmp_path / "long" / "run.json").read_text())["settings"]) > 3
