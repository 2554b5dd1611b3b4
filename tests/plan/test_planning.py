"""A plan counts what a run then does, says what is done, and refuses all at once."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from lib import evaluation
from lib.__main__ import main
from lib.evaluation import draw_scores
from lib.evaluation.likelihood import likelihoods
from lib.measurement.run import measure
from lib.models.checkpoint import SHARD_INDEX
from lib.models.first_layers import first_layers
from lib.plan import planning, score_tasks, speed
from lib.plan.cost import WORKING_MEMORY, Cost
from lib.plan.machine import Machine
from lib.plan.planning import make_plan
from lib.plan.printout import as_text, summary
from lib.plan.quicker import half_width, quicker
from lib.plan.speed import Workload
from lib.plan.task import Task
from lib.plan.units import duration
from lib.plan.weights import weights_of
from lib.profiles import load_profile, run_profile

OPEN, GATED = "org/open", "org/gated"


def counts(plan):
    """Return by task the prompts that are asked for, and those that are stored."""
    return [(one.task.name, one.task.prompts, one.task.stored) for one in plan.costs]


def test_what_is_planned_is_what_a_run_stores_and_nothing_is_left_then(hub, small):
    plan = make_plan(small)
    assert counts(plan) == [
        ("tokens", 4, 0),
        ("attention", 4 * 4, 0),
        ("activations", 5 * 4, 0),
        ("controls", 3 * 7 * 4 + 2 * 3 * 4, 0),
        ("main", 3 * 2, 0),
        ("likelihood", 6 * 4, 0),
        ("draws", 2 * 2 * 2, 0),
        ("draw_scores", 2 * 2 * 2 * 3, 0),
    ]
    measure(small)
    answers = evaluation.answers(small)
    scores = evaluation.scores(small)
    assert (len(answers), len(scores)) == (6, 24)
    assert len(evaluation.draws(small)) == 8

    # The answers of a random model are all wrong, so that none of them is scored.
    after = make_plan(small)
    asked = [(name, n, n) for name, n, _ in counts(plan)[:-1]]
    assert counts(after) == [*asked, ("draw_scores", 0, 0)]
    everything = "Plan: nothing to fetch or compute, everything is stored"
    assert summary(after) == everything
    assert not after.refusals and after.bytes_to_fetch == 0
    again = make_plan(small, fresh=True)
    assert again.prompts == plan.prompts

    # Of fewer problems than are stored no more is counted than they ask for.
    rates = small.pass_rates.model_copy(update={"limit": 1})
    fewer = small.model_copy(update={"pass_rates": rates})
    drawn = make_plan(fewer, parts=["draws", "draw_scores"])
    assert counts(drawn) == [("draws", 4, 4), ("draw_scores", 0, 0)]


def test_a_likelihood_run_that_was_stopped_is_counted_as_far_as_it_came(hub, small):
    fewer = small.likelihood.model_copy(update={"limit": 2})
    likelihoods(fewer, small.filler, small.seed, small.results / "likelihood")
    plan = make_plan(small, parts=["likelihood"])
    assert counts(plan) == [("likelihood", 24, 8)]
    (cost,) = plan.left
    whole = make_plan(small, fresh=True, parts=["likelihood"]).left[0]
    assert cost.products == pytest.approx(whole.products * 16 / 24)


@pytest.fixture
def all_divided(monkeypatch):
    """Let every answer need a score, though a random model's are all wrong."""
    for module in (draw_scores, score_tasks):
        monkeypatch.setattr(
            module, "is_divided", lambda answers: pd.Series(True, answers.index)
        )


def test_draws_that_were_stopped_are_counted_as_far_as_they_came(
    hub, small, all_divided
):
    fewer = small.pass_rates.model_copy(update={"limit": 1})
    few = small.model_copy(update={"pass_rates": fewer})
    evaluation.draws(few)
    plan = make_plan(small, parts=["draws", "draw_scores"])
    assert counts(plan) == [("draws", 8, 4), ("draw_scores", 24, 12)]
    plan_of_few = make_plan(few, parts=["draws", "draw_scores"])
    assert counts(plan_of_few) == [("draws", 4, 4), ("draw_scores", 12, 12)]
    drawn, scored = make_plan(small, True, ["draws", "draw_scores"]).left
    assert [cost.products for cost in plan.left] == pytest.approx(
        [drawn.products / 2, scored.products / 2], rel=0.2
    )


def test_time_is_that_of_the_products_times_the_overhead_of_the_last_runs(hub, small):
    first = make_plan(small, parts=["likelihood"]).left[0]
    assert not first.learned
    assert first.products * 100e9 == pytest.approx(
        2 * first.task.tokens * first.task.work.read * 1e9 / (2 * first.task.tokens)
    )
    with speed.remembered("likelihood", products=speed.SHORTEST - 1):
        pass  # too short to say anything
    assert speed.overhead_of("likelihood") == (speed.OVERHEADS["likelihood"], False)
    with speed.remembered("likelihood", products=speed.SHORTEST):
        pass
    overhead, learned = speed.overhead_of("likelihood")
    assert learned and overhead < 0.1


