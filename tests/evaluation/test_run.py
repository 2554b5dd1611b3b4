"""Evaluation of whatever an engine gives back, ARM's settings, and runs that go on."""

import json
import sys

import pytest
from pandas.testing import assert_frame_equal

from lib import progress
from lib.errors import InputError
from lib.evaluation import run as module
from lib.evaluation.rows import FIELDS
from lib.evaluation.run import evaluate
from lib.evaluation.store import read
from lib.generation.writer import Completion, Sampling
from lib.profiles import Accuracy
from lib.prompts.conditions import INSTRUCTION, WORKED, Filler
from lib.prompts.problems import load_problems

SHORT = {
    "problems": "embedded",
    "limit": 4,
    "format": "plain",
    "max_new_tokens": 6,
    "elicit": False,
    "elicit_tokens": 4,
    "temperature": 0.0,
    "top_p": 1.0,
    "samples": 1,
    "batch_size": 8,
}


def answered(checkpoint, folder, *conditions, seed=0, shard=(1, 1), **changes):
    """Return the answers of a run into `folder` with these settings in place of
    SHORT's.
    """
    accuracy = Accuracy(
        **(SHORT | changes),
        models=[str(checkpoint)],
        conditions=["none", *conditions],
    )
    return evaluate(accuracy, Filler(), seed, folder, shard)


class Says:
    """An engine, and its class, that answers every prompt alike, but for the first so
    many, which it loses; `asked`: its calls.
    """

    def __init__(self, text, loses=0):
        self.text = text
        self.loses = loses
        self.asked = []
        self.loaded = None  # until it is made

    def load(self, loaded):
        return loaded

    def __call__(self, loaded, *options):
        self.loaded = loaded
        return self

    def complete(self, requests, sampling):
        self.asked.append((requests, sampling))
        words = self.text.split(" ")[: sampling.max_new_tokens]
        finish = "stop" if len(words) < sampling.max_new_tokens else "length"
        for request in requests[self.loses :]:
            yield Completion(
                key=request.key,
                text=" ".join(words),
                finish_reason=finish,
                prompt_tokens=len(request.input_ids),
                completion_tokens=len(words),
                processor="CPU",
            )


@pytest.fixture
def says(monkeypatch):
    def use(text, loses=0):
        engine = Says(text, loses)
        monkeypatch.setattr(module, "engine_class", lambda name: engine)
        return engine

    return use


def test_answers_are_asked_for_after_a_worked_example_and_without_instruction(
    tiny_llama, tmp_path, says
):
    engine = says("It is 4.")
    answered(tiny_llama, tmp_path, "example", "bare", limit=1, format="chat")
    asked = [request for requests, _ in engine.asked for request in requests]
    decode = engine.loaded.tokenizer.decode
    plain, after_example, bare = (decode(request.input_ids) for request in asked)
    assert INSTRUCTION in plain and WORKED.problem not in plain
    assert WORKED.problem in after_example and WORKED.solution in after_example
    assert bare == plain.replace(f"{INSTRUCTION} ", "")


GRADES = (
    "correct",
    "correct_exact",
    "correct_authors",
    "correct_authors_on_completion",
    "run_on",
)


@pytest.mark.parametrize(
    "text, method, grades",
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
    tiny_llama, tmp_path, says, text, method, grades
):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"problem": "What is $6 + 6$?", "answer": "12"}))
    says(text)
    settings = {"limit": None, "problems": str(path), "max_new_tokens": 99}
    once = answered(tiny_llama, tmp_path / "out", **settings)
    again = answered(tiny_llama, tmp_path / "out", **settings)
    assert_frame_equal(once, again)
    (row,) = once.to_dict("records")
    assert [row[name] for name in GRADES] == grades
    assert row["response"] == text
    assert method is None or row["method"] == method
    assert row["extracted"] is None or row["extracted"] in text
    (summary,) = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["accuracy"] == 100 * grades[0]


def test_a_run_draws_its_problems_by_its_own_seed_and_levels(
    tiny_llama, tmp_path, says
):
    says("1")
    chosen = {"limit": 5, "levels": [2, 3]}
    answers = answered(tiny_llama, tmp_path, seed=3, **chosen)
    expected = load_problems("embedded", 5, seed=3, levels=[2, 3])
    assert answers.problem_id.tolist() == [problem.id for problem in expected]
    assert expected != load_problems("embedded", 5, seed=0, levels=[2, 3])


