"""Sampled answers are scored by their token ids, at their temperature and under every
condition; answers without a probability, such as greedy ones, are refused.
"""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from families import spread
from hand_written import keep
from transformers import LlamaForCausalLM

from lib.files.atomic import write_json
from lib.files.text_files import read
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems, sampling_order
from reproduction.__main__ import main
from reproduction.evaluation.answer_run import evaluate
from reproduction.evaluation.pass_rate_tables import pass_rate_table
from reproduction.evaluation.rows import DRAW_SCORE_FIELDS
from reproduction.evaluation.scored_texts import score_drawn
from reproduction.profiles import Accuracy, Likelihood

TEMPERATURE = 0.8
SEED = 3
FILLER = Filler(mless="!", length=5)
PROBLEMS = sampling_order(load_problems("embedded"), SEED)


@pytest.fixture(scope="module")
def checkpoint(tiny_llama, tmp_path_factory):
    """A random model whose next token depends on the tokens before it."""
    folder = tmp_path_factory.mktemp("spread") / "tiny-llama"
    shutil.copytree(tiny_llama, folder)
    torch.manual_seed(1)
    spread(LlamaForCausalLM.from_pretrained(tiny_llama)).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def draw(checkpoint):
    """A function that samples answers under none and mless into a folder."""

    def into(folder, **settings):
        accuracy = Accuracy(
            models=[checkpoint],
            conditions=["none", "mless"],
            format="plain",
            temperature=TEMPERATURE,
            **settings,
        )
        evaluate(accuracy, FILLER, SEED, folder)
        return folder

    return into


@pytest.fixture(scope="module")
def drawn(draw, tmp_path_factory):
    """A folder of two answers to each of two problems under none and mless, of which
    the first is graded as right.
    """
    folder = draw(
        tmp_path_factory.mktemp("drawn"), limit=2, samples=2, max_new_tokens=5
    )
    grade_as_right(folder, lambda row: (row["condition"], row["sample"]) == ("none", 0))
    return folder


@pytest.fixture
def altered(drawn, tmp_path):
    """A copy of the sampled answers that a test may change."""
    return shutil.copytree(drawn, tmp_path / "drawn")


def change_answers(folder, change):
    """Update every answer of a folder with the fields that a function returns for
    it.
    """
    file = folder / "completions.jsonl"
    keep(file, [row | change(row) for row in read(file)])


def grade_as_right(folder, is_right):
    """Grade the answers of a folder as right if a function says so, else as wrong."""
    change_answers(folder, lambda row: {"correct": is_right(row), "evaluated": True})


def change_settings(folder, **changes):
    """Change the recorded settings of a folder of answers."""
    run = json.loads((folder / "run.json").read_text())
    run["settings"] |= changes
    write_json(folder / "run.json", run)


@pytest.fixture
def scored(checkpoint, tmp_path):
    """A function that scores the answers of a folder under these conditions."""

    def score(answers, *conditions, folder="scores", **settings):
        likelihood = Likelihood(
            models=[checkpoint], conditions=list(conditions), **settings
        )
        return score_drawn(likelihood, answers, tmp_path / folder)

    return score


def by_hand(loaded, problem, condition, tokens):
    """Return log p(tokens | prompt) at TEMPERATURE from one plain forward pass."""
    prompt = build_prompt(loaded.tokenizer, problem, condition, filler=FILLER)
    ids = torch.tensor([[*prompt.input_ids.tolist(), *tokens]])
    with torch.inference_mode():
        logits = loaded.model(ids, use_cache=False).logits[0].double()
    before = logits[-len(tokens) - 1 : -1] / TEMPERATURE
    return float(before.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None]).sum())


def test_a_draw_is_scored_by_its_tokens_at_its_temperature(
    checkpoint, drawn, scored, tmp_path
):
    draws = scored(drawn, "none", "mless", "gap")
    assert draws[["none", "mless", "gap"]].notna().all(axis=None)
    scores = pd.DataFrame(read(tmp_path / "scores" / "scores.jsonl"))
    answers = {row["key"]: row for row in read(drawn / "completions.jsonl")}
    problems = {problem.id: problem.problem for problem in PROBLEMS}
    loaded = load(checkpoint, dtype="float32")
    assert list(scores) == DRAW_SCORE_FIELDS
    assert len(draws) == 8 and len(scores) == 8 * 3
    assert set(scores.target) == {"draw"}
    assert set(scores.temperature) == {TEMPERATURE}
    for row in scores[scores.condition != "gap"].to_dict("records"):
        answer = answers[row["answer"]]
        tokens = answer["token_ids"]
        problem = problems[row["problem_id"]]
        expected = by_hand(loaded, problem, row["condition"], tokens)
        assert row["nats"] == pytest.approx(expected, abs=1e-3)
        assert row["tokens"] == len(tokens)
        assert row["drawn_under"] == answer["condition"]
        assert row["sample"] == answer["sample"]


TERMINAL = 80  # characters per line


def test_the_command_line_scores_answers_and_prints_pass_rate_differences(
    checkpoint, drawn, tmp_path, capsys
):
    options = f"--model {checkpoint} --conditions none,mless,gap"
    command = f"likelihood {options} --answers {drawn} --out {tmp_path / 'scores'}"
    assert main(command.split()) == 0
    models, treatments, references, *others = capsys.readouterr().out.splitlines()
    assert models.split() == ["model", "tiny-llama"]
    assert treatments.split() == ["treatment", "mless", "gap"]
    assert references.split() == ["reference", "none", "none"]
    assert others[-1].startswith("files: ")
    assert all(len(line) <= TERMINAL for line in others[:-1])
    assert len(read(tmp_path / "scores" / "scores.jsonl")) == 24


