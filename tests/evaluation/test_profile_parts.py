"""The answers and log-likelihoods that a profile has in stock, and the settings with
which a run computes missing ones.
"""

import pandas as pd
import pytest
import yaml
from hand_written import keep, record

from lib.files.atomic import write_json
from lib.files.row_store import ADVICE
from lib.models.sources import resolve
from lib.prompts.conditions import Filler
from lib.prompts.problems import MATH500_LIST, sample_ids
from reproduction import evaluation, paths
from reproduction.evaluation import answer_run, rows, scored_texts
from reproduction.evaluation.profile_parts import RECORDED_SETTINGS, parts_of_profile
from reproduction.evaluation.rows import shared_settings
from reproduction.profiles import (
    Likelihood,
    PassRates,
    Profile,
    load_profile,
    profile_with_overrides,
)

DEMO = load_profile("demo")
SPECS = ["gemma-3-270m", "demo"]
GEMMA, SMOL = (resolve(spec).name for spec in SPECS)


def test_missing_answers_and_scores_are_computed_with_the_profiles_settings(
    monkeypatch,
):
    calls = []

    def compute(*settings):
        calls.append(settings)
        return pd.DataFrame({"key": ["a"]})

    monkeypatch.setattr(answer_run, "evaluate", compute)
    monkeypatch.setattr(scored_texts, "score_solutions", compute)
    filler = Filler(mless="!", length=7)
    likelihood = Likelihood(models=["demo"], limit=2)
    changes = {"name": "mine", "seed": 3, "filler": filler, "likelihood": likelihood}
    profile = DEMO.model_copy(update=changes)
    for part in ("main", "fillers"):
        assert evaluation.answers(profile, part).part.tolist() == [part]
    evaluation.scores(profile)
    assert evaluation.answers(profile, "direct").empty  # the profile lacks this part
    fillers = DEMO.accuracy.variations["fillers"]
    results = paths.RESULTS / "mine"
    assert calls == [
        (DEMO.accuracy, filler, 3, results),
        (fillers, filler, 3, results / "fillers"),
        (likelihood, filler, 3, results / "likelihood"),
    ]


def changed(profile, path, value):
    """Return a profile with another value of a field, which is named by a dotted
    path.
    """
    fields = profile.model_dump()
    *sections, name = path.split(".")
    section = fields
    for part in sections:
        section = section[part]
    section[name] = value
    return Profile.model_validate(fields)


def test_stored_answers_under_conditions_that_the_profile_lacks_are_left_out():
    every = evaluation.answers(DEMO, "fillers")
    fewer = ["none", "mless"]
    profile = changed(DEMO, "accuracy.fillers.conditions", fewer)
    some = evaluation.answers(profile, "fillers")
    assert some.key.tolist() == every.key[every.condition.isin(fewer)].tolist()
    assert set(some.part) == {"fillers"}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A profile of two models, of which no rows are stored yet."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    accuracy = DEMO.accuracy.model_copy(update={"models": SPECS})
    changes = {"name": "mine", "accuracy": accuracy}
    changes |= {"likelihood": Likelihood(models=SPECS)}
    changes |= {"pass_rates": PassRates(models=SPECS)}
    return DEMO.model_copy(update=changes)


def text(key, model=GEMMA):
    """Return a row that has the fields of an answer and those of a score."""
    return record("none", "p0", True, model=model, target="solution", key=key)


# A part, its file in a run's results, and its file in the repository's data.
FILES = """
main | completions | answers/main
fillers | fillers/completions | answers/fillers
likelihood | likelihood/scores | likelihood/m
draw_scores | draw_scores/scores | draws/m
"""
STORED = [line.split(" | ") for line in FILES.strip().splitlines()]


@pytest.mark.parametrize("part, in_results, in_data", STORED)
def test_a_complete_run_precedes_the_repositorys_rows_which_precede_an_unfinished_run(
    mine, part, in_results, in_data
):
    keep(mine.results / f"{in_results}-1-of-2.jsonl", [text("first")])
    keep(mine.results / f"{in_results}-2-of-2.jsonl", [text("second")])
    stored = parts_of_profile(mine)[part]
    assert stored.stored().key.tolist() == ["first", "second"]
    assert not stored.uses_shipped()

    # Of the repository's rows the profile's models are read, in the profile's order.
    rows = [text("a", "stranger"), text("b", SMOL), text("c", GEMMA)]
    keep(paths.DATA / "mine" / f"{in_data}.jsonl.gz", rows)
    write_json(
        paths.DATA / "mine" / RECORDED_SETTINGS, {part: stored.settings_to_record()}
    )
    assert stored.stored().key.tolist() == ["c", "b"]
    assert stored.uses_shipped()

    write_json((mine.results / in_results).parent / "summary.json", [])
    assert stored.stored().key.tolist() == ["first", "second"]
    assert not stored.uses_shipped()


