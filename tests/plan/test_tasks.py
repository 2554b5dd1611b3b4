"""Tasks counted by hand, on four problems and a model of a hundred parameters."""

import json
from types import SimpleNamespace

import pytest
import yaml
from hand_written import keep

from lib import paths
from lib.models.names import resolve
from lib.plan import cost, measuring_tasks, speed
from lib.plan.cost import WORKING_MEMORY
from lib.plan.machine import Machine, processor
from lib.plan.printout import summary
from lib.plan.speed import Speed, Workload, overhead_of, speed_of
from lib.plan.tasks import Task, TaskInputs, tasks_of
from lib.plan.tokens import (
    PROBLEM_CHARACTERS,
    SOLUTION_CHARACTERS,
    inserted_tokens,
)
from lib.plan.weights import Shape
from lib.profiles import Profile
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem

# A token is multiplied with 10 parameters in each of 5 layers, and with 50 in the head.
SHAPE = Shape(embedding=50, layer=10, layers=5, head=50, tied=True)
# Tokens of the problems, and of each one's solution.
ASKED = 10
SOLUTIONS = (20, 20, 20, 30)


def of_tokens(count, characters):
    """Return a text that counts as so many tokens."""
    return "x" * round(characters * count)


PROBLEMS = [
    Problem.model_validate(
        {
            "unique_id": f"own/{number}",
            "problem": of_tokens(ASKED, PROBLEM_CHARACTERS),
            "solution": of_tokens(tokens, SOLUTION_CHARACTERS),
            "answer": "1",
            "level": 1 + number % 2,
        }
    )
    for number, tokens in enumerate(SOLUTIONS)
]
PROFILE = {
    "name": "by-hand",
    "description": "plain prompts of 30 tokens, of which the instruction has 20",
    "filler": {"length": 7},
    "attention": {"models": ["demo"], "layers": 2},
    "accuracy": {
        "models": ["demo"],
        "format": "plain",
        "levels": [1],
        "conditions": ["none", "mless"],
        "max_new_tokens": 10,
        "temperature": 1.0,
        "samples": 2,
    },
    "likelihood": {
        "models": ["demo"],
        "format": "plain",
        "conditions": ["none", "mless"],
        "at_once": ["none"],
        "max_solution_tokens": 20,
    },
    "pass_rates": {
        "models": ["demo"],
        "format": "plain",
        "limit": 3,
        "conditions": ["none", "mless", "gap"],
        "samples": 4,
        "max_new_tokens": 12,
    },
}


@pytest.fixture
def count(tmp_path, monkeypatch):
    """What counts the tasks of PROFILE by name, with other settings of its answers;
    nothing is stored.
    """
    resolve("demo")  # while the file of models is at hand
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")

    def tasks_with(fresh=False, **changes):
        accuracy = PROFILE["accuracy"] | changes
        profile = Profile.model_validate(PROFILE | {"accuracy": accuracy})
        problems = {"embedded": PROBLEMS}
        inputs = TaskInputs(profile, {"demo": SHAPE}, problems, fresh)
        return {task.name: task for task in tasks_of(inputs)}

    return tasks_with


@pytest.fixture
def tasks(count):
    return count()


# Prompts, and tokens times the parameters that each is multiplied with.
MEASURED = {
    # One prompt under none and three insertions, in two layers.
    "tokens": (4, 4 * 20),
    # Four prompts under three insertions in two layers, and the causes of the slashes,
    # which are four more forwards of one layer each.
    "attention": (12 + 4, 12 * 20 + 4 * 4 * 10),
    "activations": (20, 20 * 20),
    # Of three untrained networks the same, but activations in one layer under three
    # conditions; of other keys and even attention the attention alone.
    "controls": (
        3 * (12 + 4 + 12) + 2 * 12,
        3 * (12 * 20 + 4 * 4 * 10 + 12 * 10) + 2 * 12 * 20,
    ),
}


@pytest.mark.parametrize("name, counted", MEASURED.items())
def test_measurements_read_prompts_with_the_filler_through_their_layers(
    tasks, name, counted
):
    prompts, multiplied = counted
    task = tasks[name]
    assert (task.prompts, task.stored, task.layers) == (prompts, 0, 2)
    assert task.tokens == prompts * 37
    assert task.work.read == pytest.approx(2 * 37 * multiplied / 1e9)
    assert task.work.written == 0