# Whether this processor computes, and the overhead that follows from twenty seconds of
# products, a minute of the clock and so many seconds of the processor.
LEARNED = [(True, 40.0, 2.0), (True, 100.0, 3.0), (False, 40.0, 3.0)]


@pytest.mark.parametrize("on_processor, used, overhead", LEARNED)
def test_what_else_a_processor_does_meanwhile_is_not_learned(
    hub, monkeypatch, on_processor, used, overhead
):
    clocks = iter([(0.0, 5.0), (60.0, 5.0 + used)])
    monkeypatch.setattr(speed, "_clocks", lambda: next(clocks))
    with speed.remembered("likelihood", 20.0, on_processor):
        pass
    assert speed.overhead_of("likelihood") == (overhead, True)


@pytest.mark.parametrize(
    "part, changes, on_processor",
    [
        ("main", {}, True),
        ("main", {"workers": 1}, False),
        ("main", {"engine": "vllm"}, False),
        ("likelihood", {"workers": 2}, True),
        # Answers that are weighted are drawn by the engine that scores them.
        ("draws", {"workers": 2}, True),
        ("draws", {"engine": "vllm"}, True),
    ],
)
def test_the_processors_time_is_not_that_of_workers_and_other_engines(
    hub, small, part, changes, on_processor
):
    accuracy = small.accuracy.model_copy(update=changes)
    profile = small.model_copy(update={"accuracy": accuracy})
    plan = make_plan(profile, parts=[part])
    _, products, computes = plan.of_part(part)
    assert computes == on_processor
    assert products == plan.left[0].products < plan.seconds
    on_gpu = replace(plan, machine=plan.machine._replace(device="cuda"))
    assert not on_gpu.of_part(part)[2]


def test_nothing_is_learned_of_scores_whose_number_the_answers_decide(hub, small):
    plan = make_plan(small, parts=["draw_scores"])
    (scored,) = plan.left
    assert scored.products > 0
    assert plan.of_part("draw_scores") == ("likelihood", 0.0, True)


def test_of_the_demo_the_main_part_is_remembered_by_the_answers_it_checks(small):
    profile = small.model_copy(update={"name": "demo"})
    machine = Machine(device="cpu", memory=10**12, disk=10**12)
    check = Task("check", OPEN, 4, 0, 9, Workload())
    costs = [Cost(check, 7.0, 9.0, True, False, 0)]
    plan = planning.Plan(profile, machine, [], {}, costs, [], [])
    assert plan.of_part("main") == ("answers", 7.0, True)


