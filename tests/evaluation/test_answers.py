"""Which answers and likelihoods a profile has, and what a run is asked for where none
are stored.
"""

import json

import pandas as pd
import pytest
from hand_written import keep, record

from lib import evaluation, paths
from lib.evaluation import likelihood, of_profile
from lib.evaluation import run as module
from lib.evaluation.settings import shared_settings
from lib.files import write_json
from lib.models.names import resolve
from lib.profiles import Likelihood, PassRates, Profile, load_profile, variation
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
        return pd.DataFrame({"key": ["a"]})

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
    own["pass_rates"] = PassRates(models=SPECS)
    return DEMO.model_copy(update=own)


def text(model=GEMMA, **others):
    """Return a row that is an answer or a score, whichever is asked for."""
    return record("none", "p0", True, model=model, target="solution", **others)


# A part, where a run keeps it, and where the repository does.
PLACES = """
main | completions | answers/main
likelihood | likelihood/scores | likelihood/m
draw_scores | draw_scores/scores | draws/m
"""
STORED = [line.split(" | ") for line in PLACES.strip().splitlines()]


def store(profile, part, there, rows):
    """Let the repository have rows of a part, with the settings they were made with."""
    keep(paths.DATA / "mine" / f"{there}.jsonl.gz", rows)
    record_path = paths.DATA / "mine" / of_profile.RECORDED
    parts = json.loads(record_path.read_text()) if record_path.exists() else {}
    parts[part] = of_profile.recorded_settings(profile, part)
    write_json(record_path, parts)


@pytest.mark.parametrize("part, here, there", STORED)
def test_a_whole_run_comes_first_then_the_repository_then_what_a_run_has_so_far(
    mine, part, here, there
):
    keep(mine.results / f"{here}-1-of-2.jsonl", [text(key="first")])
    keep(mine.results / f"{here}-2-of-2.jsonl", [text(key="second")])
    assert of_profile.stored_rows(mine, part).key.tolist() == ["first", "second"]
    assert not of_profile.is_stored(mine, part)

    store(mine, part, there, [text(key="stored")])
    assert of_profile.stored_rows(mine, part).key.tolist() == ["stored"]
    assert of_profile.is_stored(mine, part)

    write_json((mine.results / here).parent / "summary.json", [])
    assert of_profile.stored_rows(mine, part).key.tolist() == ["first", "second"]
    assert not of_profile.is_stored(mine, part)


def test_six_answers_of_a_run_that_was_begun_change_nothing_for_anybody(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    families = load_profile("families")
    rows = [text(key=str(number)) for number in range(6)]
    keep(families.results / "completions.jsonl", rows)
    assert len(evaluation.answers(families)) == 1100
    assert len(of_profile.stored_rows(families)) == 1100


# What the families' rows were not made with, and the name that a refusal gives it.
OTHERS = [
    ({"seed": 1}, "seed"),
    ({"filler": {"mless": "!"}}, "filler.mless"),
    ({"filler": {"length": 7}}, "filler.length"),
    ({"accuracy": {"format": "plain"}}, "format"),
    ({"accuracy": {"max_new_tokens": 99}}, "max_new_tokens"),
    ({"accuracy": {"dtype": "bfloat16"}}, "dtype"),
    ({"accuracy": {"levels": [1]}}, "levels"),
    ({"accuracy": {"problems": "embedded"}}, "problems_sha256"),
    ({"likelihood": {"format": "plain"}}, "format"),
    ({"likelihood": {"max_solution_tokens": 9}}, "max_solution_tokens"),
    ({"likelihood": {"dtype": "bfloat16"}}, "dtype"),
    ({"pass_rates": {"temperature": 0.9}}, "temperature"),
    ({"pass_rates": {"max_new_tokens": 99}}, "max_new_tokens"),
]
READERS = {
    "accuracy": (evaluation.answers, of_profile.stored_rows),
    "likelihood": (
        evaluation.scores,
        lambda profile: of_profile.stored_rows(profile, "likelihood"),
    ),
    "pass_rates": (evaluation.draws,),
}


def changed(profile, changes):
    """Return a profile with some settings changed, of sections by name."""
    whole = profile.model_dump()
    for name, value in changes.items():
        whole[name] = whole[name] | value if isinstance(value, dict) else value
    return Profile.model_validate(whole)


@pytest.mark.parametrize("changes, name", OTHERS)
def test_what_was_stored_with_other_settings_is_refused_whoever_asks(
    changes, name, refused
):
    profile = changed(load_profile("families"), changes)
    sections = [section for section in changes if section in READERS] or READERS
    for reader in [each for section in sections for each in READERS[section]]:
        message = refused(reader, profile)
        assert message.startswith("data/families was made with")
        assert f"{name} = " in message
        assert "give the profile another name" in message


def test_a_run_that_was_begun_with_other_settings_is_refused(mine, refused):
    settings = shared_settings(mine.accuracy, Filler(), seed=5)
    keep(mine.results / "completions.jsonl", [text(key="a")])
    write_json(mine.results / "run.json", {"settings": settings})
    message = refused(of_profile.stored_rows, mine)
    assert message.endswith("seed = 5, not 0: use another folder, or delete this one")


@pytest.mark.parametrize("folder", ["results/mine/fillers", "data/mine/answers"])
def test_stored_answers_say_of_which_part_they_are(mine, tmp_path, folder):
    for name in ("completions.jsonl", "fillers.jsonl.gz"):
        keep(tmp_path / folder / name, [text()])
    recorded = of_profile.recorded_settings(mine, "fillers")
    paths.DATA.joinpath("mine").mkdir(parents=True, exist_ok=True)
    write_json(paths.DATA / "mine" / of_profile.RECORDED, {"fillers": recorded})
    assert of_profile.stored_rows(mine, "fillers").part.tolist() == ["fillers"]


@pytest.mark.parametrize("file", ["answers/main", "likelihood/m"])
def test_stored_rows_are_the_profiles_models_in_its_order(mine, file):
    models = ["stranger", SMOL, GEMMA, SMOL]
    part = "likelihood" if "likelihood" in file else "main"
    store(mine, part, file, map(text, models))
    read = evaluation.scores if "likelihood" in file else evaluation.answers
    assert read(mine).key.tolist() == ["2", "1", "3"]
