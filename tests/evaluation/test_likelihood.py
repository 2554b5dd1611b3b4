"""Likelihoods of gold solutions against plain forwards, on tiny random models; continuing; mistakes."""

import json

import pytest
import torch
from families import FAMILIES

from lib.arm.hook import installed
from lib.errors import InputError
from lib.evaluation import likelihood
from lib.models.loading import Loaded
from lib.profiles import Likelihood
from lib.prompts.building import build_prompt
from lib.prompts.conditions import View, parse_condition

PROBLEMS = [
    {"unique_id": f"p{i}", "problem": f"What is ${i} + {i}$?", "answer": str(2 * i), "solution": text, "level": 1}
    for i, text in enumerate(["It is $\\boxed{0}$.", "Adding gives $2$, so $\\boxed{2}$.", "$4$"])
]
CONDITIONS = ["none", "mless:5", "gap:5", "dilution:5", "layer-1-only:5", "hidden-from-layer-1:5", "example", "bare"]


@pytest.fixture(scope="module", params=["llama", "gemma3-local-and-global"])
def tiny(request, demo):
    torch.manual_seed(2)
    model = FAMILIES[request.param]()
    model.resize_token_embeddings(len(demo.tokenizer))
    model.config.max_position_embeddings = 512
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    return Loaded(model.eval(), demo.tokenizer, "tiny", "tiny", "none", "cpu", "float32", 3)


@pytest.fixture
def run(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(likelihood, "load", lambda spec, dtype: tiny)
    problems = tmp_path / "problems.jsonl"

    def scored(rows=PROBLEMS, folder="out", **settings):
        problems.write_text("".join(json.dumps(row) + "\n" for row in rows))
        asked = Likelihood(models=["demo"], problems=str(problems), **settings)
        return likelihood.likelihoods(asked, likelihood.Filler(), 0, tmp_path / folder)

    return scored


def alone(loaded, problem, condition, text, lead=""):
    """log p(text | prompt, lead) by one plain forward with the model's own attention."""
    prompt = build_prompt(loaded.tokenizer, problem["problem"], condition, format="chat").input_ids.tolist()
    lead, ids = ([] if not t else loaded.tokenizer(t, add_special_tokens=False)["input_ids"] for t in (lead, text))
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([[*prompt, *lead, *ids]])).logits[0, :-1].log_softmax(-1)
    return float(logits[-len(ids) :].gather(1, torch.tensor(ids)[:, None]).sum())


@pytest.mark.parametrize("condition", ["none", "mless:5", "random:7", "mless:3@end", "example", "bare"])
def test_a_score_is_what_a_plain_forward_gives(tiny, run, condition):
    rows = run(conditions=[condition], at_once=[condition])
    by_place = {(row["problem_id"], row["target"]): row["nats"] for row in rows}
    for problem in PROBLEMS:
        expected = alone(tiny, problem, condition, problem["solution"])
        assert by_place[problem["unique_id"], "solution"] == pytest.approx(expected, abs=1e-3)
        expected = alone(tiny, problem, condition, problem["answer"] + "}", likelihood.AT_ONCE)
        assert by_place[problem["unique_id"], "answer"] == pytest.approx(expected, abs=1e-3)


def test_what_is_hidden_everywhere_moves_the_problem_on_and_nothing_else(tiny, run):
    nats = {row["condition"]: row["nats"] for row in run(conditions=CONDITIONS, limit=1)}
    assert nats["gap:5"] == pytest.approx(nats["none"], abs=0.5) and nats["gap:5"] != nats["mless:5"]
    assert len({round(value, 3) for value in nats.values()}) >= 7


def test_arm_changes_the_prompt_alone(tiny, run):
    row = run(conditions=["arm:c=1.0"], limit=1)[0]
    problem = next(problem for problem in PROBLEMS if problem["unique_id"] == row["problem_id"])
    prompt = build_prompt(tiny.tokenizer, problem["problem"], "none", format="chat").input_ids
    ids = torch.tensor(tiny.tokenizer(problem["solution"], add_special_tokens=False)["input_ids"])
    arm = parse_condition("arm:c=1.0").arm.model_copy(update={"statistics": "sequence"})
    with torch.inference_mode(), installed(tiny.model, seed=int(row["key"], 16) % 2**63, **arm.model_dump()):
        first = tiny.model(prompt[None], use_cache=True)
        rest = tiny.model(ids[None, :-1], past_key_values=first.past_key_values, use_cache=True)
    logits = torch.cat([first.logits[0, -1:], rest.logits[0]]).log_softmax(-1)
    assert row["nats"] == pytest.approx(float(logits.gather(1, ids[:, None]).sum()), abs=1e-3)
    assert row["nats"] != pytest.approx(alone(tiny, problem, "none", problem["solution"]), abs=1e-3)


