"""Log-likelihoods of solutions compared with plain forward passes and masks made by
hand; layers read from disk; interrupted runs; mistakes of users.
"""

import contextlib
import copy
import re
import shutil
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from eager import hidden_by_hand
from families import FAMILIES, spread
from tokenizers.processors import TemplateProcessing

from lib import progress
from lib.arm.redistribution import installed
from lib.errors import InputError
from lib.files.text_files import read
from lib.generation import log_likelihoods
from lib.generation.engine_interface import processor_name
from lib.models import loading
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem, sampling_order
from reproduction.evaluation import score_run, scored_texts
from reproduction.evaluation.score_run import SIZES, require_scorable
from reproduction.evaluation.scored_texts import texts_to_score
from reproduction.profiles import Likelihood
from reproduction.row_keys import BEFORE_ANSWER, WantedScore

ARM = "arm:c=1.0"
SOLUTIONS = ["It is $\\boxed{0}$.", "Adding gives $2$, so $\\boxed{2}$.", "$4$"]
PROBLEMS = [
    Problem(
        unique_id=f"p{i}",
        problem=f"What is ${i} + {i}$?",
        answer=2 * i,
        solution=solution,
    )
    for i, solution in enumerate(SOLUTIONS)
]


@pytest.fixture(scope="module", params=["llama", "gemma3-local-and-global"])
def tiny(request, demo, tmp_path_factory):
    """A random model with the demo model's tokenizer, loaded from a folder."""
    folder = tmp_path_factory.mktemp(request.param) / "tiny"
    torch.manual_seed(2)
    model = FAMILIES[request.param]()
    model.resize_token_embeddings(len(demo.tokenizer))
    spread(model).save_pretrained(folder)
    demo.tokenizer.save_pretrained(folder)
    return load(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def run(tiny, tmp_path):
    """A function that scores problems with the tiny model into a folder."""

    def scored(
        problems=PROBLEMS, folder="out", filler=None, seed=0, others=(), **settings
    ):
        file = tmp_path / "problems.jsonl"
        lines = [problem.model_dump_json(by_alias=True) for problem in problems]
        file.write_text("\n".join(lines))
        settings = {"models": [tiny.spec], "problems": str(file)} | settings
        settings = Likelihood(**settings)
        target = filler or Filler(), seed, tmp_path / folder
        return scored_texts.score_solutions(settings, *target, others)

    return scored


def prompt_of(loaded, problem, condition="none", format="chat", filler=None):
    text = problem.problem
    if condition == "repeat":
        text, condition = f"{text}\n\n{text}", "none"
    return build_prompt(loaded.tokenizer, text, condition, format=format, filler=filler)


def ids_of(loaded, text):
    return loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


def lead_and_text(loaded, problem, target, thought=""):
    """Return the tokens between the prompt and the target, and the target's tokens."""
    if target == "solution":
        return [], ids_of(loaded, problem.solution)
    lead = ids_of(loaded, BEFORE_ANSWER)
    if thought == "thought":
        lead = ids_of(loaded, problem.solution + BEFORE_ANSWER)
    if thought == "dots-for-thought":
        # One dot for each token of the solution.
        lead = ids_of(loaded, ".") * len(ids_of(loaded, problem.solution)) + lead
    return lead, ids_of(loaded, problem.answer + "}")


def score(logits, ids):
    """Return log p of the last tokens, `ids`, from the logits (T, vocabulary)."""
    before = logits[-len(ids) - 1 : -1].log_softmax(-1)
    return float(before.gather(1, torch.tensor(ids)[:, None]).sum())


# The layers that hide the inserted tokens from later ones, by condition.
HIDDEN = {
    "gap": slice(None),
    "gap:3": slice(None),
    "mless-first-2:5": slice(None),
    "mful-middle-1:5": slice(None),
    "mless-last-2:5": slice(None),
    "dilution": slice(1, None),
    "layer-1-only": slice(1, None),
    "hidden-from-layer-1": slice(1),
}


# The inserted tokens that stay visible in those layers.
VISIBLE = {
    "mless-first-2:5": slice(0, 2),
    "mful-middle-1:5": slice(2, 3),
    "mless-last-2:5": slice(3, 5),
}


def by_hand(loaded, prompt, lead, text, condition="none"):
    """Return log p(text | prompt, lead) from one eager forward pass with the mask and
    the values that the condition stands for.
    """
    return score(logits_by_hand(loaded, prompt, lead, text, condition), text)


def logits_by_hand(loaded, prompt, lead, text, condition="none"):
    """Return the logits (T, vocabulary) of one eager forward pass over prompt, lead and
    text.
    """
    ids = torch.tensor([[*prompt.input_ids.tolist(), *lead, *text]])
    span = prompt.spans["inserted"]
    position = torch.arange(ids.shape[1])
    inserted = (position >= span.start) & (position < span.stop)
    hidden = inserted.clone()
    hidden[span][VISIBLE.get(condition, slice(0))] = False
    cut = (position >= span.stop)[:, None] & hidden
    layers = range(1, loaded.layers + 1)[HIDDEN.get(condition, slice(0))]
    with contextlib.ExitStack() as hooks, torch.inference_mode():
        hooks.enter_context(hidden_by_hand(loaded.model, cut, layers))
        if condition == "dilution":
            hooks.enter_context(silenced_by_hand(loaded.model, inserted))
        return loaded.model(ids, use_cache=False).logits[0].double()


def silenced_by_hand(model, inserted):
    """Set the values of the inserted tokens in layer 1 to zero. Later layers hide these
    tokens, so their hidden states do not matter.
    """
    return model.model.layers[0].self_attn.v_proj.register_forward_hook(
        lambda _, given, output: output.masked_fill(inserted[:, None], 0.0)
    )


def test_a_score_equals_the_log_likelihood_of_a_plain_forward(tiny, run):
    conditions = ["none", "mless:5", "mless:3@end", "example", "bare", "repeat"]
    conditions += HIDDEN
    # These follow the prompt of none and precede the answer.
    thoughts = ["thought", "dots-for-thought"]
    rows = run(conditions=conditions, at_once=[*conditions, *thoughts])
    assert len(rows) == len(PROBLEMS) * (2 * len(conditions) + len(thoughts))
    assert set(rows.processor) == {processor_name("cpu")}
    for row in rows.to_dict("records"):
        problem = PROBLEMS[int(row["problem_id"][1:])]
        condition = row["condition"]
        lead, text = lead_and_text(tiny, problem, row["target"], thought=condition)
        prompt = prompt_of(
            tiny, problem, "none" if condition in thoughts else condition
        )
        expected = by_hand(tiny, prompt, lead, text, condition)
        assert row["nats"] == pytest.approx(expected, abs=1e-3), row
        assert row["tokens"] == len(text)
        assert row["prompt_tokens"] == len(prompt)


def test_a_profiles_filler_sample_and_format_reach_the_scores(tiny, run):
    filler = Filler(mless="!", length=3, position="end")
    rows = run(filler=filler, seed=3, limit=2, conditions=["mless"], format="plain")
    drawn = sampling_order(PROBLEMS, 3)[:2]
    assert rows.problem_id.tolist() == [problem.id for problem in drawn]
    assert drawn != sampling_order(PROBLEMS, 0)[:2]
    for problem, nats in zip(drawn, rows.nats, strict=True):
        prompt = prompt_of(tiny, problem, "mless", "plain", filler)
        # In a plain prompt a line break follows the question.
        line_break = ids_of(tiny, "\n")
        _, text = lead_and_text(tiny, problem, "solution")
        expected = by_hand(tiny, prompt, line_break, text)
        assert nats == pytest.approx(expected, abs=1e-3)


def with_arm(loaded, prompt, lead, text, key):
    """Return log p(text | prompt, lead) with ARM on the prompt, seeded by a row's
    key.
    """
    arm = parse_condition(ARM).arm
    hook = installed(loaded.model, arm, seed=int(key, 16) % 2**63)
    after = torch.tensor([[*lead, *text]])
    with torch.inference_mode(), hook:
        first = loaded.model(prompt.input_ids[None], use_cache=True)
        rest = loaded.model(after, past_key_values=first.past_key_values)
    return score(torch.cat([first.logits[0, -1:], rest.logits[0]]), text)


def test_each_model_is_scored(tiny, run, tmp_path):
    other = shutil.copytree(tiny.spec, tmp_path / "other")
    rows = run(models=[tiny.spec, str(other)], conditions=["none"], limit=1)
    assert rows.model.tolist() == ["tiny", "other"]


def test_arm_changes_only_the_prompt(tiny, run):
    rows = run(conditions=[ARM], at_once=[ARM])
    assert len(rows) == 2 * len(PROBLEMS)
    moved = []
    for row in rows.to_dict("records"):
        problem = PROBLEMS[int(row["problem_id"][1:])]
        prompt = prompt_of(tiny, problem)
        texts = lead_and_text(tiny, problem, row["target"])
        changed = with_arm(tiny, prompt, *texts, row["key"])
        assert row["nats"] == pytest.approx(changed, abs=1e-3)
        moved.append(abs(row["nats"] - by_hand(tiny, prompt, *texts)))
    assert max(moved) > 0.002


def test_scores_with_layers_read_from_disk_equal_those_of_the_loaded_model(
    run, monkeypatch, capsys
):
    conditions = ["none", ARM, "gap", "dilution"]
    loaded = run(conditions=conditions)
    monkeypatch.setattr(loading, "free_memory", lambda *_: 0)
    from_disk = run(conditions=conditions, folder="from disk")
    assert "stay on disk" in capsys.readouterr().err
    assert list(from_disk.key) == list(loaded.key)
    assert from_disk.nats.to_numpy() == pytest.approx(loaded.nats.to_numpy(), abs=2e-4)


def test_an_interrupted_run_keeps_its_first_problems_under_all_conditions(
    run, tmp_path, monkeypatch
):
    forwards = Mock(side_effect=[[-1.0, -2.0], [-3.0, -4.0], KeyboardInterrupt])
    monkeypatch.setattr(score_run, "log_likelihoods", forwards)
    monkeypatch.setitem(SIZES, "cpu", SIZES["cpu"]._replace(problems=2))
    with pytest.raises(KeyboardInterrupt):
        run(conditions=["none", "gap"])
    rows = read(tmp_path / "out" / "scores.jsonl")
    assert [row["condition"] for row in rows] == ["none", "none", "gap", "gap"]
    assert [row["nats"] for row in rows] == [-1, -2, -3, -4]
    first = {problem.id for problem in sampling_order(PROBLEMS, 0)[:2]}
    assert {row["problem_id"] for row in rows} == first


def test_a_gpu_scores_a_condition_of_many_short_texts_in_one_forward_pass(
    run, monkeypatch
):
    many = [PROBLEMS[0].model_copy(update={"id": f"p{number}"}) for number in range(40)]
    forwards = Mock(wraps=log_likelihoods.prefill)
    monkeypatch.setattr(log_likelihoods, "prefill", forwards)
    monkeypatch.setitem(SIZES, "cpu", SIZES["cuda"])
    rows = run(many, conditions=["none", "gap"])
    assert len(rows) == 2 * len(many)
    assert forwards.call_count == 2


def test_many_prompts_have_a_progress_bar(run, monkeypatch, capsys):
    monkeypatch.setattr(progress, "shown", True)
    run(conditions=["none", "gap"])
    assert "prompts" not in capsys.readouterr().err
    monkeypatch.setattr(scored_texts, "PROMPTS_WITH_A_BAR", 6)
    run(conditions=["mless", "gap:3"])
    assert re.search("tiny, prompts: 100%.* 6/6 ", capsys.readouterr().err)


def test_a_solution_over_the_token_limit_is_left_out_and_counted(run, capsys):
    rows = run(conditions=["none"], max_solution_tokens=3)
    assert set(rows.problem_id) == {"p2"}
    assert (
        "2 problems are left out: solutions of over 3 tokens" in capsys.readouterr().err
    )
    rows = run(conditions=["none"], max_solution_tokens=9, folder="longer")
    # The limit is in tokens: the solution of p0 has more than 9 characters.
    assert set(rows.problem_id) == {"p0", "p2"}


def texts_wanted(loaded, problems, *conditions):
    """Return the texts of solutions under some conditions."""
    wanted = {
        f"{number}{'01'[condition == 'gap']}": WantedScore(
            problem, parse_condition(condition), "solution"
        )
        for number, problem in enumerate(problems)
        for condition in conditions
    }
    by_id = {problem.id: problem for problem in problems}
    return texts_to_score(loaded, "chat", Filler(), by_id, wanted)


def solution_wanted(loaded):
    """Return the only text that is scored for the first problem under none."""
    (text,) = texts_wanted(loaded, PROBLEMS[:1], "none").values()
    return text


def test_scored_texts_have_no_beginning_of_sequence_token(tiny):
    marked = copy.deepcopy(tiny.tokenizer)
    mark = marked.convert_ids_to_tokens(1)
    marked.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{mark} $A", special_tokens=[(mark, 1)]
    )
    text = solution_wanted(replace(tiny, tokenizer=marked))
    assert text.text == ids_of(tiny, PROBLEMS[0].solution)


