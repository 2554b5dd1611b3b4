"""Likelihoods of solutions against plain forwards with masks made by hand; continuing;
mistakes.
"""

import contextlib
import copy
import json
from dataclasses import replace

import pytest
import torch
from eager import hidden_by_hand
from families import FAMILIES, spread
from tokenizers.processors import TemplateProcessing

from lib.arm.moving import installed
from lib.errors import InputError
from lib.evaluation import likelihood
from lib.models.loading import Loaded
from lib.models.names import Source
from lib.profiles import Likelihood
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem, sampling_order

SOLUTIONS = ["It is $\\boxed{0}$.", "Adding gives $2$, so $\\boxed{2}$.", "$4$"]
ROWS = [
    {
        "unique_id": f"p{i}",
        "problem": f"What is ${i} + {i}$?",
        "answer": str(2 * i),
        "solution": solution,
        "level": 1,
    }
    for i, solution in enumerate(SOLUTIONS)
]
PROBLEMS = [Problem.model_validate(row) for row in ROWS]


@pytest.fixture(scope="module", params=["llama", "gemma3-local-and-global"])
def tiny(request, demo):
    torch.manual_seed(2)
    model = FAMILIES[request.param]()
    model.resize_token_embeddings(len(demo.tokenizer))
    spread(model)
    source = Source("tiny", "tiny", revision="none")
    return Loaded(model, demo.tokenizer, source, "cpu", "float32")


@pytest.fixture
def run(tiny, tmp_path, monkeypatch):
    """Score with the tiny model; `folder`, `filler` and `seed` aside, by settings."""
    monkeypatch.setattr(likelihood, "load_without_weights", lambda spec, **_: tiny)
    monkeypatch.setattr(likelihood, "with_weights", lambda known, **_: known)
    problems = tmp_path / "problems.jsonl"

    def scored(rows=ROWS, folder="out", filler=None, seed=0, **settings):
        lines = [json.dumps(row) + "\n" for row in rows]
        problems.write_text("".join(lines))
        settings = Likelihood(models=["demo"], problems=str(problems), **settings)
        return likelihood.likelihoods(
            settings, filler or Filler(), seed, tmp_path / folder
        )

    return scored


def ids_of(loaded, text):
    return loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


def score(logits, ids):
    """log p of the tokens that stand last, given the logits of every place."""
    before = logits[-len(ids) - 1 : -1].log_softmax(-1)
    return float(before.gather(1, torch.tensor(ids)[:, None]).sum())


# Which layers hide the slashes from later tokens.
HIDDEN = {
    "gap": slice(None),
    "dilution": slice(1, None),
    "layer-1-only": slice(1, None),
    "hidden-from-layer-1": slice(1),
}


def by_hand(loaded, problem, condition, text, lead="", style="chat", filler=None):
    """log p(text | prompt, lead) by one eager forward, with the mask and the values
    that the condition means.
    """
    prompt = build_prompt(
        loaded.tokenizer, problem.problem, condition, format=style, filler=filler
    )
    text = ids_of(loaded, text)
    ids = torch.tensor([[*prompt.input_ids.tolist(), *ids_of(loaded, lead), *text]])
    span = prompt.spans["inserted"]
    place = torch.arange(ids.shape[1])
    inserted = (place >= span.start) & (place < span.stop)
    cut = (place >= span.stop)[:, None] & inserted
    layers = range(1, loaded.layers + 1)[HIDDEN.get(condition, slice(0))]
    with contextlib.ExitStack() as hooks, torch.inference_mode():
        hooks.enter_context(hidden_by_hand(loaded.model, cut, layers))
        if condition == "dilution":
            hooks.enter_context(silenced_by_hand(loaded.model, inserted))
        return score(loaded.model(ids, use_cache=False).logits[0].double(), text)


def silenced_by_hand(model, inserted):
    """In layer 1 the slashes give nothing; later layers hide them, so that their own
    states do not matter.
    """
    return model.model.layers[0].self_attn.v_proj.register_forward_hook(
        lambda _, given, output: output.masked_fill(inserted[:, None], 0.0)
    )


@pytest.mark.parametrize(
    "condition",
    ["none", "mless:5", "mless:3@end", "example", "bare", "thought", *HIDDEN],
)
def test_a_score_is_what_a_plain_forward_gives(tiny, run, condition):
    # Under `thought` the solution stands before the answer, and the prompt is none's.
    prompt = "none" if condition == "thought" else condition
    rows = run(conditions=[prompt], at_once=[condition])
    nats = rows.set_index(["problem_id", "target"]).nats
    for problem in PROBLEMS:
        thought = problem.solution if condition == "thought" else ""
        solution = by_hand(tiny, problem, prompt, problem.solution)
        answer = by_hand(
            tiny,
            problem,
            prompt,
            problem.answer + "}",
            lead=thought + likelihood.BEFORE_ANSWER,
        )
        assert nats[problem.id, "solution"] == pytest.approx(solution, abs=1e-3)
        assert nats[problem.id, "answer"] == pytest.approx(answer, abs=1e-3)


def test_a_profiles_own_filler_sample_and_format_reach_the_scores(tiny, run):
    filler = Filler(mless="!", length=3, position="end")
    rows = run(filler=filler, seed=3, limit=2, conditions=["mless"], format="plain")
    drawn = sampling_order(PROBLEMS, 3)[:2]
    assert rows.problem_id.tolist() == [problem.id for problem in drawn]
    assert drawn != sampling_order(PROBLEMS, 0)[:2]
    for problem, nats in zip(drawn, rows.nats, strict=True):
        # Nothing but a line break ends the question of a plain prompt.
        expected = by_hand(
            tiny,
            problem,
            "mless",
            problem.solution,
            lead="\n",
            style="plain",
            filler=filler,
        )
        assert nats == pytest.approx(expected, abs=1e-3)


