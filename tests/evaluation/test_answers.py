"""Which answers and likelihoods a profile has, and what a run is asked for where none
are stored.
"""

from types import SimpleNamespace

import pandas as pd
import pytest
from hand_written import keep, record

from lib import evaluation, paths
from lib.evaluation import likelihood, of_profile
from lib.evaluation import run as module
from lib.evaluation.rows import frame
from lib.models.names import resolve
from lib.profiles import Likelihood, load_profile, variation
from lib.prompts.conditions import Filler

DEMO = load_profile("demo")
SPECS = ["gemma-3-270m", "demo"]
GEMMA, SMOL = (resolve(spec).name for spec in SPECS)


@pytest.fixture
def asked(monkeypatch):
    """What `evaluate` was asked for, in its place."""
    calls = []

    def evaluate(accuracy, filler, seed, folder):
        calls.append((accuracy, filler, seed, folder))
        return SimpleNamespace(answers=pd.DataFrame({"key": ["a"]}))

    monkeypatch.setattr(module, "evaluate", evaluate)
    return calls


@pytest.mark.parametrize("part, folder", [("main", ""), ("fillers", "fillers")])
def test_what_is_not_stored_is_asked_for_as_the_profile_says(asked, part, folder):
    own = {"name": "mine", "seed": 3, "filler": Filler(mless="!", length=7)}
    profile = DEMO.model_copy(update=own)
    answers = evaluation.answers(profile, part)
    accuracy = DEMO.accuracy if part == "main" else variation(DEMO.accuracy, part)
    assert asked == [(accuracy, own["filler"], 3, paths.RESULTS / "mine" / folder)]
    assert answers.part.tolist() == [part]


def test_a_folder_is_filled_even_where_answers_are_stored(asked, tmp_path):
    evaluation.answers(DEMO, "fillers", tmp_path)
    assert [folder for *_, folder in asked] == [tmp_path]


def test_stored_answers_under_conditions_that_a_part_does_not_ask_for_stay_out():
    fewer = DEMO.accuracy.fillers.model_copy(
        update={"conditions": DEMO.accuracy.fillers.conditions[:2]}
    )
    accuracy = DEMO.accuracy.model_copy(update={"fillers": fewer})
    profile = DEMO.model_copy(update={"accuracy": accuracy})
    every = evaluation.answers(DEMO, "fillers")
    some = evaluation.answers(profile, "fillers")
    names = [str(condition) for condition in fewer.conditions]
    assert set(some.condition) == set(names) < set(every.condition)
    assert len(some) == every.condition.isin(names).sum()


def test_a_part_that_a_profile_lacks_has_no_answers(asked):
    accuracy = DEMO.accuracy.model_copy(update={"fillers": None})
    profile = DEMO.model_copy(update={"accuracy": accuracy, "name": "mine"})
    assert evaluation.answers(profile, "fillers").empty
    assert not asked


def test_what_is_not_scored_is_asked_for_as_the_profile_says(monkeypatch):
    calls = []
    monkeypatch.setattr(likelihood, "likelihoods", lambda *given: calls.append(given))
    wanted = Likelihood(models=["demo"], limit=2)
    filler = Filler(mless="!", length=7)
    own = {"name": "mine", "seed": 3, "filler": filler, "likelihood": wanted}
    evaluation.scores(DEMO.model_copy(update=own))
    assert calls == [(wanted, filler, 3, paths.RESULTS / "mine" / "likelihood")]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A profile of two models, of which nothing is stored yet."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    accuracy = DEMO.accuracy.model_copy(update={"models": SPECS})
    scored = Likelihood(models=SPECS)
    own = {"name": "mine", "accuracy": accuracy, "likelihood": scored}
    return DEMO.model_copy(update=own)


def text(model=GEMMA, **others):
    """Return a row that is an answer or a score, whichever is asked for."""
    return record("none", "p0", True, model=model, target="solution", **others)


# What is read, where a run keeps it, and where the repository does.
PLACES = """
stored_answers | completions | answers/main
stored_scores | likelihood/scores | likelihood/m
stored_draw_scores | draw_scores/scores | draws/m
"""
STORED = [line.split(" | ") for line in PLACES.strip().splitlines()]


@pytest.mark.parametrize("name, here, there", STORED)
def test_every_shard_of_a_run_comes_before_what_the_repository_has(
    mine, name, here, there
):
    stored = getattr(of_profile, name)
    keep(paths.DATA / "mine" / f"{there}.jsonl.gz", [text(key="stored")])
    assert stored(mine).key.tolist() == ["stored"]
    keep(mine.results / f"{here}-1-of-2.jsonl", [text(key="first")])
    keep(mine.results / f"{here}-2-of-2.jsonl", [text(key="second")])
    assert stored(mine).key.tolist() == ["first", "second"]


@pytest.mark.parametrize("folder", ["results/mine/fillers", "data/mine/answers"])
def test_stored_answers_say_of_which_part_they_are(mine, tmp_path, folder):
    for name in ("completions.jsonl", "fillers.jsonl.gz"):
        keep(tmp_path / folder / name, [text()])
    assert of_profile.stored_answers(mine, "fillers").part.tolist() == ["fillers"]


@pytest.mark.parametrize("file", ["answers/main", "likelihood/m"])
def test_stored_rows_are_the_profiles_models_in_its_order(mine, file):
    models = ["stranger", SMOL, GEMMA, SMOL]
    keep(paths.DATA / "mine" / f"{file}.jsonl.gz", map(text, models))
    stored = evaluation.scores if "likelihood" in file else evaluation.answers
    assert stored(mine).key.tolist() == ["2", "1", "3"]


def test_texts_are_compared_model_by_model_and_sample_by_sample(mine):
    rows = []
    for model in (GEMMA, SMOL):
        for sample in (0, 1):
            response = f"{model} {sample}"
            rows.append(text(model, sample=sample, response=response))
    keep(paths.DATA / "mine" / "answers" / "main.jsonl.gz", rows)
    assert evaluation.same_texts(mine, frame(rows)) == (4, 4)
