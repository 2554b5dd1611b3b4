"""What is advised, with the numbers that follow from tasks counted by hand."""

import pytest

from lib.plan import quicker as module
from lib.plan.cost import WORKING_MEMORY, Cost
from lib.plan.machine import Machine
from lib.plan.planning import Plan
from lib.plan.quicker import quicker
from lib.plan.speed import Speed, Workload
from lib.plan.task import Task
from lib.plan.weights import ModelWeights, Shape
from lib.profiles import Profile

CPU = Machine(device="cpu", memory=10**12, disk=10**12)
PROFILE = Profile.model_validate(
    {
        "name": "by-hand",
        "description": "two models, two conditions, two samples",
        "attention": {"models": ["org/small"]},
        "accuracy": {
            "models": ["org/small", "org/large"],
            "conditions": ["none", "mless"],
            "samples": 2,
            "temperature": 1.0,
            "batch_size": 64,
        },
    }
)
# Ten and a hundred numbers of cache for a token.
SMALL = Shape(embedding=10**8, layer=10**8, layers=5, head=0, tied=True, cache=10)
LARGE = Shape(embedding=10**8, layer=10**8, layers=50, head=0, tied=True, cache=100)


def task(name, model="org/small", prompts=8, stored=0, read=0.0, **more):
    settings = {"dtype": "bfloat16"} | more
    return Task(name, model, prompts, stored, 100, Workload(read), **settings)


def advice(*tasks, seconds=0.0, machine=CPU):
    """Return what is advised where each of the tasks takes so many seconds."""
    costs = [Cost(one, 0.0, seconds, True, False, 0) for one in tasks]
    weights = [
        ModelWeights("org/small", "small", SMALL, size=12 * 10**8),
        ModelWeights("org/large", "large", LARGE, size=102 * 10**8),
    ]
    return list(quicker(Plan(PROFILE, machine, weights, {}, costs, [], [])))


# Seconds of two tasks in float32, and of the products of each in bfloat16.
BFLOAT16 = [
    (600, 200, ["10 minutes instead of 20 minutes"]),
    (1800, 1000, []),  # 1.2 times as fast
    (200, 100, []),  # 100 seconds less
]


@pytest.mark.parametrize("seconds, products, said", BFLOAT16)
def test_bfloat16_is_worth_saying_where_it_is_faster_and_saves_minutes(
    monkeypatch, seconds, products, said
):
    monkeypatch.setattr(module, "speed_of", lambda machine, dtype: Speed(2.0, 1.0))
    monkeypatch.setattr(module, "overhead_of", lambda kind: (1.5, True))
    single = task("main", read=2.0 * products, dtype="auto")
    half = task("main", read=2.0 * products)
    expected = [f"--dtype bfloat16 answers in {times} here" for times in said]
    assert advice(single, half, single, seconds=seconds) == expected


# How many answers of a hundred tokens a GPU has room for, and what is said of it.
ROOM = [(83, []), (84, ["batch_size 84 fits, the profile has 64"])]


@pytest.mark.parametrize("room, said", ROOM)
def test_a_larger_batch_fits_beside_the_weights_of_every_model(room, said):
    answers = room * 100 * LARGE.cache * 2
    memory = int(2 * LARGE.parameters() + answers + WORKING_MEMORY)
    gpu = Machine(device="cuda", memory=memory, disk=10**12)
    small = task("main", longest=100, batch_size=64)
    large = task("main", "org/large", longest=100, batch_size=64)
    assert advice(small, large, machine=gpu) == said


def test_fewer_problems_are_enough_for_a_difference_of_four_points():
    # Two conditions, and two samples each.
    (said,) = advice(task("main", prompts=4 * 500))
    assert said == (
        "--limit 264 tells differences in accuracy to within 4 points, all 500 to"
        " within 2.9"
    )
    assert not advice(task("main", prompts=4 * 264))


@pytest.mark.parametrize("name", ["draws", "likelihood", "sampling"])
def test_only_the_main_answers_are_advised_to_be_fewer(name):
    assert not advice(task(name, prompts=4 * 500))


def test_first_layers_of_a_model_that_is_needed_whole_are_fetched_twice():
    first = task("attention", layers=3)
    whole = task("likelihood")
    # The embedding and three layers, at two bytes.
    assert advice(first, first, whole) == [
        "`python -m lib fetch` first saves 0.8 GB: first layers are then read from the"
        " whole model"
    ]
    assert not advice(first)
    assert not advice(whole)
    assert not advice(first, task("likelihood", "org/large"))
    assert not advice(first, task("likelihood", stored=8))