def test_conditions_that_allow_no_weights_are_refused_before_scoring(
    drawn, tmp_path, capsys
):
    options = f"--model demo --conditions none,gap --out {tmp_path / 'scores'}"
    assert main(f"likelihood {options} --answers {drawn}".split()) == 2
    assert "weights need scores under none and mless" in capsys.readouterr().err
    assert not (tmp_path / "scores").exists()


def test_scored_answers_are_not_scored_again(drawn, scored, tmp_path):
    first = scored(drawn, "none", limit=1)
    # The problem is the first in the sampling order of the answers' seed.
    assert set(first.problem_id) == {PROBLEMS[0].id}
    file = tmp_path / "scores" / "scores.jsonl"
    before = read(file)
    assert len(before) == 4
    scored(drawn, "none", "mless")
    after = file.read_text().splitlines()
    assert [json.loads(line) for line in after[:4]] == before
    assert len(after) == len(read(file)) == 16


def test_only_answers_to_problems_with_right_and_wrong_answers_are_scored(
    altered, scored, tmp_path
):
    right, mixed = (problem.id for problem in PROBLEMS[:2])
    grade_as_right(
        altered, lambda row: row["problem_id"] == right or row["condition"] == "none"
    )
    draws = scored(altered, "none", "mless")
    is_scored = draws["mless"].notna() & draws["none"].notna()
    assert set(draws.problem_id[is_scored]) == {mixed}
    assert set(draws.problem_id[~is_scored]) == {right}
    assert len(read(tmp_path / "scores" / "scores.jsonl")) == 4 * 2
    (row,) = pass_rate_table(draws, [("mless", "none")]).to_dict("records")
    assert (row["n"], row["mixed_problems"], row["mixed_answers"]) == (2, 1, 4)


def test_answers_that_were_drawn_under_other_conditions_are_left_out(
    altered, scored, tmp_path
):
    alone = scored(altered, "none", "mless")
    rows = read(altered / "completions.jsonl")
    others = [row | {"key": f"{row['key']}!", "condition": "mful"} for row in rows]
    keep(altered / "completions.jsonl", [*rows, *others])
    together = scored(altered, "none", "mless", folder="together")
    pd.testing.assert_frame_equal(together, alone)
    assert len(read(tmp_path / "together" / "scores.jsonl")) == 16


def test_an_unfinished_run_of_answers_is_reported_as_incomplete(
    altered, scored, capsys
):
    scored(altered, "none", "mless")
    assert "is not complete" not in capsys.readouterr().err
    keep(altered / "completions.jsonl", read(altered / "completions.jsonl")[:-1])
    scored(altered, "none", "mless", folder="again")
    assert f"{altered} is not complete, and" in capsys.readouterr().err


def test_importance_weights_average_1_over_sampled_answers(draw, scored, tmp_path):
    folder = draw(tmp_path / "drawn", limit=1, samples=150, max_new_tokens=2)
    grade_as_right(folder, lambda row: row["sample"] == 0)
    draws = scored(folder, "none", "mless")
    assert len(draws) == 300
    mixture = np.logaddexp(draws["none"], draws["mless"]) - np.log(2)
    for condition in ("none", "mless"):
        weights = np.exp(draws[condition] - mixture)
        error = weights.std() / np.sqrt(len(weights))
        assert weights.std() > 0.01
        assert weights.mean() == pytest.approx(1, abs=4 * error)


NO_PROBABILITY = "drawn at a temperature above 0, with top_p = 1 and without elicit"


@pytest.mark.parametrize(
    "name, value",
    [
        ("temperature", 0.0),
        ("top_p", 0.9),
        ("elicit", True),
        ("examples", [{"problem": "1 + 1?", "solution": "$2$"}]),
    ],
)
def test_answers_without_a_probability_are_refused(
    altered, scored, refused, name, value
):
    format = "chat" if name == "examples" else "plain"
    change_settings(altered, **{name: value, "format": format, "samples": 1})
    assert NO_PROBABILITY in refused(scored, altered, "none")


def test_answers_of_another_model_or_to_other_problems_are_not_found(
    checkpoint, altered, scored, refused, tmp_path
):
    message = f"{altered} has no answers of tiny-llama to these problems"
    other = PROBLEMS[0].model_copy(update={"id": "mine"})
    keep(tmp_path / "other.jsonl", [other.model_dump(by_alias=True)])
    assert message in refused(
        scored, altered, "none", problems=str(tmp_path / "other.jsonl")
    )
    change_answers(altered, lambda row: {"key": f"{row['key']}!"})
    assert message in refused(scored, altered, "none")


def test_scores_in_a_coarser_dtype_than_that_of_the_answers_are_refused(
    drawn, scored, refused
):
    message = refused(scored, drawn, "none", dtype="bfloat16")
    assert "were drawn in float32, not bfloat16" in message


def test_answers_drawn_in_bfloat16_may_be_scored_in_float32(draw, scored, tmp_path):
    settings = {"limit": 1, "samples": 2, "max_new_tokens": 5, "dtype": "bfloat16"}
    folder = draw(tmp_path / "coarse", **settings)
    grade_as_right(folder, lambda row: row["sample"] == 0)
    scored(folder, "none", "mless")
    rows = read(tmp_path / "scores" / "scores.jsonl")
    assert {row["dtype"] for row in rows} == {"float32"}
    answers = {row["key"]: row["dtype"] for row in read(folder / "completions.jsonl")}
    assert {answers[row["answer"]] for row in rows} == {"bfloat16"}
