"""What a profile asks for is what is stored with the repository, key by key: a key that
moved would lose its answer.
"""

from dataclasses import replace

import pytest

from lib import evaluation
from lib.evaluation.likelihood import texts_wanted
from lib.evaluation.plan import completions_wanted
from lib.evaluation.store import read
from lib.models.loading import load_without_weights
from lib.profiles import PARTS, Likelihood, load_profile, variation
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem, load_problems

DEMO = load_profile("demo")
FAMILIES = load_profile("families")
# A problem of our own: the prompts of the stored answers hold MATH-500.
PROBLEM = Problem(
    unique_id="own/1",
    problem="What is $1 + 1$?",
    answer="2",
    solution="It is $\\boxed{2}$.",
)


@pytest.fixture(scope="module")
def demo():
    return load_without_weights("demo", device="cpu")


@pytest.fixture(scope="module")
def coder(demo):
    """The demo's tokenizer, as if it were that of a model of families."""
    name = "Qwen2.5-Coder-0.5B-Instruct"
    return replace(demo, name=name, spec=name, revision="e5dcb423ee6d")


@pytest.mark.parametrize("part", ["main", *PARTS])
def test_stored_completions_keep_their_keys(demo, part):
    accuracy = DEMO.accuracy if part == "main" else variation(DEMO.accuracy, part)
    problems = load_problems(
        accuracy.problems, accuracy.limit, DEMO.seed, accuracy.levels
    )
    stored = read(evaluation.stored_file(DEMO, part))
    assert len(stored) == len(problems) * len(accuracy.conditions) * accuracy.samples

    # The prompts of the longer parts take seconds.
    chosen = problems if part == "main" else problems[::6]
    wanted = completions_wanted(demo, accuracy, DEMO.filler, DEMO.seed, chosen)
    places = {
        key: (completion.problem.id, str(completion.condition), completion.sample)
        for key, completion in wanted.items()
    }
    ids = {problem.id for problem in chosen}
    expected = {
        row["key"]: (row["problem_id"], row["condition"], row["sample"])
        for row in stored
        if row["problem_id"] in ids
    }
    assert places == expected
    assert list(places) == list(expected)  # in the order in which a run asks
    answers = evaluation.answers(DEMO, part)
    assert answers.key.tolist() == [row["key"] for row in stored]


def test_the_keys_of_families_stand_for_the_same_settings(coder):
    conditions = [parse_condition(name) for name in ("none", "mless", "arm")]
    accuracy = FAMILIES.accuracy.model_copy(update={"conditions": conditions})
    wanted = completions_wanted(
        coder, accuracy, FAMILIES.filler, FAMILIES.seed, [PROBLEM]
    )
    keys = {str(completion.condition): key for key, completion in wanted.items()}
    assert keys == {
        "none": "3a2d39b9da57b41f",
        "mless": "fef3ec890b02376b",
        "arm": "50cd680f3e5cd85b",
    }
    arms = [completion.arm for completion in wanted.values()]
    assert [arm and arm.c for arm in arms] == [None, None, 0.13]


def score_keys(loaded, problem=PROBLEM, **settings):
    """Return the keys of a problem's scores by target and condition."""
    likelihood = Likelihood(models=["demo"], **settings)
    wanted = texts_wanted(loaded, likelihood, Filler(), [problem])
    return {(text.target, str(text.condition)): key for key, text in wanted.items()}


def test_scores_keep_their_keys(coder):
    keys = score_keys(
        coder, conditions=["none", "gap", "arm"], at_once=["none", "dots-for-thought"]
    )
    assert keys == {
        ("solution", "none"): "e8c70a5ce2444f09",
        ("solution", "gap"): "2e47f949fa843fa7",
        ("solution", "arm"): "06f192bbf7be16f8",
        ("answer", "none"): "4a4857d3f7cf66dc",
        ("answer", "dots-for-thought"): "dc12e57daeb90fc4",
    }
    plain = score_keys(coder, conditions=["none"], format="plain")
    assert plain == {("solution", "none"): "6449dc20722b8cab"}


@pytest.mark.parametrize(
    "change", [{"revision": "other"}, {"dtype": "bfloat16"}, {"name": "other"}]
)
def test_scores_of_other_weights_have_other_keys(coder, change):
    both = {"conditions": ["none"], "at_once": ["none"]}
    keys = score_keys(coder, **both)
    others = score_keys(replace(coder, **change), **both)
    assert not set(keys.values()) & set(others.values())


def test_another_solution_or_another_lead_has_another_key(coder):
    longer = PROBLEM.model_copy(update={"solution": "It is two: $\\boxed{2}$."})
    settings = {"conditions": ["none"], "at_once": ["none", "dots-for-thought"]}
    keys = score_keys(coder, **settings)
    others = score_keys(coder, longer, **settings)
    assert keys["solution", "none"] != others["solution", "none"]
    assert keys["answer", "none"] == others["answer", "none"]
    # As many dots as the longer solution has tokens stand before the same answer.
    place = ("answer", "dots-for-thought")
    assert keys[place] != others[place]


def test_texts_are_compared_where_problem_and_condition_are_the_same():
    answers = evaluation.answers(DEMO)[:20]
    assert evaluation.same_texts(DEMO, answers) == (20, 20)
    answers.loc[0, "response"] = "other"
    answers.loc[2, "condition"] = "he"
    assert evaluation.same_texts(DEMO, answers[:3]) == (1, 2)
