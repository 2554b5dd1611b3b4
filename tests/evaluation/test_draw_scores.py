"""Sampled answers are scored at their temperature, by their own tokens, under every
condition; answers that have no probability are refused.
"""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from families import spread
from transformers import LlamaForCausalLM

from lib.__main__ import main
from lib.errors import InputError
from lib.evaluation.likelihood import score_draws
from lib.evaluation.pass_rates import pass_rate_table
from lib.evaluation.rows import DRAW_SCORE_FIELDS
from lib.evaluation.run import evaluate
from lib.evaluation.store import read
from lib.models.loading import load
from lib.profiles import Accuracy, Likelihood
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems, sampling_order

TEMPERATURE = 0.8
SEED = 3
FILLER = Filler(mless="!", length=5)


@pytest.fixture(scope="module")
def checkpoint(tiny_llama, tmp_path_factory):
    """A random model whose next token hangs on what came before."""
    folder = tmp_path_factory.mktemp("spread") / "tiny-llama"
    shutil.copytree(tiny_llama, folder)
    torch.manual_seed(1)
    spread(LlamaForCausalLM.from_pretrained(tiny_llama)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def drawn(checkpoint, tmp_path_factory):
    """A folder of two answers to each of two problems under none and mless, of which
    the first is graded as right.
    """
    folder = tmp_path_factory.mktemp("drawn")
    draw(checkpoint, folder, limit=2, samples=2, max_new_tokens=5)
    grade_as_right(folder, lambda row: (row["condition"], row["sample"]) == ("none", 0))
    return folder


def grade_as_right(folder, is_right):
    """Grade the answers of a folder as right that a function names, else as wrong."""
    rows = read(folder / "completions.jsonl")
    for row in rows:
        row |= {"correct": is_right(row), "evaluated": True}
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "completions.jsonl").write_text("".join(lines))


def draw(checkpoint, folder, **settings):
    accuracy = Accuracy(
        models=[str(checkpoint)],
        conditions=["none", "mless"],
        format="plain",
        temperature=TEMPERATURE,
        batch_size=16,
        **settings,
    )
    return evaluate(accuracy, FILLER, SEED, folder)


def scored(checkpoint, answers, folder, *conditions, **settings):
    likelihood = Likelihood(
        models=[str(checkpoint)], conditions=list(conditions), **settings
    )
    return score_draws(likelihood, answers, folder)


def by_hand(loaded, problem, condition, tokens):
    """log p(tokens | prompt) at TEMPERATURE, by one plain forward."""
    prompt = build_prompt(loaded.tokenizer, problem, condition, filler=FILLER)
    ids = torch.tensor([[*prompt.input_ids.tolist(), *tokens]])
    with torch.inference_mode():
        logits = loaded.model(ids, use_cache=False).logits[0].double()
    before = logits[-len(tokens) - 1 : -1] / TEMPERATURE
    return float(before.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None]).sum())


def test_a_draw_is_scored_by_its_tokens_at_its_temperature(checkpoint, drawn, tmp_path):
    draws = scored(checkpoint, drawn, tmp_path, "none", "mless", "gap")
    assert draws[["none", "mless", "gap"]].notna().all(axis=None)
    scores = pd.DataFrame(read(tmp_path / "scores.jsonl"))
    answers = {row["key"]: row for row in read(drawn / "completions.jsonl")}
    problems = {item.id: item.problem for item in load_problems("embedded")}
    loaded = load(str(checkpoint), dtype="float32")
    assert list(scores) == DRAW_SCORE_FIELDS
    assert len(draws) == 8 and len(scores) == 8 * 3
    assert set(scores.target) == {"draw"}
    assert set(scores.temperature) == {TEMPERATURE}
    for row in scores[scores.condition != "gap"].to_dict("records"):
        answer = answers[row["answer"]]
        tokens = answer["token_ids"]
        expected = by_hand(
            loaded, problems[row["problem_id"]], row["condition"], tokens
        )
        assert row["nats"] == pytest.approx(expected, abs=1e-3)
        assert row["tokens"] == len(tokens)
        assert row["drawn_under"] == answer["condition"]
        assert row["sample"] == answer["sample"]


def test_the_command_line_scores_answers_and_prints_points(
    checkpoint, drawn, tmp_path, capsys
):
    options = f"--model {checkpoint} --conditions none,mless,gap"
    command = f"likelihood {options} --answers {drawn} --out {tmp_path / 'scores'}"
    assert main(command.split()) == 0
    *_, mless, gap, files = capsys.readouterr().out.splitlines()
    assert mless.split()[:3] == ["tiny-llama", "mless", "none"]
    assert gap.split()[:2] == ["gap", "none"]
    assert files.startswith("files: ")
    assert len(read(tmp_path / "scores" / "scores.jsonl")) == 24


def test_what_is_scored_is_not_scored_again(checkpoint, drawn, tmp_path):
    first = scored(checkpoint, drawn, tmp_path, "none", limit=1)
    # The first that the answers' own seed draws, not any of theirs.
    earliest, _ = sampling_order(load_problems("embedded"), SEED)[:2]
    assert set(first.problem_id) == {earliest.id}
    lines = (tmp_path / "scores.jsonl").read_text()
    assert len(lines.splitlines()) == 4
    scored(checkpoint, drawn, tmp_path, "none", "mless")
    assert (tmp_path / "scores.jsonl").read_text().startswith(lines)
    keys = [row["key"] for row in read(tmp_path / "scores.jsonl")]
    assert len(keys) == len(set(keys)) == 16