def test_an_engine_is_asked_for_what_the_settings_say(tiny_llama, tmp_path, says):
    engine = says("1")
    drawn = {"temperature": 0.7, "top_p": 0.9, "samples": 3}
    answers = answered(tiny_llama, tmp_path, "mless:5", **drawn)
    answered(tiny_llama, tmp_path / "elicited", elicit=True)
    (requests, sampling), (_, elicited) = engine.asked
    assert sampling == Sampling(6, 0.7, 0.9, "", 4)
    assert elicited == Sampling(6, 0.0, 1.0, module.ELICITATION, 4)
    assert answers.condition.value_counts().to_dict() == {"none": 12, "mless:5": 12}
    assert answers["sample"].value_counts().to_dict() == {0: 8, 1: 8, 2: 8}
    assert {request.key for request in requests} == set(answers.key)
    # A sample's seed is fixed by its key alone.
    seeds = {request.key: request.seed for request in requests}
    assert len(set(seeds.values())) == 24
    assert all(f"{seed:016x}"[1:] == key[1:] for key, seed in seeds.items())


def test_a_row_has_the_documented_fields_and_tokens_where_it_was_drawn(
    tiny_llama, tmp_path, says
):
    says("1")
    answered(tiny_llama, tmp_path / "drawn", "arm", temperature=0.7)
    answered(tiny_llama, tmp_path / "greedy")
    rows = read(tmp_path / "drawn" / "completions.jsonl")
    by_condition = {row["condition"]: row for row in rows}
    assert list(by_condition["arm"]) == FIELDS
    assert list(by_condition["none"]) == [name for name in FIELDS if name != "arm"]
    greedy = read(tmp_path / "greedy" / "completions.jsonl")
    assert not any("token_ids" in row for row in greedy)


def test_arms_settings_are_the_conditions_over_the_models(tiny_llama, tmp_path, says):
    engine = says("1")
    conditions = "arm", "mless:5+arm", "arm:c=1:p1=90:layer=2:mode=code"
    answered(tiny_llama, tmp_path, *conditions)
    rows = {row["key"]: row for row in read(tmp_path / "completions.jsonl")}
    for request in engine.asked[0][0]:
        settings = request.arm and request.arm.model_dump()
        assert settings == rows[request.key].get("arm")
    by_condition = {row["condition"]: row for row in rows.values()}
    arm, both, code = (by_condition[name]["arm"] for name in conditions)
    assert arm["c"] == both["c"] == 0.13
    assert (code["c"], code["mode"], code["layer"]) == (1, "code", 2)
    assert {row["statistics"] for row in (arm, both, code)} == {"sequence"}

    # Their prompts are those of none and mless.
    plain = by_condition["none"]["prompt_tokens"]
    tokens = [by_condition[name]["prompt_tokens"] for name in conditions]
    assert tokens == [plain, plain + 5, plain]


def test_what_an_engine_loses_is_counted_and_made_up_for_later(
    tiny_llama, tmp_path, says, capsys, monkeypatch
):
    says("1", loses=3)
    with pytest.raises(
        InputError,
        match=r"^3 prompts failed; all others are done; run again to retry$",
    ):
        answered(tiny_llama, tmp_path)
    capsys.readouterr()
    says("1")
    monkeypatch.setattr(progress, "shown", True)
    assert len(answered(tiny_llama, tmp_path)) == 4
    assert "4/4" in capsys.readouterr().err.splitlines()[-1]


def test_another_dtype_is_another_completion_and_every_row_says_which(
    tiny_llama, tmp_path, says
):
    says("1")
    plain, narrow, auto = (
        answered(tiny_llama, tmp_path / dtype, dtype=dtype)
        for dtype in ("float32", "bfloat16", "auto")
    )
    assert set(narrow.dtype) == {"bfloat16"}
    assert set(narrow.processor) == {"CPU"}
    assert auto.equals(plain)
    assert not set(plain.key) & set(narrow.key)
    run = json.loads((tmp_path / "bfloat16" / "run.json").read_text())
    assert run["environment"]["dtype"] == "bfloat16"


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


def test_a_folder_made_with_worked_examples_does_not_go_on_without_them(
    tiny_llama, tmp_path, says
):
    says("1")
    example = {"problem": "What is $1 + 1$?", "solution": "$\\boxed{2}$"}
    # The tiny model's tokenizer has the demo's chat template.
    answered(tiny_llama, tmp_path, format="chat", examples=[example])
    with pytest.raises(InputError, match=r"was made with examples = .*, not \(absent"):
        answered(tiny_llama, tmp_path, format="chat")


def test_a_run_is_whole_when_its_last_shard_is(tiny_llama, tmp_path, says):
    says("1")
    whole = tmp_path / "summary.json"
    assert len(answered(tiny_llama, tmp_path, shard=(1, 2))) == 2
    assert not whole.exists()
    assert len(answered(tiny_llama, tmp_path, shard=(2, 2))) == 4
    assert whole.exists()
    # With another condition there is something to do again.
    assert len(answered(tiny_llama, tmp_path, "mless", shard=(1, 2))) == 6
    assert not whole.exists()