def test_dots_or_the_solution_may_stand_before_the_answer(tiny, run):
    rows = {(row["problem_id"], row["condition"]): row for row in run(conditions=["none"], at_once=["thought"])}
    for problem in PROBLEMS:
        ids = tiny.tokenizer(problem["solution"], add_special_tokens=False)["input_ids"]
        lead = [*ids, *tiny.tokenizer(likelihood.AT_ONCE, add_special_tokens=False)["input_ids"]]
        text = tiny.tokenizer(problem["answer"] + "}", add_special_tokens=False)["input_ids"]
        prompt = build_prompt(tiny.tokenizer, problem["problem"], "none", format="chat").input_ids.tolist()
        with torch.inference_mode():
            logits = tiny.model(torch.tensor([prompt + lead + text])).logits[0, :-1].log_softmax(-1)
        expected = float(logits[-len(text) :].gather(1, torch.tensor(text)[:, None]).sum())
        assert rows[problem["unique_id"], "thought"]["nats"] == pytest.approx(expected, abs=1e-3)


def test_a_run_goes_on_where_it_stopped(run, tmp_path, monkeypatch):
    whole = run(conditions=CONDITIONS, folder="whole")
    stops, own = iter(range(4)), likelihood.log_likelihoods

    def stopping(loaded, batch):
        if next(stops, None) is None:
            raise KeyboardInterrupt
        return own(loaded, batch)

    monkeypatch.setattr(likelihood, "log_likelihoods", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(conditions=CONDITIONS)
    kept = (tmp_path / "out" / "scores.jsonl").read_text()
    monkeypatch.setattr(likelihood, "log_likelihoods", own)
    found = run(conditions=CONDITIONS)
    text = (tmp_path / "out" / "scores.jsonl").read_text()
    assert text.startswith(kept) and len(text.splitlines()) == len(found) == len(PROBLEMS) * len(CONDITIONS)
    assert {row["key"]: row["nats"] for row in found} == pytest.approx(
        {row["key"]: row["nats"] for row in whole}, abs=1e-3
    )


def test_a_longer_solution_is_left_out_and_counted(run, capsys):
    rows = run(conditions=["none"], max_solution_tokens=3)
    assert {row["problem_id"] for row in rows} == {"p2"}
    assert "2 problems have solutions of over 3 tokens" in capsys.readouterr().err


def test_a_problem_without_solution_is_named(run):
    rows = [PROBLEMS[0], {**PROBLEMS[1], "solution": " "}]
    with pytest.raises(InputError, match="p1 has no solution"):
        run(rows, conditions=["none"])


def test_a_solution_longer_than_the_context_is_named(run):
    rows = [{**PROBLEMS[0], "solution": "one two three " * 200}]
    with pytest.raises(InputError, match=r"p0: prompt and solution are \d+ tokens, tiny has room for 512"):
        run(rows, conditions=["none"], max_solution_tokens=10_000)


@pytest.mark.parametrize(
    "text, hidden, silenced",
    [
        ("gap", [1, 2, 3, 4], []),
        ("dilution", [2, 3, 4], [1]),
        ("layer-1-only", [2, 3, 4], []),
        ("layers-1-to-3-only:10", [4], []),
        ("hidden-from-layer-1", [1], []),
        ("hidden-from-layers-1-to-2@end", [1, 2], []),
    ],
)
def test_conditions_say_which_layers_show_what_is_inserted(text, hidden, silenced):
    view = parse_condition(text).view
    assert (view.hidden(4), view.silenced(4)) == (hidden, silenced)


def test_without_a_view_every_layer_shows_it():
    assert parse_condition("mless").view is None and View(1, None).hidden(4) == []


@pytest.mark.parametrize("condition", ["arm:mode=code", "layer-2-only", "gap+dilution"])
def test_conditions_that_likelihoods_lack_are_refused(condition):
    with pytest.raises((InputError, ValueError)):
        Likelihood(models=["demo"], conditions=["none", condition])
