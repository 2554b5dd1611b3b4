"""A plan as text, line by line."""

import pytest

from lib.plan.cost import Cost
from lib.plan.machine import Machine
from lib.plan.planning import Plan
from lib.plan.printout import as_text, summary
from lib.plan.speed import Workload
from lib.plan.task import Task
from lib.plan.weights import ModelWeights
from lib.profiles import Profile

GB = 10**9
PROFILE = Profile.model_validate(
    {
        "name": "by-hand",
        "description": "three models",
        "attention": {"models": ["org/one"], "layers": 2},
        "accuracy": {"models": ["org/two"], "conditions": ["none", "mless"]},
    }
)
WEIGHTS = [
    ModelWeights("org/one", "one", None, here=3 * GB),
    ModelWeights("org/two", "two", None, gated=True),
    ModelWeights("org/done", "done", None, here=GB),
]
MACHINE = Machine(device="cpu", memory=16 * GB, disk=70 * GB)


def cost(name, model, counts, seconds, memory, streamed=False, layers=None):
    """Return what a task takes of so many prompts, of a hundred tokens each, of which
    so many are stored.
    """
    prompts, stored = counts
    work = Workload()
    task = Task(name, model, prompts, stored, 100 * prompts, work, layers)
    products = seconds / 2
    return Cost(task, products, seconds, True, streamed, memory * GB)


COSTS = [
    cost("tokens", "org/one", (4, 0), 130, 2, layers=2),
    cost("attention", "org/one", (16, 2), 9000, 5, layers=2),
    cost("likelihood", "org/one", (1200, 20), 600, 4, streamed=True),
    cost("draw_scores", "org/two", (30, 30), 0, 11),
    cost("likelihood", "org/two", (30, 10), 3, 9),
    cost("likelihood", "org/done", (9, 9), 0, 8),
]


def plan_of(*costs, unfit=()):
    to_fetch = {"org/one": 2 * GB, "org/two": 7 * GB, "org/done": 0}
    return Plan(PROFILE, MACHINE, WEIGHTS, to_fetch, list(costs), [], [*unfit])


def blocks_of(plan):
    return as_text(plan).split("\n\n")


ALL = plan_of(*COSTS, unfit=["it is too large", "it is too large"])


def test_of_each_model_that_something_is_left_for_a_line_says_what_it_weighs():
    models = """\
model  licence  to fetch  here    memory  read
one    open     2.0 GB    3.0 GB  5.0 GB  first 2 layers, one layer at a time
two    gated    7.0 GB    0.0 GB  9.0 GB  whole"""
    assert blocks_of(ALL)[1] == models


def test_of_each_step_a_line_says_what_is_left_and_how_long_that_takes():
    steps = """\
step                   model  prompts  stored  tokens at most  time
tokens of one problem  one    4        0       400             2 minutes
attention              one    16       2       1,600           2.5 hours
likelihood             one    1,200    20      120,000         10 minutes
their likelihood       two    30       30      3,000           -
likelihood             two    30       10      3,000           under a minute
likelihood             done   9        9       900             -"""
    assert blocks_of(ALL)[2] == steps


def test_around_its_tables_a_plan_says_what_for_on_what_and_in_short():
    title, *_, outcome, refused, short = blocks_of(ALL)
    assert title == "by-hand: three models"
    assert outcome.splitlines()[0] == (
        "this machine: cpu, 16.0 GB of memory and 70.0 GB of disk free"
    )
    assert "decides by likelihood: nothing" in outcome.splitlines()
    assert refused == "refused: it is too large"
    assert short == summary(ALL)


def test_where_everything_is_stored_no_model_is_listed():
    title, steps, *_ = blocks_of(plan_of(COSTS[3], COSTS[5]))
    assert title == "by-hand: three models"
    assert steps.startswith("step ")


@pytest.mark.parametrize(
    "seconds, time",
    [(59, "under a minute"), (60, "about 1 minute"), (7200, "about 2.0 hours")],
)
def test_a_summary_says_what_is_fetched_and_computed_and_how_long(seconds, time):
    plan = plan_of(cost("likelihood", "org/one", (1500, 200), seconds, 4))
    assert summary(plan) == (
        f"Plan: 9.0 GB to fetch, 1,300 prompts, {time} on this machine, by its last"
        " runs"
    )