def test_answers_are_scored_only_where_those_to_their_problem_are_divided(
    checkpoint, drawn, tmp_path
):
    folder = shutil.copytree(drawn, tmp_path / "drawn")
    right, divided = sampling_order(load_problems("embedded"), SEED)[:2]
    grade_as_right(
        folder,
        lambda row: row["problem_id"] == right.id or row["condition"] == "none",
    )
    draws = scored(checkpoint, folder, tmp_path / "scores", "none", "mless")
    is_scored = draws["mless"].notna() & draws["none"].notna()
    assert set(draws.problem_id[is_scored]) == {divided.id}
    assert set(draws.problem_id[~is_scored]) == {right.id}
    assert len(read(tmp_path / "scores" / "scores.jsonl")) == 4 * 2
    (row,) = pass_rate_table(draws, [("mless", "none")]).to_dict("records")
    assert (row["n"], row["divided"], row["answers"]) == (2, 1, 4)


def test_weights_of_a_models_own_draws_average_one(checkpoint, tmp_path):
    folder = tmp_path / "drawn"
    draw(checkpoint, folder, limit=1, samples=150, max_new_tokens=2)
    grade_as_right(folder, lambda row: row["sample"] == 0)
    draws = scored(checkpoint, folder, tmp_path / "scores", "none", "mless")
    assert len(draws) == 300
    mixture = np.logaddexp(draws["none"], draws["mless"]) - np.log(2)
    for condition in ("none", "mless"):
        weights = np.exp(draws[condition] - mixture)
        error = weights.std() / np.sqrt(len(weights))
        assert weights.std() > 0.01
        assert weights.mean() == pytest.approx(1, abs=4 * error)
    (row,) = pass_rate_table(draws, [("mless", "none")]).to_dict("records")
    assert row["answers"] == 300


def with_setting(name, value):
    """A change of what a folder of answers was made with."""

    def change(folder):
        run = json.loads((folder / "run.json").read_text())
        run["settings"][name] = value
        (folder / "run.json").write_text(json.dumps(run))

    return change


def with_field(name, value):
    """A change of every answer of a folder."""

    def change(folder):
        rows = [row | {name: value} for row in read(folder / "completions.jsonl")]
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / "completions.jsonl").write_text("".join(lines))

    return change


NO_PROBABILITY = "drawn at a temperature above 0, with top_p = 1 and without elicit"


@pytest.mark.parametrize(
    "change, message",
    [
        (with_setting("temperature", 0), NO_PROBABILITY),
        (with_setting("top_p", 0.9), NO_PROBABILITY),
        (with_setting("elicit", True), NO_PROBABILITY),
        (with_setting("examples", []), NO_PROBABILITY),
        (with_setting("problems_sha256", "0"), "answers embedded set, not embedded"),
        (with_field("model", "other"), "has answers of other, not of tiny-llama"),
        (with_field("revision", "other"), "were drawn from revision other in float32"),
    ],
)
def test_answers_without_a_probability_are_refused_in_one_line(
    checkpoint, drawn, tmp_path, change, message
):
    folder = shutil.copytree(drawn, tmp_path / "drawn")
    change(folder)
    with pytest.raises(InputError, match=message) as caught:
        scored(checkpoint, folder, tmp_path / "scores", "none")
    assert "\n" not in str(caught.value)


def test_answers_drawn_in_bfloat16_may_be_scored_in_float32(
    checkpoint, drawn, tmp_path
):
    folder = shutil.copytree(drawn, tmp_path / "drawn")
    with_field("dtype", "bfloat16")(folder)
    draws = scored(checkpoint, folder, tmp_path / "scores", "none", dtype="float32")
    expected = scored(checkpoint, drawn, tmp_path / "same", "none", dtype="float32")
    pd.testing.assert_frame_equal(draws, expected)
    assert {row["dtype"] for row in read(tmp_path / "scores" / "scores.jsonl")} == {
        "float32"
    }


@pytest.mark.parametrize("drawn_in", ["float32", "float16"])
def test_answers_are_not_scored_in_a_coarser_dtype_or_another(
    checkpoint, drawn, tmp_path, drawn_in
):
    folder = shutil.copytree(drawn, tmp_path / "drawn")
    with_field("dtype", drawn_in)(folder)
    message = f"in {drawn_in}, not .* in bfloat16: their .* or in float32$"
    with pytest.raises(InputError, match=message):
        scored(checkpoint, folder, tmp_path / "scores", "none", dtype="bfloat16")


@pytest.mark.parametrize(
    "name, was, now", [("temperature", 0.8, 0.5), ("format", '"plain"', "chat")]
)
def test_scores_of_draws_made_otherwise_are_not_continued(
    checkpoint, drawn, tmp_path, name, was, now
):
    scored(checkpoint, drawn, tmp_path / "scores", "none", limit=1)
    folder = shutil.copytree(drawn, tmp_path / "drawn")
    with_setting(name, now)(folder)
    with pytest.raises(InputError, match=rf"made with {name} = {was}, not "):
        scored(checkpoint, folder, tmp_path / "scores", "none", limit=1)
