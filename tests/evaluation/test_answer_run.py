"""Evaluation of any response of an engine, ARM's settings, and runs that continue."""

import json
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hand_written import keep
from pandas.testing import assert_frame_equal

from lib import progress
from lib.files.text_files import read
from lib.generation.engine_interface import Completion, Sampling
from lib.grading.worker_pool import grade
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems
from reproduction.evaluation import answer_run as module
from reproduction.evaluation.rows import FIELDS
from reproduction.profiles import Accuracy

SHORT = {"limit": 4, "format": "plain", "max_new_tokens": 6}


class Engine:
    """A stand-in for an engine and for its class, which gives every prompt the same
    answer and loses the first `loses` prompts.

    calls: the arguments of each call.
    names: the engine names under which it was loaded.
    """

    def __init__(self):
        self.text = "1"
        self.loses = 0
        self.calls = []
        self.names = []
        self.after = lambda: None  # called when all prompts are answered

    def load(self, loaded):
        return loaded

    def __call__(self, loaded, *options):
        return self

    def complete(self, requests, sampling):
        self.calls.append((requests, sampling))
        for request in requests[self.loses :]:
            yield Completion(
                key=request.key,
                text=self.text,
                finish_reason="stop",
                prompt_tokens=len(request.input_ids),
                completion_tokens=1,
                processor="CPU",
            )
        self.after()


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()

    def load(name):
        engine.names.append(name)
        return engine

    monkeypatch.setattr(module, "engine_class", load)
    return engine


@pytest.fixture
def answered(tiny_llama, tmp_path):
    """A function that returns the answers of a run under none and these conditions,
    with the settings of SHORT and these changes.
    """

    def run(*conditions, folder="out", seed=0, shard=(1, 1), filler=None, **changes):
        settings = SHORT | {"conditions": ["none", *conditions]} | changes
        accuracy = Accuracy(models=[str(tiny_llama)], **settings)
        filler = filler or Filler()
        return module.evaluate(accuracy, filler, seed, tmp_path / folder, shard)

    return run


def rows_in(folder):
    return read(folder / "completions.jsonl")


GRADES = (
    "correct",
    "correct_exact",
    "correct_authors",
    "correct_authors_on_completion",
    "run_on",
)


@pytest.mark.parametrize(
    "text, grades",
    [
        # If an answer has no box, the authors' rule finds the empty box of the prompt;
        # and it accepts a part of the answer.
        ("", [False, False, True, False, False]),
        (r"within \boxed{}. What is 1 + 1?", [False, False, True, True, False]),
        ("broken\ud800 \\boxed{\udfff}", [False, False, False, False, False]),
        (r"It is \boxed{1}.", [False, False, True, True, False]),
        (r"It is \boxed{12.0}.", [True, False, False, False, False]),
        (
            "It is \\boxed{12}.\n\nProblem: What is $1 + 1$?\nSolution: \\boxed{2}",
            [True, True, True, True, True],
        ),
    ],
)
def test_any_response_is_stored_and_graded_by_each_rule(
    answered, tmp_path, engine, text, grades
):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({"problem": "What is $6 + 6$?", "answer": "12"}))
    engine.text = text
    once = answered(problems=str(path))
    assert_frame_equal(once, answered(problems=str(path)))
    (row,) = once.to_dict("records")
    assert [row[name] for name in GRADES] == grades
    assert row["response"] == text


def test_an_answer_is_graded_while_the_engine_generates(answered, engine, monkeypatch):
    continues = threading.Event()

    def grade_when_it_continues(*pair):
        assert continues.wait(10), "the engine waits for a grade"
        return grade(*pair)

    monkeypatch.setattr(module, "grade", grade_when_it_continues)
    engine.after = continues.set
    assert len(answered()) == 4


def test_a_graded_answer_is_written_before_the_engine_finishes(
    answered, tmp_path, engine
):
    # Otherwise a killed process would lose graded answers.
    path = tmp_path / "out" / "completions.jsonl"

    def see_all_written():
        deadline = time.monotonic() + 60
        while path.read_bytes().count(b"\n") < 4:
            assert time.monotonic() < deadline, "graded answers are not written"
            time.sleep(0.01)

    engine.after = see_all_written
    answered()


