"""What a profile asks for is what is stored with the repository, key by key: a key that
moved would lose its answer.
"""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from lib import evaluation, paths
from lib.evaluation.likelihood import texts_wanted
from lib.evaluation.log_probability import score_key
from lib.evaluation.store import read
from lib.evaluation.wanted import completions_wanted
from lib.models.loading import Loaded, load_without_weights
from lib.models.names import resolve
from lib.profiles import Likelihood, load_profile, variation
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
    return replace(demo, source=resolve("Qwen2.5-Coder-0.5B-Instruct"))


@pytest.mark.parametrize("part", ["main", *DEMO.accuracy.variations])
def test_stored_completions_keep_their_keys(demo, part):
    accuracy = DEMO.accuracy if part == "main" else variation(DEMO.accuracy, part)
    problems = load_problems(
        accuracy.problems, accuracy.limit, DEMO.seed, accuracy.levels
    )
    stored = read(paths.DATA / "demo" / "answers" / f"{part}.jsonl.gz")
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


DRAW_KEY = "ae19ab7a063bdede"


def test_a_score_of_a_draw_keeps_its_key(coder):
    likelihood = Likelihood(models=["demo"], conditions=["none"])
    (solution,) = texts_wanted(coder, likelihood, Filler(), [PROBLEM]).values()
    draw = {"answer": "0123456789abcdef", "sample": 0, "temperature": 0.5}
    text = replace(solution, target="draw", draw=draw)
    assert score_key(coder, text) == DRAW_KEY
    # How it was drawn is told and decides nothing.
    told = draw | {"sample": 3, "drawn_under": "mless"}
    assert score_key(coder, replace(text, draw=told)) == DRAW_KEY
    for name, value in {"answer": "other", "temperature": 0.9}.items():
        other = replace(text, draw=draw | {name: value})
        assert score_key(coder, other) != DRAW_KEY


# Of a model: another value, and whether its numbers hang on it. What hangs on a
# profile's settings is in `test_settings_reach_numbers`.
MODELS = [
    ("dtype", "bfloat16", True),
    ("device", "cuda", False),
    ("model", None, False),
    # It is known by the tokens of the prompt.
    ("tokenizer", None, False),
]
# The same of where it comes from.
SOURCES = [
    ("name", "other", True),
    ("revision", "other", True),
    ("spec", "folder/of/mine", False),
    ("folder", Path("folder/of/mine"), False),
    ("weights", "dequantised", False),
]


def test_every_field_of_a_model_is_in_a_key_or_is_not(coder):
    assert {field.name for field in fields(Loaded)} == {
        "source",
        *(name for name, _, _ in MODELS),
    }
    likelihood = Likelihood(models=["demo"], conditions=["none"])
    ((key, text),) = texts_wanted(coder, likelihood, Filler(), [PROBLEM]).items()
    for name, value, decides in MODELS:
        other = score_key(replace(coder, **{name: value}), text)
        assert (other != key) is decides, name
    for name, value, decides in SOURCES:
        source = replace(coder.source, **{name: value})
        assert (score_key(replace(coder, source=source), text) != key) is decides, name
