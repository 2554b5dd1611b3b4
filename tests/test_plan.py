"""A plan counts the work of a run and its stored part; unavailable models are refused
in one line.
"""

import re
import shutil

import pandas as pd
import pytest
from hand_written import keep
from hub_server import serving

import lib.paths
from reproduction import evaluation, paths, plan
from reproduction.__main__ import main
from reproduction.evaluation import profile_parts, scored_texts
from reproduction.measurement.measurement_run import measure
from reproduction.plan import as_text, summary, tasks_of
from reproduction.profiles import load_profile

OPEN, GATED = "org/open", "org/gated"
PROFILE = """
name: small
description: two small models from a hub
attention:
  models: [org/open]
  problems: mine.jsonl
  layers: 2
  limit: 4
accuracy:
  models: [org/open]
  problems: mine.jsonl
  format: plain
  conditions: [none, mless]
  limit: 3
  max_new_tokens: 4
likelihood:
  models: [org/gated]
  problems: mine.jsonl
  conditions: [none, mless, gap]
  at_once: [none]
pass_rates:
  models: [org/open]
  problems: mine.jsonl
  format: plain
  limit: 2
  max_new_tokens: 4
"""


@pytest.fixture
def hub(tmp_path, tiny_llama, monkeypatch):
    """A hub with two copies of the same model, org/open and org/gated."""
    root = tmp_path / "repositories"
    for name in (OPEN, GATED):
        shutil.copytree(tiny_llama, root / name)
    with serving(root, tmp_path, monkeypatch) as server:
        yield server


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Redirect everything that is written into the test's folder."""
    monkeypatch.setattr(lib.paths, "CACHE", tmp_path / "cache")
    for name in ("RESULTS", "FIGURES"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())


@pytest.fixture
def profile_file(tmp_path):
    """The file of the profile `small`, in a folder with its six problems."""
    rows = []
    for number in range(6):
        row = {
            "unique_id": str(number),
            "problem": f"What is ${number} + 1$?",
            "answer": str(number + 1),
            "solution": f"It is ${number + 1}$.",
        }
        rows.append(row)
    keep(tmp_path / "mine.jsonl", rows)
    (tmp_path / "small.yaml").write_text(PROFILE)
    return tmp_path / "small.yaml"


@pytest.fixture
def small(hub, profile_file):
    return load_profile(profile_file)


def changed(profile, section, **fields):
    """Return a profile with these fields in one of its sections."""
    other = getattr(profile, section).model_copy(update=fields)
    return profile.model_copy(update={section: other})


def counts(planned):
    """Return the prompts of each task and how many of them are stored."""
    return [(task.part, task.prompts, task.stored) for task in planned]


def test_a_plan_counts_what_a_run_stores_and_nothing_is_left_afterwards(small):
    planned = tasks_of(small)
    measured = [
        ("tokens", 4, 0),
        ("attention", 4 * 4, 0),
        ("activations", 5 * 4, 0),
        ("controls", 3 * 7 * 4 + 3 * 4, 0),
    ]
    assert counts(planned) == [
        *measured,
        ("main", 3 * 2, 0),
        ("likelihood", 6 * 4, 0),
        ("draws", 2 * 2 * 2, 0),
        ("draw_scores", 2 * 2 * 2 * 3, 0),
    ]
    measure(small)
    assert len(evaluation.answers(small)) == 6
    assert len(evaluation.scores(small)) == 24
    assert len(evaluation.draws(small)) == 8

    # A random model gives only wrong answers, so none of them has to be scored.
    after = tasks_of(small)
    whole = [("main", 6, 6), ("likelihood", 24, 24), ("draws", 8, 8)]
    assert counts(after) == [*whole, ("draw_scores", 0, 0)]
    assert as_text(after).endswith("Plan: everything is stored")
    some = tasks_of(small, ["tokens", "draws"])
    assert counts(some) == [("draws", 8, 8)]


def test_later_layers_are_planned_for_the_problems_that_reach_them(small):
    mapped = changed(small, "attention", map_problems=1)
    deep = set(counts(tasks_of(mapped))) - set(counts(tasks_of(small)))
    assert deep == {("attention", 4 * 4 + 3, 0)}
    measure(mapped, "attention")
    assert not [task for task in tasks_of(mapped) if task.part == "attention"]


def test_scores_are_planned_for_sampled_answers_with_mixed_grades(small, monkeypatch):
    for module in (scored_texts, profile_parts, plan):
        monkeypatch.setattr(
            module, "is_mixed", lambda answers: pd.Series(True, answers.index)
        )
    evaluation.draws(changed(small, "pass_rates", limit=1))
    planned = tasks_of(small, names=["draws", "draw_scores"])
    assert counts(planned) == [("draws", 8, 4), ("draw_scores", 24, 12)]


def test_the_repositorys_answers_need_no_model():
    families = tasks_of(load_profile("families"))
    assert summary(families) == "Plan: everything is stored"
    demo = tasks_of(load_profile("demo"), ["main"])
    assert counts(demo) == [("main", 96 * 3, 96 * 3)]


@pytest.mark.parametrize("command", ["reproduce", "plan"])
def test_a_run_is_refused_for_all_of_its_gated_models_before_it_starts(
    hub, profile_file, tmp_path, capsys, command
):
    for repo in (OPEN, GATED):
        hub.gated[repo] = 403
    assert main([command, "--profile", str(profile_file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(f"{OPEN}: .*gated repo.*; {GATED}: .*gated repo", line)
    assert not (tmp_path / "results").exists()
