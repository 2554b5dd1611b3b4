"""Evaluation of any response of an engine, ARM's settings, and runs that continue."""

import json
import sys
import threading
import time

import pytest
import torch
from pandas.testing import assert_frame_equal

from lib import progress
from lib.files.row_store import read_settings
from lib.files.text_files import read
from lib.generation.engine_interface import Completion, Sampling
from lib.grading.worker_pool import grade
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems
from reproduction.evaluation import answer_run as module
from reproduction.evaluation import rows as choice
from reproduction.evaluation.row_keys import recorded_arm
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

    def run(*conditions, folder="out", seed=0, shard=(1, 1), **changes):
        accuracy = Accuracy(
            models=[str(tiny_llama)],
            conditions=["none", *conditions],
            **(SHORT | changes),
        )
        return module.evaluate(accuracy, Filler(), seed, tmp_path / folder, shard)

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
    (summary,) = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["accuracy"] == 100 * grades[0]


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
    assert run["environment"]["dtype"] == "bfloat16"
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
        settings = request.arm and recorded_arm(request.arm)
        assert settings == rows[request.key].get("arm")
    (problem, *_) = (row["problem_id"] for row in rows.values())
    by_condition = {
        row["condition"]: row for row in rows.values() if row["problem_id"] == problem
    }
    arm, both, code = (by_condition[name]["arm"] for name in conditions)
    assert arm["c"] == both["c"] == 0.13
    assert (code["c"], code["mode"], code["layer"]) == (1, "code", 2)
    assert {settings["statistics"] for settings in (arm, both, code)} == {"sequence"}

    # Their prompts are the same as under none and mless.
    plain = by_condition["none"]["prompt_tokens"]
    tokens = [by_condition[name]["prompt_tokens"] for name in conditions]
    assert tokens == [plain, plain + 5, plain]


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


@pytest.fixture
def can_run(monkeypatch, engine):
    """A function that sets the reason why vLLM cannot run here; "" lets it run."""

    def set_reason(reason):
        monkeypatch.setattr(choice, "why_not_vllm", lambda accuracy: reason)

    return set_reason


@pytest.mark.parametrize(
    "reason, conditions, line",
    [
        ("", [], "vllm, because it is installed, and there is a GPU"),
        ("", ["mless", "arm:c=0.1"], "transformers, because arm:c=0.1 needs it"),
        ("it is not", [], "transformers, because it is not"),
    ],
)
def test_engine_auto_is_vllm_if_it_can_run_and_the_run_records_the_choice(
    answered, tmp_path, can_run, capsys, reason, conditions, line
):
    can_run(reason)
    answered(*conditions, engine="auto")
    name = line.split(",")[0]
    assert read_settings(tmp_path / "out")["engine"] == name
    assert f"engine auto: {line}\n" in capsys.readouterr().err
    # The run continues if that engine is named.
    answered("mful", *conditions, engine=name)


def test_a_folder_begun_with_engine_auto_keeps_its_engine_on_another_machine(
    answered, tmp_path, engine, can_run, capsys, refused
):
    can_run("")
    answered(engine="auto")
    can_run("it is not installed")
    answered("mless", engine="auto")
    assert "engine auto: vllm, because the folder" in capsys.readouterr().err
    assert set(engine.names) == {read_settings(tmp_path / "out")["engine"]} == {"vllm"}
    message = refused(answered, "arm", engine="auto")
    assert message.startswith("arm: ")
    assert message.endswith(
        "begun with engine vllm, which does not run ARM: use another folder"
    )


def test_engine_auto_is_refused_with_shards(answered, tmp_path, engine, refused):
    message = refused(answered, engine="auto", shard=(1, 2))
    assert message.endswith("with --shard, give --engine vllm or transformers")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "installed, cuda, workers, gpus, reason",
    [
        (True, True, 0, None, ""),
        (False, True, 0, None, "vLLM is not installed"),
        (True, False, 0, None, "there is no GPU with CUDA"),
        # Workers may have GPUs on other machines; without workers the field is ignored.
        (True, False, 2, 1, ""),
        (True, True, 2, 0, "there is no GPU with CUDA"),
        (True, False, 0, 1, "there is no GPU with CUDA"),
        (True, True, 0, 0, ""),
    ],
)
def test_the_reason_why_vllm_cannot_run_is_named(
    monkeypatch, installed, cuda, workers, gpus, reason
):
    monkeypatch.setattr(
        choice.importlib.util, "find_spec", lambda name: installed or None
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    accuracy = Accuracy(models=["demo"], workers=workers, gpus_per_worker=gpus)
    assert choice.why_not_vllm(accuracy) == reason


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


def test_a_folder_begun_with_worked_examples_is_not_continued_without_them(
    answered, engine, refused
):
    example = {"problem": "What is $1 + 1$?", "solution": "$\\boxed{2}$"}
    # The tiny model's tokenizer has the demo's chat template.
    answered(format="chat", examples=[example])
    message = refused(answered, format="chat")
    assert "was made with examples = " in message
    assert "not (absent)" in message


def test_a_run_is_complete_when_its_last_shard_is(answered, tmp_path, engine):
    summary = tmp_path / "out" / "summary.json"
    assert len(answered(shard=(1, 2))) == 2
    assert not summary.exists()
    assert len(answered(shard=(2, 2))) == 4
    assert summary.exists()
    # Another condition makes the run incomplete again.
    assert len(answered("mless", shard=(1, 2))) == 6
    assert not summary.exists()
