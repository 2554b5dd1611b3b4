"""What is fetched is as much as was planned, and then no network is needed."""

import re
from types import SimpleNamespace

import pytest
from hub_server import point_at
from huggingface_hub import constants

from lib import evaluation
from lib.__main__ import main
from lib.measurement.run import measure
from lib.plan import fetching, planning
from lib.plan.machine import Machine
from lib.plan.planning import make_plan
from lib.plan.speed import Workload
from lib.plan.task import Task
from lib.plan.weights import ModelWeights

OPEN, GATED = "org/open", "org/gated"


def test_after_fetching_a_run_says_no_word_to_the_network(
    hub, small, profile_file, capsys, monkeypatch
):
    planned = make_plan(small).to_fetch
    assert main(["fetch", "--profile", str(profile_file)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^open: .* fetched", printed, re.M)
    assert re.search(r"^gated: .* fetched", printed, re.M)
    assert hub.sent_weights == pytest.approx(planned[GATED] * 2, rel=0.05)

    point_at("http://127.0.0.1:9", monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    sent = hub.sent
    capsys.readouterr()
    plan = make_plan(small)
    assert (plan.bytes_to_fetch, plan.refusals) == (0, [])
    measure(small, "tokens")
    assert len(evaluation.answers(small)) == 6
    assert len(evaluation.scores(small)) == 24
    assert hub.sent == sent
    assert capsys.readouterr().err == ""


def test_first_layers_alone_come_by_their_bytes(hub, small, profile_file):
    text = profile_file.read_text()
    for section in ("accuracy", "pass_rates"):
        head = f"{section}:\n  models: "
        text = text.replace(f"{head}[org/open]", f"{head}[org/gated]")
    profile_file.write_text(text)
    assert main(["fetch", "--profile", str(profile_file), "--debug"]) == 0
    assert hub.ranged > 0
    plan = make_plan(small, parts=["tokens"])
    assert plan.bytes_to_fetch == 0


@pytest.mark.parametrize("room, code", [(1.1, 0), (0.9, 2)])
def test_a_fetch_needs_room_for_each_model_once(
    hub, small, profile_file, monkeypatch, capsys, room, code
):
    size = sum(weights.size for weights in make_plan(small).weights)
    tight = Machine(device="cpu", memory=10**12, disk=int(room * size))
    monkeypatch.setattr(planning, "this_machine", lambda: tight)
    # A run would fetch the first layers before the whole model.
    assert any("GB of disk" in reason for reason in make_plan(small).refusals)
    assert main(["fetch", "--profile", str(profile_file)]) == code
    assert ("of disk" in capsys.readouterr().err) == (code == 2)


def test_a_fetch_is_refused_for_all_models_at_once_but_not_for_memory(
    hub, profile_file, capsys
):
    hub.gated[OPEN] = hub.gated[GATED] = 403
    assert main(["fetch", "--profile", str(profile_file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.count("is gated") == 2
    assert hub.sent_weights == 0


# What is needed of a model: its first layers, or all of them; so much of it is stored.
TASKS = [
    Task("tokens", "org/first@v1", 4, 0, 9, Workload(), layers=2),
    Task("attention", "org/first@v1", 4, 0, 9, Workload(), layers=3),
    Task("attention", "org/whole@v2", 4, 0, 9, Workload(), layers=3),
    Task("main", "org/whole@v2", 4, 0, 9, Workload()),
    Task("main", "org/done@v3", 4, 4, 9, Workload()),
]


def test_a_fetch_asks_for_the_layers_and_the_revision_that_what_is_left_needs(
    monkeypatch,
):
    costs = [SimpleNamespace(task=task) for task in TASKS]
    names = dict.fromkeys(task.model for task in TASKS)
    weights = [ModelWeights(name, name, None) for name in names]
    machine = Machine(device="cpu", memory=0, disk=10**12)
    plan = planning.Plan(None, machine, weights, {}, costs, [], [])
    monkeypatch.setattr(fetching, "make_plan", lambda profile: plan)
    monkeypatch.setattr(fetching, "snapshot", lambda *asked: asked)
    monkeypatch.setattr(fetching, "first_layers", lambda *asked: asked)
    first, whole = fetching.fetch(None)
    assert first.endswith("fetched, ('org/first', 3, 'v1')")
    assert whole.endswith("fetched, ('org/whole', 'v2')")
