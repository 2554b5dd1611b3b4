"""Scores of a model that has one layer at a time in memory, against the whole one."""

import json

import pytest
import torch
from families import FAMILIES, spread

from lib.errors import InputError
from lib.evaluation import likelihood, scoring
from lib.models.loading import load
from lib.models.stages import Stages
from lib.profiles import Likelihood
from lib.prompts.conditions import Filler

CONDITIONS = ["none", "mless:5", "arm:c=1.0", "gap", "dilution", "layer-1-only"]
AT_ONCE = ["bare", "thought"]
SOLUTIONS = ["It is $\\boxed{0}$.", "Adding gives $2$, so $\\boxed{2}$.", "$4$"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, demo):
    """A folder with a random Gemma that speaks through the demo's tokenizer."""
    folder = tmp_path_factory.mktemp("streamed") / "tiny-gemma"
    torch.manual_seed(2)
    model = FAMILIES["gemma3-local-and-global"]()
    model.resize_token_embeddings(len(demo.tokenizer))
    spread(model).save_pretrained(folder)
    demo.tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def scored(tiny, tmp_path, monkeypatch):
    """Score three problems into a folder, with the model streamed or whole."""
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

    def scored(folder, streamed):
        def load_here(spec, **_):
            return load(spec, device="cpu", streamed=streamed)

        monkeypatch.setattr(scoring, "load", load_here)
        return likelihood.likelihoods(settings, Filler(), 0, tmp_path / folder)

    return scored


def test_streamed_scores_are_those_of_the_whole_model(scored):
    whole = scored("whole", streamed=False)
    streamed = scored("streamed", streamed=True)
    assert list(streamed.key) == list(whole.key)
    assert streamed.nats.to_numpy() == pytest.approx(whole.nats.to_numpy(), abs=2e-4)


def test_a_run_that_is_killed_goes_on_and_scores_nothing_twice(scored, monkeypatch):
    monkeypatch.setattr(scoring, "SWEPT_TOKENS", 300)
    keys = []
    log_likelihoods = scoring.log_likelihoods

    def counted(loaded, batch):
        nats = log_likelihoods(loaded, batch)
        keys.extend(batch)
        return nats

    monkeypatch.setattr(scoring, "log_likelihoods", counted)
    puts = []
    put = Stages.put

    def killed_in_the_third_sweep(stages, stage):
        puts.append(stage)
        if len(puts) == 5 + 2 * 5 + 3:  # the check at load, two sweeps, two layers
            raise KeyboardInterrupt
        put(stages, stage)

    with monkeypatch.context() as patch:
        patch.setattr(Stages, "put", killed_in_the_third_sweep)
        with pytest.raises(KeyboardInterrupt):
            scored("run", streamed=True)
    before = set(keys)
    assert before
    rows = scored("run", streamed=True)
    assert sorted(keys) == sorted(rows.key)
    assert len(before) < len(rows)


@pytest.fixture
def memory_for(monkeypatch):
    """Let memory hold batches of so many texts."""
    log_likelihoods = scoring.log_likelihoods

    def memory_for(most):
        def limited(loaded, batch):
            nats = log_likelihoods(loaded, batch)
            if len(batch) > most:
                raise torch.OutOfMemoryError("out of memory")
            return nats

        monkeypatch.setattr(scoring, "log_likelihoods", limited)

    return memory_for


def test_a_sweep_that_memory_does_not_hold_goes_on_in_smaller_batches(
    scored, memory_for
):
    whole = scored("whole", streamed=False)
    memory_for(2)
    rows = scored("run", streamed=True)
    assert rows.nats.to_numpy() == pytest.approx(whole.nats.to_numpy(), abs=2e-4)


def test_a_text_that_memory_does_not_hold_alone_is_refused(scored, memory_for):
    memory_for(0)
    with pytest.raises(InputError, match="a text does not fit into memory"):
        scored("run", streamed=True)


def test_the_demos_scores_streamed_are_those_of_the_whole_demo(tmp_path, demo):
    settings = Likelihood(
        models=["demo"], problems="embedded", limit=2, conditions=["none", "mless"]
    )

    def nats(folder, loaded, patch):
        patch.setattr(scoring, "load", lambda spec, **_: loaded)
        rows = likelihood.likelihoods(settings, Filler(), 0, tmp_path / folder)
        return rows.nats.to_numpy()

    with pytest.MonkeyPatch.context() as patch:
        whole = nats("whole", demo, patch)
        streamed = load("demo", device="cpu", streamed=True)
        assert nats("streamed", streamed, patch) == pytest.approx(whole, abs=1e-3)
