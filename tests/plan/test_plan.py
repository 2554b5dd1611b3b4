"""A plan counts what a run then does, says what is done, and refuses all at once."""

import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from hand_written import keep
from hub_server import HubServer, point_at
from huggingface_hub import constants

from lib import evaluation, paths
from lib.__main__ import main
from lib.errors import InputError
from lib.evaluation import likelihood as scorer
from lib.measurement.run import measure
from lib.models import memory
from lib.models.names import card
from lib.plan import as_text, fetch, make_plan, sizes, summary, tasks
from lib.plan.plan import duration
from lib.plan.sizes import shape_of
from lib.profiles import load_profile

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
SPEED = 1e11  # operations a second


@pytest.fixture
def hub(tmp_path, tiny_llama, monkeypatch):
    """A hub that serves two models; what is written goes into the test's folders."""
    for name in (OPEN, GATED):
        shutil.copytree(tiny_llama, tmp_path / "repositories" / name)
    with HubServer(tmp_path / "repositories") as server:
        point_at(server.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        for name in ("CACHE", "RESULTS", "FIGURES"):
            monkeypatch.setattr(paths, name, tmp_path / name.lower())
        monkeypatch.setattr(sizes, "_speed", lambda device, dtype: SPEED)
        yield server


@pytest.fixture
def profile_file(tmp_path):
    """The profile `small`, beside its six problems."""
    rows = []
    for number in range(6):
        row = {
            "unique_id": str(number),
            "problem": f"What is ${number} + 1$?",
            "answer": str(number + 1),
            "solution": f"It is ${number + 1}$.",
        }
        rows.append(json.dumps(row))
    (tmp_path / "mine.jsonl").write_text("\n".join(rows))
    (tmp_path / "small.yaml").write_text(PROFILE)
    return tmp_path / "small.yaml"


@pytest.fixture
def small(profile_file):
    return load_profile(profile_file)


def counts(planned):
    """Return by task the prompts that are asked for, and those that are stored."""
    return [(task.part, task.prompts, task.stored) for task in planned.tasks]


def test_what_is_planned_is_what_a_run_stores_and_nothing_is_left_then(hub, small):
    planned = make_plan(small)
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

    # The answers of a random model are all wrong, so that none of them is scored.
    after = make_plan(small)
    whole = [("main", 6, 6), ("likelihood", 24, 24), ("draws", 8, 8)]
    assert counts(after) == [*whole, ("draw_scores", 0, 0)]
    everything = "Plan: nothing to fetch or compute, everything is stored"
    assert as_text(after).endswith(everything)
    assert counts(make_plan(small, fresh=True)) == counts(planned)
    asked = make_plan(small, fresh=True, parts=["tokens", "draws"])
    assert counts(asked) == [("tokens", 4, 0), ("draws", 8, 0)]


def test_later_layers_are_planned_for_the_problems_that_go_through_them(hub, small):
    attention = small.attention.model_copy(update={"map_problems": 1})
    mapped = small.model_copy(update={"attention": attention})
    deep = set(counts(make_plan(mapped))) - set(counts(make_plan(small)))
    assert deep == {("attention", 3, 0)}
    measure(mapped)
    assert not [task for task in make_plan(mapped).tasks if task.part == "attention"]


def test_drawn_answers_are_scored_where_they_are_partly_right(hub, small, monkeypatch):
    for module in (scorer, tasks):
        monkeypatch.setattr(
            module, "is_divided", lambda answers: pd.Series(True, answers.index)
        )
    fewer = small.pass_rates.model_copy(update={"limit": 1})
    evaluation.draws(small.model_copy(update={"pass_rates": fewer}))
    planned = make_plan(small, parts=["draws", "draw_scores"])
    assert counts(planned) == [("draws", 8, 4), ("draw_scores", 24, 12)]


# A row that is asked for, and what makes it another's.
ASKED = {"model": "gated", "condition": "none", "problem_id": "0", "target": "solution"}
OF_OTHERS = [{"model": "open"}, {"condition": "mful"}, {"problem_id": "9"}]


def test_of_what_is_stored_only_what_is_asked_for_counts(hub, small):
    file = small.results / "likelihood" / "scores.jsonl"
    keep(file, [ASKED, *[ASKED | other for other in OF_OTHERS]])
    assert counts(make_plan(small, parts=["likelihood"])) == [("likelihood", 24, 1)]
    keep(file, [ASKED | other for other in OF_OTHERS])
    assert counts(make_plan(small, parts=["likelihood"])) == [("likelihood", 24, 0)]


def test_the_repositorys_own_answers_need_no_model(hub):
    families = make_plan(load_profile("families"))
    assert families.needs == []
    assert summary(families).startswith("Plan: nothing to fetch")
    for fresh in (False, True):
        demo = make_plan(load_profile("demo"), fresh, parts=["main"])
        assert counts(demo) == [("main", 96 * 3, 96 * 3)]


def test_time_is_that_of_the_products_of_what_is_left(hub, small):
    planned = make_plan(small, parts=["attention", "likelihood"])
    attention, likelihood = planned.tasks
    shape = shape_of(card(OPEN))
    operations = [
        2 * attention.prompts * attention.tokens * 2 * shape.layer,
        2 * likelihood.prompts * likelihood.tokens * shape.whole,
    ]
    expected = [sizes.OVERHEAD * number / SPEED for number in operations]
    assert list(planned.seconds.values()) == pytest.approx(expected)


def test_answers_take_steps_as_long_as_the_longest_of_a_batch(hub, small):
    (task,) = make_plan(small, parts=["main"]).tasks
    limit = small.accuracy.max_new_tokens
    assert task.left == 6 and task.steps == limit  # one batch
    two = small.accuracy.model_copy(update={"batch_size": 1})
    planned = make_plan(small.model_copy(update={"accuracy": two}), parts=["main"])
    (task,) = planned.tasks
    assert task.steps == limit * 6 * tasks.SHARE_WRITTEN
    shape = shape_of(card(OPEN))
    rows = task.left * task.tokens + task.steps * sizes.STEP_ROWS
    products = sizes.OVERHEAD * 2 * rows * shape.whole / SPEED
    calls = task.steps * shape.depth * sizes.CALL_SECONDS
    assert planned.seconds[task] == pytest.approx(products + calls)


def test_evenly_spread_attention_takes_no_time_and_notebooks_do(hub, small):
    attention, controls = make_plan(small, parts=["attention", "controls"]).tasks
    prompt = tasks.PROMPT_TOKENS + 55 + 16 / 2.7
    # Through two layers: three insertions; through one: the fit, and in the controls
    # activations under three conditions.
    assert attention.tokens == pytest.approx(prompt * (3 * 2 + 1) / (4 * 2))
    through = 3 * (3 * 2 + 1 + 3)
    assert controls.tokens == pytest.approx(prompt * through / (2 * (3 * 7 + 3)))
    planned = make_plan(small, parts=["tokens"])
    assert "about 1 minute where" in summary(planned)
    assert "about 2 minutes" in summary(planned._replace(seconds={"a": 60}))


@pytest.mark.parametrize(
    "seconds, text",
    [(3, "1 minute"), (600, "10 minutes"), (7100, "118 minutes"), (9000, "2.5 hours")],
)
def test_times_are_said_as_a_person_says_them(seconds, text):
    assert duration(seconds) == text


def test_a_model_that_is_needed_whole_is_fetched_once_and_then_no_network_is_needed(
    hub, small, profile_file, capsys, monkeypatch
):
    planned = make_plan(small)
    sizes = {need.model: need.to_fetch for need in planned.needs}
    assert main(["fetch", "--profile", str(profile_file)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^open: 0.0 GB fetched", printed, re.M)
    assert hub.sent_weights == sizes[OPEN] + sizes[GATED]

    point_at("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    sent = hub.sent
    after = make_plan(small)
    assert [need.to_fetch for need in after.needs] == [0, 0]
    measure(small, "tokens")
    assert len(evaluation.answers(small)) == 6
    assert hub.sent == sent


def test_where_first_layers_are_enough_they_alone_are_fetched(hub, small):
    planned = make_plan(small, parts=["tokens"])
    (need,) = planned.needs
    assert need.layers == 2
    shape = shape_of(card(OPEN))
    assert need.to_fetch == 2 * (shape.embedding + 2 * shape.layer)
    assert len(list(fetch(planned))) == 1
    assert hub.ranged > 0
    assert not list(fetch(make_plan(small, parts=["tokens"])))
    (whole,) = make_plan(small, parts=["tokens", "main"]).needs
    assert whole.layers is None and whole.to_fetch > need.to_fetch


@pytest.mark.parametrize("command", ["reproduce", "plan", "fetch"])
def test_a_run_is_refused_at_once_for_all_its_models_and_leaves_nothing(
    hub, profile_file, tmp_path, capsys, command
):
    for repo in (OPEN, GATED):
        hub.gated[repo] = 403
    assert main([command, "--profile", str(profile_file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{OPEN} is gated" in line and f"{GATED} is gated" in line
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("left, code", [(2 * 10**9, 2), (4 * 10**9, 0)])
def test_what_a_jobs_limit_of_memory_has_no_room_for_is_said_first(
    hub, profile_file, tmp_path, monkeypatch, capsys, left, code
):
    (tmp_path / "cgroup").write_text("0::/job\n")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "memory.max").write_text(str(left))
    (tmp_path / "job" / "memory.current").write_text("0")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "ALL_GROUPS", tmp_path)
    assert main(["plan", "--profile", str(profile_file)]) == code
    first, *_, last = capsys.readouterr().out.splitlines()
    refusal = f"refused: {OPEN} needs 2.5 GB of memory, 2.0 GB are free"
    assert (first == refusal) == (code == 2)
    assert last.startswith("Plan: 0.0 GB to fetch, 198 prompts, about ")


WITHOUT_A_HUB = """
import sys
from lib.__main__ import main

assert main(["plan", "--profile", sys.argv[1]]) == 2
assert not {"torch", "transformers", "datasets", "scipy.stats"} & set(sys.modules)
"""


def test_that_no_hub_answers_is_said_before_torch_is_imported(profile_file, tmp_path):
    elsewhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_HUB, str(profile_file)],
        check=True,
        capture_output=True,
        text=True,
        cwd=paths.ROOT,
        env=os.environ | elsewhere,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {OPEN}, {GATED}: cannot be fetched, http://127")


def test_problems_that_are_not_here_are_missed_where_they_are_needed(
    hub, small, profile_file
):
    profile_file.with_name("mine.jsonl").unlink()
    with pytest.raises(InputError, match=r"unknown problems '.*mine.jsonl'"):
        make_plan(small)
