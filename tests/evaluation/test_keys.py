"""The keys of a profile's answers and scores equal those of the repository's stored
rows: a row whose key changes is lost.
"""

import copy
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lib.files.text_files import read
from lib.models.loading import Loaded, load_without_weights
from lib.models.sources import resolve
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem, load_problems
from reproduction import evaluation, paths
from reproduction.evaluation.row_keys import arm_of, completions_wanted
from reproduction.evaluation.score_run import score_key
from reproduction.evaluation.scored_texts import texts_wanted
from reproduction.profiles import Accuracy, Likelihood, load_profile

DEMO = load_profile("demo")
# Keys depend on the prompt, and problems of MATH-500 may not be in the repository.
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
    """The demo model's tokenizer under the name of a model of the families profile."""
    return replace(demo, source=resolve("Qwen2.5-Coder-0.5B-Instruct"))


@pytest.mark.parametrize("part", ["main", *DEMO.accuracy.variations])
def test_stored_completions_keep_their_keys(demo, part):
    accuracy = DEMO.accuracy if part == "main" else DEMO.accuracy.variations[part]
    problems = load_problems(
        accuracy.problems, accuracy.limit, DEMO.seed, accuracy.levels
    )
    stored = read(paths.DATA / "demo" / "answers" / f"{part}.jsonl.gz")
    assert len(stored) == len(problems) * len(accuracy.conditions) * accuracy.samples

    # Building all prompts of the longer parts would take seconds.
    chosen = problems if part == "main" else problems[::6]
    wanted = completions_wanted(demo, accuracy, DEMO.filler, DEMO.seed, chosen)
    expected = [
        (key, completion.problem.id, str(completion.condition), completion.sample)
        for key, completion in wanted.items()
    ]
    ids = {problem.id for problem in chosen}
    columns = ("key", "problem_id", "condition", "sample")
    # The stored rows are in the order in which a run generates.
    assert expected == [
        tuple(row[name] for name in columns)
        for row in stored
        if row["problem_id"] in ids
    ]
    answers = evaluation.answers(DEMO, part)
    assert answers.key.tolist() == [row["key"] for row in stored]


def test_a_condition_overrides_single_arm_settings_of_its_model(demo):
    another = replace(demo, source=resolve("Qwen2.5-Math-7B"))
    arm = arm_of(parse_condition("arm:p1=90"), another)
    assert (arm.c, arm.p1) == (0.1, 90)


def scores_wanted(loaded, **settings):
    """Return by key the texts that are scored for PROBLEM, by default under none."""
    settings = {"conditions": ["none"]} | settings
    likelihood = Likelihood(models=["demo"], **settings)
    return texts_wanted(loaded, likelihood, Filler(), [PROBLEM])


def test_solution_scores_keep_their_keys(coder):
    wanted = scores_wanted(
        coder, conditions=["none", "gap", "arm"], at_once=["none", "dots-for-thought"]
    )
    keys = {f"{text.target} {text.condition}": key for key, text in wanted.items()}
    assert keys == {
        "solution none": "e8c70a5ce2444f09",
        "solution gap": "2e47f949fa843fa7",
        "solution arm": "06f192bbf7be16f8",
        "answer none": "4a4857d3f7cf66dc",
        "answer dots-for-thought": "dc12e57daeb90fc4",
    }
    assert list(scores_wanted(coder, format="plain")) == ["6449dc20722b8cab"]


DRAW_KEY = "ae19ab7a063bdede"


def test_sample_scores_keep_their_keys(coder):
    (solution,) = scores_wanted(coder).values()
    draw = {"answer": "0123456789abcdef", "sample": 0, "temperature": 0.5}
    text = replace(solution, target="draw", draw=draw)
    assert score_key(coder, text) == DRAW_KEY
    # The row records under which prompt an answer was drawn; the key ignores it.
    recorded = draw | {"sample": 3, "drawn_under": "mless"}
    assert score_key(coder, replace(text, draw=recorded)) == DRAW_KEY
    for name, value in {"answer": "other", "temperature": 0.9}.items():
        other = replace(text, draw=draw | {name: value})
        assert score_key(coder, other) != DRAW_KEY


# Another value of each field of a model and of its source.
# `test_settings_reach_numbers` checks how keys depend on a profile's settings.
OF_MODEL = {"dtype": "bfloat16", "device": "cuda", "model": None, "tokenizer": None}
OF_SOURCE = {
    "name": "other",
    "revision": "other",
    "spec": "folder/of/mine",
    "folder": Path("folder/of/mine"),
    "weights": "dequantised",
}


def test_a_key_depends_on_a_models_weights_and_dtype_and_nothing_else_of_it(coder):
    others = {name: replace(coder, **{name: value}) for name, value in OF_MODEL.items()}
    for name, value in OF_SOURCE.items():
        source = coder.source.model_copy(update={name: value})
        others[name] = replace(coder, source=source)
    ((key, text),) = scores_wanted(coder).items()
    decide = {name for name, other in others.items() if score_key(other, text) != key}
    assert decide == {"dtype", "name", "revision"}
    assert {field.name for field in fields(Loaded)} == {"source", *OF_MODEL}


def test_a_model_without_a_chat_template_gets_plain_prompts_and_a_line_says_so(
    demo, capsys
):
    tokenizer = copy.deepcopy(demo.tokenizer)
    tokenizer.chat_template = None
    lacking = replace(demo, tokenizer=tokenizer)
    section = Accuracy(models=["demo"], conditions=["none", "mless:5"], format="chat")
    wanted = completions_wanted(lacking, section, Filler(), 0, [PROBLEM])
    assert [one.prompt.text[:6] for one in wanted.values()] == ["Please", "Please"]
    said = "SmolLM2-135M-Instruct has no chat template, so its prompts are plain, not"
    assert capsys.readouterr().err == f"{said} chat\n"

    section = Likelihood(models=["demo"], conditions=["none"], format="chat")
    texts_wanted(lacking, section, Filler(), [PROBLEM])
    assert capsys.readouterr().err == f"{said} chat\n"
