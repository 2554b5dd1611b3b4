"""What a profile asks for is what is stored with the repository, key by key: a key that
moved would lose its answer.
"""

from dataclasses import replace

import pytest

from lib import evaluation
from lib.evaluation.plan import completions_wanted
from lib.evaluation.store import read
from lib.models.loading import load_without_weights
from lib.profiles import PARTS, load_profile, variation
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import Problem, load_problems

DEMO, FAMILIES = load_profile("demo"), load_profile("families")


@pytest.fixture(scope="module")
def demo():
    return load_without_weights("demo", device="cpu")


@pytest.mark.parametrize("part", ["main", *PARTS])
def test_stored_completions_keep_their_keys(demo, part):
    accuracy = DEMO.accuracy if part == "main" else variation(DEMO.accuracy, part)
    problems = load_problems(
        accuracy.problems, accuracy.limit, DEMO.seed, accuracy.levels
    )
    every, stored = (
        len(problems),
        read(evaluation.stored_file(DEMO, part)),
    )
    problems = problems[
        :: 1 if part == "main" else 6
    ]  # the others' prompts take seconds
    asked = completions_wanted(demo, accuracy, DEMO.filler, DEMO.seed, problems)
    chosen = {problem.id for problem in problems}
    there = {
        r["key"]: (r["problem_id"], r["condition"], r["sample"])
        for r in stored
        if r["problem_id"] in chosen
    }
    assert len(stored) == every * len(accuracy.conditions) * accuracy.samples
    assert {
        key: (one.problem.id, str(one.condition), one.sample)
        for key, one in asked.items()
    } == there
    assert list(asked) == list(there)  # in the order in which a run asks
    assert list(evaluation.answers(DEMO, part).key) == [one["key"] for one in stored]


def test_the_keys_of_families_stand_for_the_same_settings(demo):
    """Their prompts hold MATH-500: here a problem of our own, as if the demo's
    tokenizer were that model's.
    """
    name = "Qwen2.5-Coder-0.5B-Instruct"
    model = replace(demo, name=name, spec=name, revision="e5dcb423ee6d")
    problem = Problem(unique_id="own/1", problem="What is $1 + 1$?", answer="2")
    accuracy = FAMILIES.accuracy.model_copy(
        update={"conditions": [*map(parse_condition, ("none", "mless", "arm"))]}
    )
    asked = completions_wanted(
        model, accuracy, FAMILIES.filler, FAMILIES.seed, [problem]
    )
    keys = {str(one.condition): key for key, one in asked.items()}
    assert keys == {
        "none": "3a2d39b9da57b41f",
        "mless": "fef3ec890b02376b",
        "arm": "50cd680f3e5cd85b",
    }
    assert [one.arm and one.arm.c for one in asked.values()] == [None, None, 0.13]


def test_texts_are_compared_where_problem_and_condition_are_the_same():
    answers = evaluation.answers(DEMO)[:20]
    assert evaluation.same_texts(DEMO, answers) == (20, 20)
    answers.loc[0, "response"], answers.loc[2, "condition"] = "other", "he"
    assert evaluation.same_texts(DEMO, answers[:3]) == (1, 2)