def test_a_text_may_fill_the_context_but_not_exceed_it(tiny):
    text = solution_wanted(tiny)
    length = len(text.ids)
    require_scorable(Mock(context=length, layers=1), text)
    with pytest.raises(InputError, match=f"solution are {length} tokens"):
        require_scorable(Mock(context=length - 1, layers=1), text)


def test_a_solution_that_exceeds_the_context_is_named_before_anything_is_written(
    run, tmp_path
):
    long = PROBLEMS[0].model_copy(update={"solution": "one two three " * 200})
    message = r"p0: prompt and solution are \d+ tokens, tiny has room for 512"
    with pytest.raises(InputError, match=message):
        run([long], conditions=["none"], max_solution_tokens=9999)
    assert not (tmp_path / "out").exists()


def test_no_weights_are_loaded_if_nothing_is_missing(run, monkeypatch):
    scored = run(conditions=["none", "gap"], at_once=["none"])
    monkeypatch.setattr(score_run, "with_weights", None)
    fewer = run(conditions=["none"], max_solution_tokens=511, seed=3)
    expected = scored[(scored.target == "solution") & (scored.condition == "none")]
    assert set(fewer.key) == set(expected.key)
    # A shorter limit leaves out what is stored, and loads no weights for the others.
    shorter = run(conditions=["none"], at_once=["none"], max_solution_tokens=3)
    assert set(shorter.problem_id) == {"p2"} and len(shorter) == 2