def test_an_interruption_loses_no_answer(answered, tmp_path, engine, monkeypatch):
    def grade_late(*pair):
        time.sleep(0.3)
        return grade(*pair)

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "grade", grade_late)
    engine.after = interrupt
    with pytest.raises(KeyboardInterrupt):
        answered()
    assert len(rows_in(tmp_path / "out")) == 4


def test_an_engine_receives_the_prompts_and_sampling_of_the_settings(answered, engine):
    answers = answered("mless:5", seed=3, temperature=0.7, top_p=0.9, samples=3)
    answered(folder="elicited", elicit=True, elicit_tokens=4)
    (requests, sampling), (_, elicited) = engine.calls
    assert sampling == Sampling(6, 0.7, 0.9)
    assert elicited == Sampling(6, 0.0, 1.0, module.ELICITATION, 4)
    drawn = load_problems("embedded", 4, seed=3)
    assert answers.problem_id.unique().tolist() == [problem.id for problem in drawn]
    assert drawn != load_problems("embedded", 4, seed=0)
    counts = answers.groupby(["condition", "sample"]).size()
    assert counts.tolist() == [4] * 6
    assert {request.key for request in requests} == set(answers.key)
    # The seed of a sample depends only on its key.
    seeds = {request.key: request.seed for request in requests}
    assert len(set(seeds.values())) == 24
    assert all(f"{seed:016x}"[1:] == key[1:] for key, seed in seeds.items())


def test_a_row_has_the_documented_fields_with_its_dtype_and_processor(
    answered, tmp_path, engine
):
    answered("arm", temperature=0.7, dtype="bfloat16")
    rows = {row["condition"]: row for row in rows_in(tmp_path / "out")}
    assert list(rows["arm"]) == FIELDS
    assert list(rows["none"]) == [name for name in FIELDS if name != "arm"]
    assert (rows["arm"]["dtype"], rows["arm"]["processor"]) == ("bfloat16", "CPU")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["settings"]["dtype"] == "bfloat16"
    assert "torch" in run["environment"]
    # Token ids are stored only for sampled answers.
    answered(folder="greedy")
    assert not any("token_ids" in row for row in rows_in(tmp_path / "greedy"))


def test_a_row_records_the_arm_settings_of_its_condition_over_the_models(
    answered, tmp_path, engine
):
    conditions = "arm", "mless:5+arm", "arm:c=1:p1=90:layer=2:mode=code"
    answered(*conditions)
    rows = {row["key"]: row for row in rows_in(tmp_path / "out")}
    for request in engine.calls[0][0]:
        settings = request.arm and request.arm.model_dump()
        assert settings == rows[request.key].get("arm")
    (problem, *_) = (row["problem_id"] for row in rows.values())
    by_condition = {
        row["condition"]: row for row in rows.values() if row["problem_id"] == problem
    }
    arm, both, code = (by_condition[name]["arm"] for name in conditions)
    assert arm["c"] == both["c"] == 0.13
    assert (code["c"], code["mode"], code["layer"]) == (1, "code", 2)

    # Their prompts are the same as under none and mless.
    plain = by_condition["none"]["prompt_tokens"]
    tokens = [by_condition[name]["prompt_tokens"] for name in conditions]
    assert tokens == [plain, plain + 5, plain]


@pytest.mark.parametrize("gpus, device", [(1, "cuda"), (0, "cpu")])
def test_workers_generate_on_their_gpus_whether_or_not_this_machine_has_one(
    answered, engine, monkeypatch, gpus, device
):
    hired = []

    @contextmanager
    def hire(count, gpus_per_worker, loaded, *_):
        hired.append((count, gpus_per_worker, loaded.device))
        yield engine

    instead = SimpleNamespace(Workers=hire)
    monkeypatch.setitem(sys.modules, "lib.generation.workers", instead)
    answered(workers=2, gpus_per_worker=gpus)
    assert hired == [(2, gpus, device)]


def test_prompts_that_an_engine_loses_are_counted_and_retried_by_the_next_run(
    answered, engine, refused, capsys, monkeypatch
):
    engine.loses = 3
    message = refused(answered)
    assert message == "3 prompts failed; all others are done; run again to retry"
    engine.loses = 0
    monkeypatch.setattr(progress, "shown", True)
    assert len(answered()) == 4
    assert "4/4" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    "setting, value, package", [("workers", 2, "ray"), ("engine", "vllm", "vllm")]
)
def test_a_package_that_is_not_installed_is_named_in_one_line(
    answered, tmp_path, monkeypatch, refused, setting, value, package
):
    monkeypatch.setitem(sys.modules, package, None)
    for part in ("workers", "vllm"):
        monkeypatch.delitem(sys.modules, f"lib.generation.{part}", raising=False)
    command = f"pip install --no-deps -r requirements/{package}.txt"
    assert command in refused(answered, **{setting: value})
    assert package == "ray" or not (tmp_path / "out").exists()