def test_as_many_dots_stand_for_a_thought_as_the_solution_has_tokens(tiny):
    settings = Likelihood(
        models=["demo"], conditions=["none"], at_once=["dots-for-thought"]
    )
    wanted = likelihood.texts_wanted(tiny, settings, Filler(), PROBLEMS)
    leads = {text.problem.id: text.lead for text in wanted.values() if text.lead}
    for problem in PROBLEMS:
        dots = ids_of(tiny, ".") * len(ids_of(tiny, problem.solution))
        assert leads[problem.id] == dots + ids_of(tiny, likelihood.BEFORE_ANSWER)


@pytest.mark.parametrize("target", ["solution", "answer"])
def test_arm_changes_the_prompt_alone(tiny, run, target):
    asked = {"conditions": [], "at_once": []}
    asked["conditions" if target == "solution" else "at_once"] = ["arm:c=1.0"]
    rows = run(**asked).set_index("problem_id")
    arm = parse_condition("arm:c=1.0").arm.model_copy(update={"statistics": "sequence"})
    for problem in PROBLEMS:  # one batch, each row of which draws from its own seed
        row = rows.loc[problem.id]
        text, lead = problem.solution, ""
        if target == "answer":
            text, lead = problem.answer + "}", likelihood.BEFORE_ANSWER
        prompt = build_prompt(tiny.tokenizer, problem.problem, "none", format="chat")
        ids = ids_of(tiny, text)
        seed = int(row["key"], 16) % 2**63
        with (
            torch.inference_mode(),
            installed(tiny.model, seed=seed, **arm.model_dump()),
        ):
            first = tiny.model(prompt.input_ids[None], use_cache=True)
            rest = tiny.model(
                torch.tensor([ids_of(tiny, lead) + ids]),
                past_key_values=first.past_key_values,
                use_cache=True,
            )
        logits = torch.cat([first.logits[0, -1:], rest.logits[0]])
        plain = by_hand(tiny, problem, "none", text, lead)
        assert row["nats"] == pytest.approx(score(logits, ids), abs=1e-3)
        assert row["nats"] != pytest.approx(plain, abs=1e-3)


def test_a_row_counts_the_tokens_of_its_prompt_and_of_its_text(tiny, run):
    rows = run(conditions=["none", "mless:5"], at_once=["none"]).set_index("problem_id")
    for problem in PROBLEMS:
        prompt = build_prompt(tiny.tokenizer, problem.problem, "none", format="chat")
        solution = len(ids_of(tiny, problem.solution))
        answer = len(ids_of(tiny, problem.answer + "}"))
        none, at_once, mless = rows.loc[problem.id].to_dict("records")
        assert (none["prompt_tokens"], none["tokens"]) == (len(prompt), solution)
        assert (mless["prompt_tokens"], mless["tokens"]) == (len(prompt) + 5, solution)
        assert (at_once["prompt_tokens"], at_once["tokens"]) == (len(prompt), answer)


def test_a_longer_solution_is_left_out_and_counted(run, capsys):
    rows = run(conditions=["none"], max_solution_tokens=3)
    assert set(rows.problem_id) == {"p2"}
    assert "2 problems have solutions of over 3 tokens" in capsys.readouterr().err
    rows = run(conditions=["none"], max_solution_tokens=9, folder="longer")
    assert set(rows.problem_id) == {"p0", "p2"}  # of more than 9 characters


def test_texts_have_no_mark_of_a_beginning(tiny):
    marked = copy.deepcopy(tiny.tokenizer)
    mark = marked.convert_ids_to_tokens(1)
    marked.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{mark} $A", special_tokens=[(mark, 1)]
    )
    loaded = replace(tiny, tokenizer=marked)
    settings = Likelihood(models=["demo"], conditions=["none"])
    wanted = likelihood.texts_wanted(loaded, settings, Filler(), PROBLEMS[:1])
    (text,) = wanted.values()
    assert text.text == ids_of(tiny, PROBLEMS[0].solution)


def test_each_condition_is_scored_with_its_own_view(run):
    together = run(conditions=["mless:5", "gap", "layer-1-only"])
    for condition, rows in together.groupby("condition"):
        alone = run(conditions=[condition], folder=condition)
        assert rows.nats.tolist() == pytest.approx(alone.nats.tolist(), abs=1e-3)


@pytest.mark.parametrize(
    "solution, message",
    [
        (" ", "p0 has no solution"),
        (
            "one two three " * 200,
            r"p0: prompt and solution are \d+ tokens, tiny has room for 512",
        ),
    ],
)
def test_a_solution_that_is_not_there_or_does_not_fit_is_named(
    run, solution, message, tmp_path
):
    rows = [ROWS[0] | {"solution": solution}]
    with pytest.raises(InputError, match=message):
        run(rows, conditions=["none"], max_solution_tokens=9999)
    assert not (tmp_path / "out").exists()


def test_no_weights_are_read_where_nothing_is_missing_or_a_folder_is_refused(
    run, monkeypatch
):
    scored = run(conditions=["none"], limit=1)

    def load_nothing(known, **_):
        pytest.fail("weights were read")

    monkeypatch.setattr(likelihood, "with_weights", load_nothing)
    assert run(conditions=["none"], limit=1).equals(scored)
    with pytest.raises(InputError, match=r"with max_solution_tokens = 512, not 511:"):
        run(conditions=["none"], limit=1, max_solution_tokens=511)


@pytest.mark.parametrize("condition", ["arm:mode=code", "layer-2-only", "gap+dilution"])
def test_conditions_that_likelihoods_lack_are_refused(condition):
    with pytest.raises((InputError, ValueError)):
        Likelihood(models=["demo"], conditions=["none", condition])
