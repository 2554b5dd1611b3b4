"""Evaluation of whatever an engine gives back, ARM's settings, and runs that go on
where a shorter one was cut.
"""

import json
import sys

import pytest
from pandas.testing import assert_frame_equal

from lib import progress
from lib.errors import InputError
from lib.evaluation import run as module
from lib.evaluation.run import evaluate, resumed_tokens
from lib.evaluation.store import FIELDS, read
from lib.generation import Completion, Sampling
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

SETTINGS = {
    "problems": "embedded",
    "limit": 4,
    "format": "plain",
    "max_new_tokens": 6,
    "elicit": False,
}
SETTINGS |= {
    "elicit_tokens": 4,
    "temperature": 0.0,
    "top_p": 1.0,
    "samples": 1,
    "batch_size": 8,
}


def answered(checkpoint, folder, *conditions, shorter=None, **changes):
    """Return the answers of a run into `folder` with these settings in place of
    SETTINGS.
    """
    asked = Accuracy(
        **(SETTINGS | changes),
        models=[str(checkpoint)],
        conditions=["none", *conditions],
    )
    return evaluate(asked, Filler(), 0, folder, shorter=shorter).answers


class Says:
    """An engine that answers every prompt alike, but for the first so many, which it
    loses; `asked`: its calls.
    """

    status = ""

    def __init__(self, text, loses=0):
        self.failed = {}
        self.text = text
        self.loses = loses
        self.asked = []
        self.loaded = None  # until it is made

    def complete(self, requests, sampling):
        self.asked.append((requests, sampling))
        for request in requests[self.loses :]:
            words = self.text.split(" ")[: sampling.max_new_tokens]
            finish = "stop" if len(words) < sampling.max_new_tokens else "length"
            yield Completion(
                request.key, " ".join(words), finish, len(request.input_ids), len(words)
            )


@pytest.fixture
def says(monkeypatch):
    def use(text, loses=0):
        engine = Says(text, loses)

        def made(name, loaded, *options):
            engine.loaded = loaded
            return engine

        monkeypatch.setattr(module, "make_engine", made)
        return engine

    return use


@pytest.mark.parametrize(
    "text, method, right",  # correct, exact, authors', theirs on the completion, run on
    [
        # The authors' rule finds the prompt's empty box where there is none, and part
        # of the answer is enough for it.
        ("", "no-box", [False, False, True, False, False]),
        (
            r"within \boxed{}. What is 1 + 1?",
            "empty-box",
            [False, False, True, True, False],
        ),
        ("broken\ud800 \\boxed{\udfff}", None, [False, False, False, False, False]),
        (r"It is \boxed{1}.", None, [False, False, True, True, False]),
        (r"It is \boxed{12.0}.", None, [True, False, False, False, False]),
        (
            "It is \\boxed{12}.\n\nProblem: What is $1 + 1$?\nSolution: \\boxed{2}",
            None,
            [True, True, True, True, True],
        ),
    ],
)
def test_whatever_a_model_writes_is_kept_and_graded_by_each_rule(
    tiny_llama, tmp_path, says, text, method, right
):
    (path := tmp_path / "one.jsonl").write_text(
        json.dumps({"problem": "What is $6 + 6$?", "answer": "12"})
    )
    says(text)
    asked = {"limit": None, "problems": str(path), "max_new_tokens": 99}
    once, again = (answered(tiny_llama, tmp_path / "out", **asked) for _ in range(2))
    assert_frame_equal(once, again)
    (row,) = once.to_dict("records")
    fields = (
        "correct",
        "correct_exact",
        "correct_authors",
        "correct_authors_on_completion",
        "run_on",
    )
    assert [row[name] for name in fields] == right and row["response"] == text
    assert row["method"] == (method or row["method"]) and (
        row["extracted"] is None or row["extracted"] in text
    )
    assert (
        json.loads((tmp_path / "out" / "summary.json").read_text())[0]["accuracy"]
        == 100 * right[0]
    )


def test_an_engine_is_asked_for_what_the_settings_say(tiny_checkpoint, tmp_path, says):
    engine, drawn = says("1"), {"temperature": 0.7, "top_p": 0.9, "samples": 3}
    conditions = "arm", "mless:5+arm", "arm:c=1:p1=90:layer=2:mode=code"
    answers = answered(tiny_checkpoint, tmp_path, *conditions, arm={"c": 0.5}, **drawn)
    answered(tiny_checkpoint, tmp_path / "elicited", elicit=True)
    (requests, sampling), (_, elicited) = engine.asked
    assert sampling == Sampling(6, 0.7, 0.9, "", 4) and elicited == Sampling(
        6, 0.0, 1.0, module.ELICITATION, 4
    )
    assert {request.key: request.seed for request in requests} == {
        key: int(key, 16) % 2**63 for key in answers.key
    }
    assert answers.condition.value_counts().to_dict() == dict.fromkeys(
        ("none", *conditions), 12
    )
    rows = {row["key"]: row for row in read(tmp_path / "completions.jsonl")}
    assert all(
        (request.arm and request.arm.model_dump()) == rows[request.key].get("arm")
        for request in requests
    )
    first = {row["condition"]: row for row in reversed(rows.values())}
    assert list(first["arm"]) == FIELDS  # the documented ones, in their order
    assert list(first["none"]) == [name for name in FIELDS if name != "arm"]
    greedy = read(tmp_path / "elicited" / "completions.jsonl")
    assert not any("token_ids" in row for row in greedy)
    code, *settings = (first[name]["arm"] for name in reversed(conditions))
    assert (code["c"], code["mode"], code["layer"]) == (1, "code", 2) and {
        s["c"] for s in settings
    } == {0.5}
    assert {s["statistics"] for s in (code, *settings)} == {"sequence"}
    plain, *tokens = (first[name]["prompt_tokens"] for name in ("none", *conditions))
    assert tokens == [plain, plain + 5, plain]
    other = answered(tiny_checkpoint, tmp_path, "arm", arm={"c": 0.6}, **drawn)
    assert set(other.key) & set(answers.key) == set(
        answers.key[:12]
    )  # other settings are other completions