def test_a_run_is_refused_at_once_for_all_its_models_and_leaves_nothing(
    hub, profile_file, tmp_path, capsys
):
    for repo in (OPEN, GATED):
        hub.gated[repo] = 403
    assert main(["reproduce", "--profile", str(profile_file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{OPEN} is gated" in line and f"{GATED} is gated" in line
    assert not (tmp_path / "results").exists()


# A change of the profile's text, and the reason for which it is refused.
PASS_RATES = "pass_rates:\n  models: [org/open]\n  problems: mine.jsonl\n"
REFUSED = [
    ("format: plain", "format: chat", "org/open has no chat template"),
    (
        f"{PASS_RATES}  format: plain",
        f"{PASS_RATES}  format: chat",
        "org/open has no chat template",
    ),
    ("models: [org/gated]", "models: [org/none]", "org/none was not found"),
    ("layers: 2", "layers: 2\n  format: chat", "org/open has no chat template"),
]


@pytest.mark.parametrize("old, new, reason", REFUSED)
def test_what_would_be_refused_hours_later_is_refused_at_once(
    hub, repositories, profile_file, old, new, reason
):
    folder = repositories / OPEN
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    (folder / "tokenizer_config.json").write_text("{}")
    profile_file.write_text(profile_file.read_text().replace(old, new))
    (refusal,) = make_plan(load_profile(profile_file)).refusals
    assert reason in refusal


def test_without_a_template_a_model_may_be_scored_while_another_reads_a_chat(
    hub, repositories, profile_file
):
    folder = repositories / OPEN
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    (folder / "tokenizer_config.json").write_text("{}")
    attention = "attention:\n  models: [org/{}]\n"
    text = profile_file.read_text()
    text = text.replace(
        attention.format("open"), attention.format("gated") + "  format: chat\n"
    )
    profile_file.write_text(text)
    assert make_plan(load_profile(profile_file)).refusals == []


def test_each_number_of_layers_is_fetched_once_however_many_tasks_read_them(hub, small):
    plan = make_plan(small)
    weights = weights_of(OPEN)
    assert plan.to_fetch[OPEN] == weights.to_fetch(2) + weights.size


def test_what_is_here_of_a_gated_model_may_be_measured(hub, small):
    first_layers(OPEN, 2)
    hub.gated[OPEN] = 403
    assert make_plan(small, parts=["attention"]).refusals == []
    (refusal,) = make_plan(small, parts=["attention", "main"]).refusals
    assert refusal.startswith("org/open is gated: ")


def test_problems_that_are_not_here_count_as_math500_and_are_missed_where_needed(
    hub, small, profile_file, monkeypatch
):
    profile_file.with_name("mine.jsonl").unlink()
    plan = make_plan(small, parts=["likelihood"])
    assert counts(plan) == [("likelihood", 500 * 4, 0)]
    assert "mine.jsonl" in plan.refusals[0]
    stored = Task("likelihood", GATED, 4, 4, 9, Workload())
    monkeypatch.setattr(planning, "tasks_of", lambda *_: [stored])
    assert make_plan(small).refusals == []


def test_a_problem_without_a_solution_is_named_where_solutions_are_scored(
    hub, small, profile_file
):
    problems = profile_file.with_name("mine.jsonl")
    problems.write_text(problems.read_text().replace("It is $4$.", " "))
    assert make_plan(small).refusals == [
        f"{problems}: 1 problems have no solution, which likelihoods need, such as"
        " problem 3"
    ]
    assert make_plan(small, parts=["main", "draw_scores"]).refusals == []


def test_the_step_that_needs_most_memory_of_what_is_left_decides(
    hub, small, monkeypatch
):
    work = Workload()
    gigabytes = {
        Task("tokens", OPEN, 4, 0, 9, work): 7,
        Task("attention", OPEN, 4, 0, 9, work): 3,
        Task("likelihood", GATED, 4, 4, 9, work): 9,
        Task("main", GATED, 4, 0, 9, work): 5,
    }

    def cost_of(task, shape, machine):
        return Cost(task, 0.0, 0.0, True, False, gigabytes[task] * 10**9)

    machine = Machine(device="cpu", memory=5 * 10**9, disk=10**12)
    monkeypatch.setattr(planning, "this_machine", lambda: machine)
    monkeypatch.setattr(planning, "tasks_of", lambda *_: list(gigabytes))
    monkeypatch.setattr(planning, "cost_of", cost_of)
    assert make_plan(small).refusals == ["org/open needs 7 GB of memory, 5 GB are free"]


def test_weights_may_fill_the_disk_and_no_more():
    machine = Machine(device="cpu", memory=9 * 10**9, disk=3 * 10**9)
    assert not list(planning.of_disk(3 * 10**9, machine))
    assert list(planning.of_disk(5 * 10**9, machine)) == [
        "weights need 5 GB of disk, 3 GB are free: set HF_HOME to a larger one"
    ]


def test_a_model_without_a_tokenizer_is_refused_at_once(hub, repositories, small):
    for folder in (repositories / OPEN, repositories / GATED):
        (folder / "tokenizer.json").unlink()
    (refusal,) = make_plan(small).refusals
    assert refusal == f"{OPEN}, {GATED}: no tokenizer.json"
    here = weights_of(str(repositories / OPEN))
    assert here.refusal == f"{repositories / OPEN}: no tokenizer.json"


def test_a_folder_that_lacks_a_shard_is_refused(tiny_checkpoint):
    index = {"weight_map": {"a": "one.safetensors", "b": "model.safetensors"}}
    (tiny_checkpoint / SHARD_INDEX).write_text(json.dumps(index))
    refusal = weights_of(str(tiny_checkpoint)).refusal
    assert refusal.endswith("lacks 1 of 2 shards, such as one.safetensors")


def test_problems_without_solutions_no_memory_and_no_disk_are_refused(
    hub, small, profile_file, monkeypatch
):
    problems = profile_file.with_name("mine.jsonl")
    problems.write_text(problems.read_text().replace('"solution"', '"unused"'))
    tight = Machine(device="cpu", memory=10**9, disk=10**6)
    monkeypatch.setattr(planning, "this_machine", lambda: tight)
    refusals = "\n".join(make_plan(small).refusals)
    for reason in ("6 problems have no solution", "GB of memory", "GB of disk"):
        assert reason in refusals


def test_a_model_beyond_half_of_the_memory_is_read_one_layer_at_a_time(
    hub, small, monkeypatch
):
    memory = {name: [] for name in ("likelihood", "main")}
    for free in (10**12, 6 * 10**6):
        machine = Machine(device="cpu", memory=free, disk=10**12)
        monkeypatch.setattr(planning, "this_machine", lambda machine=machine: machine)
        for one in make_plan(small, parts=list(memory)).costs:
            memory[one.task.name].append((one.streamed, one.memory))
    (whole, _), (cut, _) = memory["likelihood"]
    assert (whole, cut) == (False, True)
    # Answers are written by a model that is whole.
    assert [streamed for streamed, _ in memory["main"]] == [False, False]


def test_fewer_notebooks_need_fewer_parts(hub, small):
    plan = make_plan(small, parts=["tokens"], notebooks=1)
    assert [one.task.name for one in plan.costs] == ["tokens"]
    assert plan.seconds >= speed.NOTEBOOK_SECONDS


def test_each_notebook_draws_as_long_as_the_last_ones_did(hub, small, monkeypatch):
    monkeypatch.setattr(planning, "overhead_of", lambda kind: (3.0, True))
    plan = make_plan(small, parts=["tokens"], notebooks=2)
    assert plan.drawing == 2 * speed.NOTEBOOK_SECONDS * 3.0


def test_bfloat16_is_recommended_where_it_saves_minutes(hub, small, monkeypatch):
    by_dtype = {"float32": 50.0, "bfloat16": 200.0}
    monkeypatch.setattr(speed, "_timed", lambda device, dtype, rows: by_dtype[dtype])
    plan = make_plan(small)
    assert not any("bfloat16" in advice for advice in quicker(plan))
    monkeypatch.setattr("lib.plan.quicker.SECONDS_SAVED", 0)
    assert any("--dtype bfloat16" in advice for advice in quicker(plan))
    # Answers that are weighted are drawn in float32, whatever --dtype says.
    drawn = make_plan(small, parts=["draws"])
    assert not any("bfloat16" in advice for advice in quicker(drawn))
    assert half_width(264) == pytest.approx(4, abs=0.01)


def test_a_plan_as_text_names_models_tasks_claims_and_ends_with_its_summary(hub, small):
    hub.gated[GATED] = 401
    text = as_text(make_plan(small, notebooks=7))
    lines = text.splitlines()
    begins = ["model ", "open ", "gated ", "this machine: cpu"]
    begins += ["tokens of one problem ", "answers ", "likelihood ", "sampled answers "]
    for begin in begins:
        assert any(line.startswith(begin) for line in lines)
    assert re.search(r"^decides by accuracy, on org/open: accuracy-mless$", text, re.M)
    assert re.search(r"^refused: org/gated is gated: request access", text, re.M)
    assert re.fullmatch(
        r"Plan: 0.0 GB to fetch, 210 prompts, about [\w ]+ minutes? on this machine, by"
        r" a trial of ten seconds",
        lines[-1],
    )
    weighted = "points-slashes, points-layer-1-needed"
    assert f"decides by weighted pass rates, on org/open: {weighted}" in lines


@pytest.mark.parametrize(
    "seconds, text",
    [
        (3, "under a minute"),
        (61, "1 minute"),
        (600, "10 minutes"),
        (7100, "118 minutes"),
        (9000, "2.5 hours"),
    ],
)
def test_times_are_said_as_a_person_says_them(seconds, text):
    assert duration(seconds) == text


def test_the_repositorys_own_profiles_are_stored_and_need_no_model(hub):
    plan = make_plan(load_profile("families"))
    assert (plan.prompts, plan.bytes_to_fetch, plan.refusals) == (0, 0, [])


def test_engine_and_workers_are_overrides_and_workers_give_no_name(hub):
    assert run_profile("demo", workers=2).accuracy.workers == 2
    assert run_profile("demo", workers=2).name == "demo"
    other = run_profile("demo", engine="vllm")
    assert other.accuracy.engine == "vllm" and other.name != "demo"


@pytest.mark.parametrize("gigabytes, advised", [(80, True), (0.001, False)])
def test_a_gpu_with_room_is_advised_to_answer_more_at_once(
    hub, small, monkeypatch, gigabytes, advised
):
    gpu = Machine(device="cuda", memory=int(gigabytes * 1e9 + 1.5e9), disk=10**12)
    monkeypatch.setattr(planning, "this_machine", lambda: gpu)
    plan = make_plan(small)
    assert any("batch_size" in advice for advice in quicker(plan)) == advised


def test_caches_of_answers_that_grow_at_once_count_as_memory(hub, small):
    (cost,) = make_plan(small, parts=["main"]).left
    shape = weights_of(OPEN).shape
    # Three layers with keys and values of one head that is four wide.
    assert shape.cache == 2 * 3 * 4
    caches = 6 * cost.task.longest * shape.cache
    weights = (shape.parameters() + caches) * 4
    assert cost.memory == weights + WORKING_MEMORY
