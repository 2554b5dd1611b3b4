"""The vllm engine against the transformers engine, on the demo model in float32."""

import asyncio
import importlib.util
import sys
from dataclasses import replace

import pytest
import torch

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.evaluation.run import ELICITATION
from lib.generation.engines import ENGINES, engine_class
from lib.generation.interface import Request, Sampling
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

MISSING = "vllm is not installed (make test-vllm installs it)"
needs_vllm = pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason=MISSING)
GREEDY = Sampling(24, elicit=ELICITATION)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Keep transformers off the cores of vLLM's workers: threads that wait for each other there take minutes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def asked(demo):
    """Eight problems with slashes, by token id."""
    problems = load_problems("embedded", limit=8, seed=0)
    prompts = [build_prompt(demo.tokenizer, p.problem, "mless", format="chat") for p in problems]
    return [Request(str(n), prompt.input_ids.tolist(), seed=n) for n, prompt in enumerate(prompts)]


@pytest.fixture(scope="module")
def engine(demo):
    engine = engine_class("vllm")(demo, 8)
    yield engine
    engine.close()


def complete(engine, asked, sampling):
    return {completion.key: completion for completion in engine.complete(asked, sampling)}


@needs_vllm
def test_greedy_tokens_equal_those_of_transformers(engine, demo, asked, monkeypatch):
    for name in ("transformers", "vllm"):  # numbers hold no box: all tokens of both steps are compared
        monkeypatch.setattr(engine_class(name), "_decode", lambda self, ids: " ".join(map(str, ids)))
    found = complete(engine, asked, GREEDY)
    assert found == complete(engine_class("transformers")(demo, 8), asked, GREEDY)
    assert all(completion.elicited for completion in found.values())


@needs_vllm
def test_arm_is_refused_before_anything_is_generated(engine, asked):
    with pytest.raises(InputError, match="engine vllm cannot change activations"):
        engine.complete(asked, GREEDY, Arm())


@needs_vllm
def test_completions_come_one_by_one_and_may_be_left(engine, asked, monkeypatch):
    begun, write = [], engine._write

    async def watched(request, *others):
        begun.append(request.key)
        return await write(request, *others)

    monkeypatch.setattr(engine, "_write", watched)
    monkeypatch.setattr(engine, "room", asyncio.Semaphore(1))
    stream = engine.complete(asked, GREEDY)
    assert next(stream).key in begun
    stream.close()
    assert len(set(begun)) < len(asked)


@needs_vllm
def test_records_equal_those_of_transformers(engine, demo, asked):
    found = complete(engine, asked[:3], GREEDY)
    assert found == complete(engine_class("transformers")(demo, 8), asked[:3], GREEDY)
    assert {completion.finish_reason for completion in found.values()} <= {"stop", "length"}


@needs_vllm
def test_samples_repeat_for_equal_seeds(engine, asked):
    sampling = Sampling(16, temperature=0.8, top_p=0.95)
    first = complete(engine, asked, sampling)
    assert complete(engine, asked[::-1], sampling) == first
    assert complete(engine, [replace(r, seed=r.seed + 100) for r in asked], sampling) != first


@needs_vllm
def test_prompt_without_room_comes_back_empty(engine, demo, asked):
    long = [Request("long", asked[0].input_ids * 100)]
    assert complete(engine, long, GREEDY) == complete(engine_class("transformers")(demo, 8), long, GREEDY)


@needs_vllm
def test_model_without_a_folder_is_refused(demo, monkeypatch):
    monkeypatch.setattr(demo.model, "name_or_path", "")
    with pytest.raises(InputError, match="reads a checkpoint folder"):
        engine_class("vllm")(demo, 8)


def test_absent_vllm_is_one_line_that_says_how_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.delitem(sys.modules, "lib.generation.vllm", raising=False)
    assert "vllm" in ENGINES
    with pytest.raises(InputError, match="pip install") as caught:
        engine_class("vllm")
    assert "\n" not in str(caught.value)