def test_answers_are_read_and_written_for_each_sample_of_the_levels_asked_for(tasks):
    # Two problems, two conditions, two samples; 3.5 tokens are inserted on average.
    task = tasks["main"]
    assert task.prompts == 8
    assert task.tokens == 8 * (33.5 + 10)
    assert task.work.read == pytest.approx(2 * 8 * 33.5 * 100 / 1e9)
    # Half of the tokens that an answer may have.
    assert task.work.written == pytest.approx(2 * 8 * 5 * 100 / 1e9)


def test_solutions_that_are_not_too_long_are_scored_and_answers_at_once(tasks):
    # Three problems: under two conditions the solution, under one the answer.
    task = tasks["likelihood"]
    tokens = 6 * (33.5 + 20) + 3 * (30 + 10)
    assert task.prompts == 9
    assert task.tokens == tokens
    assert task.work.read == pytest.approx(2 * tokens * 100 / 1e9)


def test_answers_are_drawn_under_both_halves_and_scored_under_every_condition(tasks):
    # Three problems, four samples of each half, of which half the tokens are written.
    draws = tasks["draws"]
    assert (draws.kind, draws.prompts) == ("answers", 24)
    assert draws.work.read == pytest.approx(2 * 24 * 33.5 * 100 / 1e9)
    assert draws.work.written == pytest.approx(2 * 24 * 6 * 100 / 1e9)

    # Two of three conditions insert seven tokens.
    scores = tasks["draw_scores"]
    tokens = 30 + 14 / 3 + 6
    assert (scores.kind, scores.prompts) == ("likelihood", 72)
    assert scores.tokens == int(72 * tokens)
    assert scores.work.read == pytest.approx(2 * 72 * tokens * 100 / 1e9)
    assert scores.work.written == 0


def test_worked_examples_are_read_before_each_prompt(count):
    problem = of_tokens(ASKED, PROBLEM_CHARACTERS)
    solution = of_tokens(5, SOLUTION_CHARACTERS)
    example = {"problem": problem, "solution": solution}
    with_one = count(format="chat", examples=[example])["main"]
    without = count(format="chat")["main"]
    assert with_one.tokens - without.tokens == 8 * (ASKED + 5)
    assert with_one.longest - without.longest == ASKED + 5


def test_caches_of_as_many_answers_as_grow_at_once_take_memory(count):
    task = count(batch_size=5)["main"]
    assert task.batch_size == 5
    assert task.longest == int(33.5 + 10)
    assert count(batch_size=None)["main"].batch_size == 1
    # Another engine keeps its own.
    assert count(engine="vllm")["main"].batch_size == 0


def test_a_condition_inserts_as_many_tokens_as_it_names_itself():
    names = ("none", "mless", "mless:21")
    conditions = [parse_condition(name) for name in names]
    assert inserted_tokens(Filler(length=7), conditions) == (7 + 21) / 3


# Where a run keeps what a task asks for, and where the repository does.
FILES = """
main | completions.jsonl | answers/main.jsonl.gz
draws | draws/completions.jsonl | answers/draws.jsonl.gz
likelihood | likelihood/scores.jsonl | likelihood/m.jsonl.gz
draw_scores | draw_scores/scores.jsonl | draws/m.jsonl.gz
"""
KEPT = [line.split(" | ") for line in FILES.strip().splitlines()]
# A row that every task asks for, and what makes it another's.
ASKED_FOR = {"model": "SmolLM2-135M-Instruct", "condition": "none", "sample": 0}
ASKED_FOR |= {"problem_id": "own/0", "target": "solution", "response": ""}
ASKED_FOR |= {"correct": True, "completion_tokens": 3}
OF_OTHERS = """
every task: [{model: m}, {condition: mful}, {problem_id: own/9}]
main: [{sample: 2}, {problem_id: own/1}]
draws: [{sample: 4}]
likelihood: [{target: answer, condition: mless}]
draw_scores: []
"""