def test_what_an_engine_loses_is_named_and_made_up_for_later(
    tiny_checkpoint, tmp_path, says, capsys, monkeypatch
):
    says("1", loses=3)
    with pytest.raises(
        InputError,
        match="engine transformers returned nothing for 3 prompts; run again to retry",
    ):
        answered(tiny_checkpoint, tmp_path)
    capsys.readouterr()
    says("1")
    monkeypatch.setattr(progress, "shown", True)
    assert len(answered(tiny_checkpoint, tmp_path)) == 4
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "4/4" in shown and "0% correct" in shown and "tokens/s" in shown


def test_another_dtype_is_another_completion_and_every_row_says_which(
    tiny_checkpoint, tmp_path, says
):
    says("1")
    dtypes = "float32", "bfloat16", "auto"
    plain, narrow, auto = (
        answered(tiny_checkpoint, tmp_path / dtype, dtype=dtype) for dtype in dtypes
    )
    assert set(narrow.dtype) == {"bfloat16"} and all(narrow.processor)
    assert auto.equals(plain) and not set(plain.key) & set(narrow.key)
    assert (
        json.loads((tmp_path / "bfloat16/run.json").read_text())["environment"]["dtype"]
        == "bfloat16"
    )


@pytest.mark.parametrize(
    "setting, value, package", [("workers", 2, "ray"), ("engine", "vllm", "vllm")]
)
def test_what_is_not_installed_is_named_in_one_line(
    tiny_llama, tmp_path, monkeypatch, setting, value, package
):
    monkeypatch.setitem(sys.modules, package, None)
    for part in ("workers", "vllm"):
        monkeypatch.delitem(sys.modules, f"lib.generation.{part}", raising=False)
    with pytest.raises(
        InputError,
        match=rf"^[^\n]*pip install --no-deps -r requirements/{package}.txt[^\n]*$",
    ):
        answered(tiny_llama, tmp_path, **{setting: value})


def test_a_longer_run_takes_over_what_is_finished_and_continues_the_rest(
    tiny_checkpoint, tmp_path, says, monkeypatch
):
    monkeypatch.setattr(
        module,
        "resumed_tokens",
        lambda tokenizer, row: (7, 8, row["completion_tokens"]),
    )
    engine, short, long = (
        says("one two three four five"),
        tmp_path / "short",
        tmp_path / "long",
    )
    cut = answered(tiny_checkpoint, short, max_new_tokens=3)
    whole = answered(tiny_checkpoint, long, shorter=short, max_new_tokens=9)
    again = answered(
        tiny_checkpoint, tmp_path / "longest", shorter=long, max_new_tokens=12
    )
    assert [
        [request.resumed_tokens for request in requests] for requests, _ in engine.asked
    ] == [[()] * 4, [(7, 8, 3)] * 4]
    assert set(cut.finish_reason) == {"length"} and set(whole.finish_reason) == {"stop"}
    assert list(cut.key) == list(whole.key) and again.equals(whole)


def test_tokens_are_read_back_from_the_text_where_it_gives_them(demo):
    row = {"response": "First, $3 + 4 = 7$, so"}
    ids = demo.tokenizer(row["response"], add_special_tokens=False)["input_ids"]
    row["completion_tokens"] = len(ids)
    assert resumed_tokens(demo.tokenizer, row) == tuple(ids)
    assert (
        resumed_tokens(demo.tokenizer, row | {"completion_tokens": 4})
        == resumed_tokens(demo.tokenizer, row | {"arm": {}})
        == ()
    )


def test_a_run_that_cannot_be_continued_is_refused(tiny_llama, tmp_path, says):
    says("one two three four five")
    answered(tiny_llama, tmp_path / "short", max_new_tokens=3)
    for shorter, changes, message in (
        (
            "short",
            {"max_new_tokens": 3},
            "short allows 3 new tokens already: ask for more",
        ),
        (
            "short",
            {"format": "chat"},
            "was made with format = plain, not chat: it cannot go on",
        ),
        (
            "short",
            {"temperature": 0.5},
            "only greedy answers without elicitation can be continued",
        ),
        (
            "short",
            {"elicit": True},
            "only greedy answers without elicitation can be continued",
        ),
        ("nowhere", {}, r"nowhere holds no run: it has no run.json"),
    ):
        with pytest.raises(InputError, match=message):
            answered(
                tiny_llama,
                tmp_path / "long",
                shorter=tmp_path / shorter,
                **{"max_new_tokens": 9} | changes,
            )
        assert not (tmp_path / "long").exists()