def test_scores_in_other_files_are_not_computed_again(run, tmp_path):
    run(conditions=["none"])
    stored = tmp_path / "out" / "scores.jsonl"
    both = run(folder="more", others=[stored], conditions=["none", "gap"])
    assert set(both.condition) == {"none", "gap"}
    added = read(tmp_path / "more" / "scores.jsonl")
    assert {row["condition"] for row in added} == {"gap"}


def test_a_corrected_solution_is_scored_beside_the_old_one(run, tmp_path):
    run(conditions=["none"])
    other = PROBLEMS[0].model_copy(update={"solution": "$0$"})
    rows = run([other, *PROBLEMS[1:]], conditions=["none"])
    assert len(rows) == 3
    stored = read(tmp_path / "out" / "scores.jsonl")
    assert [row["problem_id"] for row in stored].count("p0") == 2
    assert len(stored) == 4


def test_a_gap_beyond_the_context_is_refused_by_its_name(run, tmp_path):
    with pytest.raises(InputError, match=r"^gap:600: .*room for 512 tokens: insert"):
        run(conditions=["none", "gap:600"])
    assert not list(tmp_path.rglob("scores.jsonl"))


@pytest.mark.parametrize("field", ["solution", "answer"])
def test_a_text_with_a_special_token_is_refused_before_it_is_scored(
    run, tmp_path, field
):
    text = "It is 2<|im_end|>."
    problem = PROBLEMS[0].model_copy(update={field: text})
    with pytest.raises(InputError, match=rf"^the text '{text[:7]}.*<.im_end.>, a spec"):
        run([problem], conditions=["none"], at_once=["none"])
    assert not list(tmp_path.rglob("scores.jsonl"))


OF_MORE_LAYERS = ["arm:layer=9", "layers-1-to-9-only", "hidden-from-layers-1-to-9"]


@pytest.mark.parametrize("condition", OF_MORE_LAYERS)
def test_a_condition_of_layers_that_a_model_lacks_is_refused(run, condition, tmp_path):
    with pytest.raises(InputError, match=rf"^{condition}: .* has layers 1 to \d$"):
        run(conditions=["none", condition])
    assert not list(tmp_path.rglob("scores.jsonl"))