@pytest.mark.parametrize("name, file, _", KEPT)
def test_of_what_is_kept_only_what_is_asked_for_is_not_left(count, name, file, _):
    whole = count()[name]
    rows = [ASKED_FOR]
    changes = yaml.safe_load(OF_OTHERS)
    for change in [*changes["every task"], *changes[name]]:
        rows.append(ASKED_FOR | change)
    keep(paths.RESULTS / "by-hand" / file, rows)
    task = count()[name]
    assert task.prompts == whole.prompts
    assert task.stored == 1
    left = 1 - 1 / whole.prompts
    assert task.work.read == pytest.approx(left * whole.work.read)
    assert count(fresh=True)[name].stored == 0


def test_a_condition_that_is_measured_counts_for_all_of_its_prompts(count, monkeypatch):
    done = {"trained: attention: mless"}
    monkeypatch.setattr(measuring_tasks, "_done", lambda *_: done)
    task = count()["attention"]
    assert task.prompts == 16
    assert task.stored == 4


@pytest.mark.parametrize("name", ["likelihood", "draw_scores"])
def test_a_model_read_in_turns_needs_its_embedding_and_two_layers(monkeypatch, name):
    monkeypatch.setattr(cost, "speed_of", lambda machine, dtype: Speed(2.0, 1.0))
    monkeypatch.setattr(cost, "overhead_of", lambda kind: (1.5, False))
    shape = Shape(embedding=10**8, layer=10**8, layers=50, head=10**8, tied=True)
    work = Workload(read=8.0, written=3.0)
    task = Task(name, "demo", 3, 0, 100, work, dtype="bfloat16")
    machine = Machine(device="cpu", memory=10**10, disk=10**12)
    taken = cost.cost_of(task, shape, machine)
    assert taken.streamed
    assert taken.memory == 2 * 3 * 10**8 + WORKING_MEMORY
    assert taken.products == 7.0
    assert taken.seconds == 10.5


def test_a_model_without_its_output_head_takes_no_memory_for_it(monkeypatch):
    monkeypatch.setattr(cost, "speed_of", lambda machine, dtype: Speed(1.0, 1.0))
    shape = Shape(embedding=7, layer=10, layers=5, head=50, tied=False)
    machine = Machine(device="cpu", memory=10**10, disk=10**12)
    task = Task("attention", "demo", 3, 0, 100, Workload(), head=False, dtype="float32")
    taken = cost.cost_of(task, shape, machine)
    assert taken.memory == 4 * (7 + 5 * 10) + WORKING_MEMORY


def test_a_speed_is_timed_once_for_each_dtype(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    timed = []
    monkeypatch.setattr(speed, "_timed", lambda *how: timed.append(how) or len(timed))
    machine = Machine(device="cpu", memory=10**10, disk=10**12)
    first = speed_of(machine, "float32")
    assert first == Speed(1, 2)
    assert speed_of(machine, "bfloat16") == Speed(3, 4)
    assert speed_of(machine, "float32") == first


def test_an_overhead_is_the_median_of_this_processors_last_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)

    def run(ratio, kind="answers", name=None):
        row = {"kind": kind, "products": 2.0, "seconds": 2.0 * ratio}
        return json.dumps(row | {"processor": name or processor()}) + "\n"

    last = [run(ratio) for ratio in (4, 9, 3, 1, 2)]
    others = [run(7, kind="tokens"), run(8, name="another")]
    (tmp_path / "runs.jsonl").write_text("".join([run(50), *last, *others]))
    assert overhead_of("answers") == (3, True)
    assert overhead_of("likelihood") == (speed.OVERHEADS["likelihood"], False)


@pytest.mark.parametrize(
    "learned, basis",
    [([True, True], "its last runs"), ([True, False], "a trial of ten seconds")],
)
def test_a_plan_says_whether_all_of_its_time_is_known_from_runs(learned, basis):
    plan = SimpleNamespace(prompts=5, bytes_to_fetch=0, seconds=600)
    plan.left = [SimpleNamespace(learned=one) for one in learned]
    assert summary(plan).endswith(
        f"5 prompts, about 10 minutes on this machine, by {basis}"
    )


def test_a_plan_of_seconds_says_under_a_minute():
    plan = SimpleNamespace(prompts=5, bytes_to_fetch=0, seconds=6, left=[])
    assert "5 prompts, under a minute on this machine" in summary(plan)
