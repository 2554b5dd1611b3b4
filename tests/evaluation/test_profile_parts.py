"""The answers and log-likelihoods that a profile has in stock, and the settings with
which a run computes missing ones.
"""

import pandas as pd
import pytest
from hand_written import keep

from lib.files.text_files import read
from lib.models.sources import resolve
from lib.prompts.conditions import Filler
from lib.prompts.problems import MATH500_LIST, listed_problems
from reproduction import evaluation, paths
from reproduction.evaluation import answer_run, scored_texts
from reproduction.evaluation.profile_parts import parts_of_profile
from reproduction.profiles import (
    Likelihood,
    Profile,
    load_profile,
    profile_with_overrides,
)
from reproduction.row_keys import wanted_rows

DEMO = load_profile("demo")
FAMILIES = load_profile("families")
DEMO_ANSWERS = paths.DATA / "demo" / "answers" / "main.jsonl.gz"


def test_missing_answers_and_scores_are_computed_with_the_profiles_settings(
    monkeypatch,
):
    calls = []

    def compute(*settings, others):
        assert all(path.is_relative_to(paths.DATA) for path in others)
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


def test_scores_in_another_format_are_those_of_models_that_have_it():
    authors = load_profile("authors")
    in_a_chat = evaluation.stored_scores(authors, "authors-chat")
    # Without a chat template, gemma-3-270m would read the format authors instead.
    assert set(in_a_chat.model) == {"Qwen2.5-Coder-0.5B-Instruct"}
    pair = ["model", "condition", "problem_id"]
    both = in_a_chat.merge(evaluation.scores(authors), on=pair)
    assert len(both) == len(in_a_chat) == 5 * 71
    assert (both.nats_x != both.nats_y).all()


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


def test_rows_are_found_in_the_results_and_in_the_repositorys_files(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    rows = read(DEMO_ANSWERS)
    keep(tmp_path / "data" / "any" / "answers" / "main.jsonl.gz", rows[:100])
    # Files of shards, with rows that the repository has too, and one that it wants not.
    own = [row | {"processor": "mine"} for row in rows[90:150]]
    keep(DEMO.results / "completions-1-of-2.jsonl", own[:30])
    keep(DEMO.results / "completions-2-of-2.jsonl", [*own[30:], {"key": "other"}])
    found = parts_of_profile(DEMO)["main"].stored()
    assert found.key.tolist() == [row["key"] for row in rows[:150]]
    assert (found.processor == "mine").sum() == 60  # one's own rows come first


# Overrides of the families, and whether answers and scores that are not stored stay
# missing.
OVERRIDDEN = [
    ({"limit": 5}, True),
    ({"limit": 100, "name": "mine"}, True),
    ({"model": "demo"}, True),
    ({"limit": 101}, False),
    ({"dtype": "bfloat16"}, False),
    ({"model": "Qwen2.5-Math-1.5B"}, False),
]


@pytest.mark.parametrize("changes, stored_only", OVERRIDDEN)
def test_an_override_that_asks_for_more_than_is_stored_computes_it(
    changes, stored_only
):
    assert FAMILIES.stored_only
    assert profile_with_overrides("families", **changes).stored_only is stored_only
    assert not profile_with_overrides("demo", **changes).stored_only


def test_a_smaller_sample_and_fewer_models_are_found_in_the_stored_rows():
    every = evaluation.answers(FAMILIES, "direct")
    one_model = {"model": "gemma-3-270m", "limit": 20}
    for changes in ({"limit": 20}, {"limit": 5}, one_model):
        smaller = profile_with_overrides("families", **changes)
        section = smaller.parts["direct"]
        assert not smaller.results.exists()
        sample = listed_problems("math500", changes["limit"], FAMILIES.seed)
        is_wanted = every.problem_id.isin([problem.id for problem in sample])
        is_wanted &= every.model.isin([resolve(spec).name for spec in section.models])
        found = evaluation.answers(smaller, "direct")
        assert found.key.tolist() == every.key[is_wanted].tolist()
        assert found.problem_id.nunique() == changes["limit"]


def test_a_smaller_run_of_an_own_profile_finds_the_answers_of_the_whole(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    mine = tmp_path / "mine.yaml"
    section = "{ models: [demo], problems: embedded"
    mine.write_text(
        f"name: mine\ndescription: of two problems\nattention: {section} }}\n"
        f"accuracy: {section}, limit: 2, max_new_tokens: 7 }}\n"
    )
    whole = parts_of_profile(load_profile(str(mine)))["main"]
    wanted = wanted_rows("demo", whole.section, whole._wanted_of(), {})
    assert not whole.rows()
    shipped = read(DEMO_ANSWERS)[0]
    rows = [shipped | {"key": key} for key in wanted.by_key]
    keep(whole.folder / "completions.jsonl", rows)
    assert len(whole.rows()) == len(wanted.by_key) == 6
    smaller = profile_with_overrides(str(mine), limit=1)
    assert smaller.results != whole.folder
    assert len(parts_of_profile(smaller)["main"].rows()) == 3


def test_the_list_of_math_500_has_the_levels_of_the_stored_answers():
    stored = evaluation.answers(load_profile("families"), "draws")
    listed = [line.split(",") for line in MATH500_LIST.read_text().splitlines()[1:]]
    levels = {name: int(level) for name, level, *_ in listed}
    assert len(levels) == len(listed) == 500
    assert dict(zip(stored.problem_id, stored.level, strict=True)) == levels
    sample = listed_problems("math500", 9, 0, levels=[2])
    assert {problem.level for problem in sample} == {2}


def test_scores_of_longer_solutions_than_a_section_allows_are_left_out():
    every = evaluation.scores(FAMILIES)
    fewer = changed(FAMILIES, "likelihood.max_solution_tokens", 100)
    some = evaluation.scores(fewer)
    solutions = every[every.target == "solution"]
    short = solutions[solutions.tokens <= 100]
    assert 0 < len(some) < len(every)
    assert some[some.target == "solution"].key.tolist() == short.key.tolist()
    pairs = [set(zip(t.model, t.problem_id, strict=True)) for t in (some, short)]
    assert pairs[0] == pairs[1]  # gold answers to other problems are left out, too