# Settings of a second run in the folder of a first one with four answers under each of
# two conditions, and the number of answers that it generates.
SECOND_RUNS = [
    ({}, 0),
    ({"limit": 2}, 0),
    ({"limit": 6}, 4),
    ({"conditions": ["none"]}, 0),
    ({"conditions": ["none", "mless:05"]}, 0),
    ({"conditions": ["none", "mless:5", "mful"]}, 4),
    ({"batch_size": 3}, 0),
    ({"max_new_tokens": 7}, 8),
    ({"temperature": 0.7}, 8),
    ({"format": "chat"}, 8),
    ({"dtype": "bfloat16"}, 8),
    ({"dtype": "float32"}, 0),
    ({"engine": "vllm"}, 8),
    ({"elicit": True}, 8),
    ({"format": "chat", "examples": [{"problem": "1 + 1?", "solution": "$2$"}]}, 8),
    ({"filler": Filler(mless="!")}, 4),
    ({"filler": Filler(mful="!")}, 0),
    ({"filler": Filler(length=4)}, 0),
]


@pytest.mark.parametrize("changes, generated", SECOND_RUNS)
def test_a_second_run_generates_what_is_new_and_keeps_all_that_is_stored(
    answered, tmp_path, engine, changes, generated
):
    answered("mless:5")
    before = rows_in(tmp_path / "out")
    engine.calls.clear()
    changes = {"conditions": ["none", "mless:5"]} | changes
    answers = answered(**changes)
    assert sum(len(requests) for requests, _ in engine.calls) == generated
    after = rows_in(tmp_path / "out")
    assert after[: len(before)] == before
    assert len(after) == len(before) + generated
    limit, conditions = changes.get("limit", 4), changes["conditions"]
    assert len(answers) == limit * len(conditions)
    engine.calls.clear()
    answered("mless:5")  # the first settings find their rows again
    assert not engine.calls


def test_answers_that_another_run_stores_meanwhile_are_not_generated_again(
    answered, engine, monkeypatch
):
    load = module.engine_class

    def meanwhile(name):
        monkeypatch.setattr(module, "engine_class", load)
        answered()
        return load(name)

    monkeypatch.setattr(module, "engine_class", meanwhile)
    answered("mless:5")
    assert [len(requests) for requests, _ in engine.calls] == [4, 4]


def test_one_more_problem_or_a_corrected_answer_computes_one_problem(
    answered, tmp_path, engine
):
    problems = [
        {"unique_id": str(number), "problem": f"What is {number}?", "answer": "1"}
        for number in range(5)
    ]
    file = tmp_path / "mine.jsonl"
    keep(file, problems[:4])
    assert len(answered(problems=str(file))) == 4
    engine.calls.clear()
    keep(file, problems)
    assert len(answered(problems=str(file), limit=None)) == 5
    ((requests, _),) = engine.calls
    assert len(requests) == 1

    engine.text, problems[0]["answer"] = r"\boxed{3}", "3"
    keep(file, problems)
    answers = answered(problems=str(file), limit=None)
    assert answers.set_index("problem_id").correct.to_dict() == {
        str(number): number == 0 for number in range(5)
    }


def test_rows_of_other_settings_or_versions_are_reported_in_one_line(
    answered, tmp_path, engine, capsys
):
    answered()
    assert capsys.readouterr().err == ""
    answered(max_new_tokens=9)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path / 'out'}: none of its 4 rows has these settings")
    answered(max_new_tokens=9)
    assert capsys.readouterr().err == ""


def test_auto_continues_in_the_dtype_of_the_stored_answers(answered, tmp_path, engine):
    answered(dtype="bfloat16")
    answers = answered("mful", dtype="auto")
    assert set(answers.dtype) == {"bfloat16"}
    assert len(engine.calls) == 2


def test_each_shard_returns_the_answers_of_all_shards_so_far(answered):
    assert len(answered(shard=(1, 2))) == 2
    assert len(answered(shard=(2, 2))) == 4
    assert len(answered("mless", shard=(1, 2))) == 6