def test_answers_that_auto_generated_with_vllm_are_read_without_vllm(mine, monkeypatch):
    monkeypatch.setattr(rows, "why_not_vllm", lambda accuracy: "it is not installed")
    accuracy = mine.accuracy.model_copy(update={"engine": "auto"})
    mine = mine.model_copy(update={"accuracy": accuracy})
    settings = parts_of_profile(mine)["main"].settings
    assert settings["engine"] == "transformers"
    content = {"settings": settings | {"engine": "vllm"}, "environment": {}}
    write_json(mine.results / "run.json", content)
    keep(mine.results / "completions.jsonl", [text("first")])
    assert parts_of_profile(mine)["main"].stored().key.tolist() == ["first"]


def test_a_smaller_sample_and_fewer_models_are_found_in_the_stored_rows():
    families = load_profile("families")
    every = evaluation.answers(families, "direct")
    one_model = {"model": SPECS[0], "limit": 20}
    for changes in ({"limit": 20}, {"limit": 5}, one_model):
        smaller = profile_with_overrides("families", **changes)
        section = smaller.parts["direct"]
        assert not smaller.results.exists()
        sample = sample_ids("math500", changes["limit"], families.seed)
        is_wanted = every.problem_id.isin(sample)
        is_wanted &= every.model.isin([resolve(spec).name for spec in section.models])
        found = evaluation.answers(smaller, "direct")
        assert found.key.tolist() == every.key[is_wanted].tolist()
        assert found.problem_id.nunique() == changes["limit"]
    # The repository has no larger sample and no other dtype.
    for changes in ({"limit": 400}, {"limit": 5, "dtype": "float16"}):
        parts = parts_of_profile(profile_with_overrides("families", **changes))
        assert not parts["main"].uses_shipped()


def test_the_list_of_math_500_has_the_levels_of_the_stored_answers():
    stored = evaluation.answers(load_profile("families"), "draws")
    listed = [line.split(",") for line in MATH500_LIST.read_text().splitlines()[1:]]
    levels = {name: int(level) for name, level in listed}
    assert len(levels) == len(listed) == 500
    assert dict(zip(stored.problem_id, stored.level, strict=True)) == levels
    assert {levels[name] for name in sample_ids("math500", 9, 0, levels=[2])} == {2}


# Fields with values that the families' rows were not made with, and the name of the
# setting in the error message.
OTHERS = """
seed | 1 | seed
filler.mless | "!" | filler.mless
filler.length | 7 | filler.length
accuracy.format | plain | format
accuracy.limit | 351 | limit
accuracy.conditions | [none, mless, "mless:3"] | conditions
accuracy.max_new_tokens | 99 | max_new_tokens
accuracy.dtype | bfloat16 | dtype
accuracy.levels | [1] | levels
accuracy.problems | embedded | problems_sha256
likelihood.format | plain | format
likelihood.max_solution_tokens | 9 | max_solution_tokens
likelihood.dtype | bfloat16 | dtype
pass_rates.temperature | 0.9 | temperature
pass_rates.max_new_tokens | 99 | max_new_tokens
"""
READERS = [
    ("accuracy", evaluation.answers),
    ("accuracy", lambda profile: parts_of_profile(profile)["main"].stored()),
    ("likelihood", evaluation.scores),
    ("pass_rates", evaluation.draws),
]


@pytest.mark.parametrize("line", OTHERS.strip().splitlines())
def test_rows_stored_with_other_settings_are_refused_by_every_reader(line, refused):
    path, value, name = line.split(" | ")
    profile = changed(load_profile("families"), path, yaml.safe_load(value))
    for section, reader in READERS:
        # Seed and filler belong to all sections.
        if path.startswith((section, "seed", "filler")):
            message = refused(reader, profile)
            assert message.startswith("data/families was made with")
            assert f"{name} = " in message
            assert "give the profile another name" in message


def test_a_run_that_was_begun_with_other_settings_is_refused(mine, refused):
    settings = shared_settings(mine.accuracy, Filler(), seed=5)
    keep(mine.results / "completions.jsonl", [text("a")])
    write_json(mine.results / "run.json", {"settings": settings})
    message = refused(parts_of_profile(mine)["main"].stored)
    assert message.endswith(f"seed = 5, not 0: {ADVICE}")
