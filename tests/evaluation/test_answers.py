"""Which answers a part of a profile has, and what a run is asked for where none are
stored.
"""

from types import SimpleNamespace

import pandas as pd
import pytest

from lib import evaluation, paths
from lib.evaluation import likelihood
from lib.evaluation import run as module
from lib.profiles import Likelihood, load_profile, variation
from lib.prompts.conditions import Filler

DEMO = load_profile("demo")


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
