"""Scores of a model whose weights stay on disk, against the whole one."""

import json

import pytest
import torch
from families import FAMILIES, spread

from lib.evaluation import likelihood, log_probability
from lib.models import memory
from lib.profiles import Likelihood
from lib.prompts.conditions import Filler

CONDITIONS = ["none", "mless:5", "arm:c=1.0", "gap", "dilution", "layer-1-only"]
AT_ONCE = ["bare", "thought"]
SOLUTIONS = ["It is $\\boxed{0}$.", "Adding gives $2$, so $\\boxed{2}$.", "$4$"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, demo):
    """A folder with a random Gemma that speaks through the demo's tokenizer."""
    folder = tmp_path_factory.mktemp("from-disk") / "tiny-gemma"
    torch.manual_seed(2)
    model = FAMILIES["gemma3-local-and-global"]()
    model.resize_token_embeddings(len(demo.tokenizer))
    spread(model).save_pretrained(folder)
    demo.tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def scored(tiny, tmp_path, monkeypatch):
    """Score three problems into a folder, with so much free memory."""
    problems = tmp_path / "problems.jsonl"
    with problems.open("w") as file:
        for i, solution in enumerate(SOLUTIONS):
            problem = {
                "unique_id": f"p{i}",
                "problem": f"What is ${i} + {i}$?",
                "answer": str(2 * i),
                "solution": solution,
                "level": 1,
            }
            file.write(json.dumps(problem) + "\n")
    settings = Likelihood(
        models=[tiny], problems=str(problems), conditions=CONDITIONS, at_once=AT_ONCE
    )

    def scored(folder, free):
        monkeypatch.setattr(memory, "free_memory", lambda: free)
        return likelihood.likelihoods(settings, Filler(), 0, tmp_path / folder)

    return scored


def test_scores_from_disk_are_those_of_the_whole_model(scored, capsys):
    whole = scored("whole", free=10**9)
    assert "stays on disk" not in capsys.readouterr().err
    from_disk = scored("from disk", free=0)
    assert "stays on disk" in capsys.readouterr().err
    assert list(from_disk.key) == list(whole.key)
    assert from_disk.nats.to_numpy() == pytest.approx(whole.nats.to_numpy(), abs=2e-4)


def test_a_run_that_is_killed_goes_on_and_scores_nothing_twice(scored, monkeypatch):
    monkeypatch.setattr(log_probability, "SCORED_TOKENS", 300)
    keys = []
    log_likelihoods = log_probability.log_likelihoods

    def counted(loaded, batch):
        nats = log_likelihoods(loaded, batch)
        keys.extend(batch)
        return nats

    def killed_in_the_third_batch(loaded, batch):
        if len(keys) >= 2:
            raise KeyboardInterrupt
        return counted(loaded, batch)

    with monkeypatch.context() as patch:
        patch.setattr(log_probability, "log_likelihoods", killed_in_the_third_batch)
        with pytest.raises(KeyboardInterrupt):
            scored("run", free=0)
    before = set(keys)
    assert before
    monkeypatch.setattr(log_probability, "log_likelihoods", counted)
    rows = scored("run", free=0)
    assert sorted(keys) == sorted(rows.key)
    assert len(before) < len(rows)
