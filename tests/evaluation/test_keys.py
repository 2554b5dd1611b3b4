"""What a profile asks for is what is stored with the repository, key by key: a key that
moved would lose its answer.
"""

from dataclasses import fields, replace
from types import SimpleNamespace

import pytest
import torch

from lib import evaluation, paths
from lib.arm.settings import Arm
from lib.evaluation.likelihood import texts_wanted
from lib.evaluation.scoring import TextToScore, score_key
from lib.evaluation.store import read
from lib.evaluation.wanted import completions_wanted
from lib.models.loading import Loaded, load_without_weights
from lib.models.names import Source, resolve
from lib.profiles import Accuracy, Likelihood, load_profile, variation
from lib.prompts.conditions import Example, Filler, parse_condition
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
    return replace(demo, name=name, source=resolve(name), revision="e5dcb423ee6d")


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


# Of a model: what its numbers hang on, and what it is called or where it lies. The
# tokenizer is known by the tokens of the prompt, and layers by the model.
DECIDING = {"name": "other", "revision": "other", "dtype": "bfloat16"}
NOT_DECIDING = {
    "source": Source("mine", "folder/of/mine"),
    "device": "cuda",
    "weights": "dequantised",
    "model": None,
    "tokenizer": None,
    "layers": 7,
}
OF_LOADED = [(name, value, True) for name, value in DECIDING.items()]
OF_LOADED += [(name, value, False) for name, value in NOT_DECIDING.items()]


def completion_keys(loaded, problem=PROBLEM, seed=0, filler=None, **settings):
    """Return the keys of a problem's completions by condition and sample."""
    conditions = ["none", "mless", "arm"]
    accuracy = Accuracy(models=["demo"], conditions=conditions, **settings)
    filler = filler or Filler()
    wanted = completions_wanted(loaded, accuracy, filler, seed, [problem])
    return {(str(one.condition), one.sample): key for key, one in wanted.items()}


def test_every_field_of_a_model_is_in_its_keys_or_is_not():
    assert {name for name, _, _ in OF_LOADED} == {
        field.name for field in fields(Loaded)
    }


@pytest.mark.parametrize("name, value, deciding", OF_LOADED)
def test_a_key_of_a_score_has_what_decides_of_the_model(coder, name, value, deciding):
    for text in texts_of(coder).values():
        other = score_key(replace(coder, **{name: value}), text)
        assert (other != score_key(coder, text)) is deciding


@pytest.mark.parametrize("name, value", DECIDING.items())
def test_a_key_of_a_completion_has_what_decides_of_the_model(coder, name, value):
    keys = completion_keys(coder)
    others = completion_keys(replace(coder, **{name: value}))
    assert keys.keys() == others.keys()
    assert not set(keys.values()) & set(others.values())


def texts_of(loaded):
    """Return texts that are scored: a solution, one under ARM, and a draw."""
    likelihood = Likelihood(models=["demo"], conditions=["none", "arm"])
    texts = texts_wanted(loaded, likelihood, Filler(), [PROBLEM]).values()
    by_name = {str(text.condition): text for text in texts}
    about = {"answer": "0123456789abcdef", "sample": 0, "temperature": 0.5}
    return by_name | {"draw": replace(by_name["none"], target="draw", draw=about)}


# A field of a text, another value, and of which texts of `texts_of` the key differs.
EVERY = {"none", "arm", "draw"}
OTHER_PROMPT = {"input_ids": torch.tensor([1, 2])}
OF_TEXT = [
    ("problem", PROBLEM.model_copy(update={"id": "own/2"}), EVERY),
    ("condition", parse_condition("gap"), EVERY),
    ("prompt", SimpleNamespace(**OTHER_PROMPT), EVERY),
    ("lead", [5], EVERY),
    ("text", [5, 6], EVERY),
    # The same tokens behind the same ones, whatever they are called.
    ("target", "answer", set()),
    ("draw", {"answer": "other", "temperature": 0.5}, EVERY),
    ("draw", {"answer": "0123456789abcdef", "temperature": 0.9}, EVERY),
]


def test_every_field_of_a_text_is_in_its_key_or_is_not():
    names = {field.name for field in fields(TextToScore)}
    assert {name for name, _, _ in OF_TEXT} == names


@pytest.mark.parametrize("name, value, differing", OF_TEXT)
def test_a_key_of_a_score_has_what_decides_of_the_text(coder, name, value, differing):
    changed = set()
    for text_name, text in texts_of(coder).items():
        other = replace(text, **{name: value})
        if score_key(coder, other) != score_key(coder, text):
            changed.add(text_name)
    assert changed == differing


def test_how_a_draw_was_told_is_not_in_its_key(coder):
    draw = texts_of(coder)["draw"]
    told = replace(draw, draw=draw.draw | {"sample": 3, "drawn_under": "mless"})
    assert score_key(coder, told) == score_key(coder, draw)


# What a run asks for, and of which conditions the keys differ.
ALL = {"none", "mless", "arm"}
OF_COMPLETIONS = [
    ("problem", PROBLEM.model_copy(update={"id": "own/2"}), ALL),
    ("seed", 1, ALL),
    ("filler", Filler(length=7), {"mless"}),
    ("format", "plain", ALL),
    ("examples", [Example(problem="$2 + 2$?", solution="4")], ALL),
    ("arm", Arm(c=0.5), {"arm"}),
    # These stand in the settings of a folder, or change no number.
    ("max_new_tokens", 7, set()),
    ("temperature", 1.0, set()),
    ("elicit", True, set()),
    ("engine", "vllm", set()),
    ("batch_size", 2, set()),
]


@pytest.mark.parametrize("name, value, differing", OF_COMPLETIONS)
def test_a_key_of_a_completion_has_what_decides(coder, name, value, differing):
    keys = completion_keys(coder)
    others = completion_keys(coder, **{name: value})
    assert {place[0] for place in keys if keys[place] != others[place]} == differing


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
