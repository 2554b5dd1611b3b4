"""The vllm engine against the transformers engine, in float32.

On the demo model, and on tiny ones of two families.
"""

import importlib
import importlib.util
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.evaluation.run import ELICITATION
from lib.generation.engines import engine_class
from lib.generation.requests import Request, Sampling
from lib.models.loading import load, load_without_weights
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

NOT_INSTALLED = "vllm is not installed (make test-vllm installs it)"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason=NOT_INSTALLED
)
GREEDY = Sampling(16, elicit=ELICITATION)
CODE = Arm(c=0.5, p1=90, mode="code", layer=2, statistics="sequence")
ARMS = {"plain": None, "text": Arm(), "code": CODE}


@pytest.fixture(scope="module")
def all_requests(demo):
    """48 problems with slashes, by token id."""
    # Off the cores of vLLM's workers: threads that wait for each other there take
    # minutes.
    torch.set_num_threads(1)
    requests = []
    for number, problem in enumerate(load_problems("embedded", limit=48, seed=0)):
        prompt = build_prompt(demo.tokenizer, problem.problem, "mless", format="chat")
        ids = prompt.input_ids.tolist()
        requests.append(Request(str(number), ids, seed=2**62 + number))
    return requests


@pytest.fixture(scope="module")
def requests(all_requests):
    return all_requests[:8]


@pytest.fixture(scope="module")
def engine(demo, all_requests):
    engine = engine_class("vllm")(demo, 16)
    # Asked for before the first completion, so that vLLM starts once.
    engine.complete(under_arm(all_requests), GREEDY)
    yield engine
    engine.close()


def complete(engine, requests, sampling):
    """Return completions by key."""
    completions = engine.complete(requests, sampling)
    return {completion.key: completion for completion in completions}


def under_arm(requests, plain=48, text=48, code=16):
    """Return one run's requests: so many plain, and under ARM in both modes."""
    counts = {"plain": plain, "text": text, "code": code}
    return [
        replace(request, key=f"{name} {request.key}", arm=ARMS[name])
        for name, count in counts.items()
        for request in requests[:count]
    ]


@pytest.fixture
def numbers(monkeypatch):
    """Let completions read as token ids.

    Numbers close no box, so all tokens of both steps are compared.
    """

    def decode(self, ids):
        return " ".join(map(str, ids))

    for name in ("transformers", "vllm"):
        monkeypatch.setattr(engine_class(name), "_decode", decode)


def test_greedy_tokens_equal_those_of_transformers_with_and_without_arm(
    demo, engine, all_requests, numbers
):
    requests = under_arm(all_requests)
    expected = complete(engine_class("transformers")(demo, 16), requests, GREEDY)
    completions = complete(engine, requests, GREEDY)
    assert completions == expected
    assert all(completion.elicited for completion in completions.values())
    assert all(completion.token_ids for completion in completions.values())
    # ARM changes what most of them say, each mode otherwise.
    all_differ = [
        len({completions[f"{name} {number}"].text for name in ARMS}) == len(ARMS)
        for number in range(16)
    ]
    assert sum(all_differ) > len(all_differ) / 2


TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
    # Else it would only repeat its input.
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
}
FUSED_FAMILIES = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM),
}


@pytest.mark.parametrize("family", FUSED_FAMILIES)
def test_arm_works_in_every_family_with_a_fused_gate(
    family, demo, requests, tmp_path, numbers
):
    config, model = FUSED_FAMILIES[family]
    model(config(**TINY, vocab_size=len(demo.tokenizer))).save_pretrained(tmp_path)
    demo.tokenizer.save_pretrained(tmp_path)
    tiny = load(str(tmp_path), device="cpu")
    kind = engine_class("vllm")
    engine = kind(load_without_weights(str(tmp_path), device="cpu"), 4)
    assert engine.model.device.type == "meta"  # vLLM alone holds the weights
    some = under_arm(requests, plain=3, text=3, code=3)
    completions = complete(engine, some, GREEDY)
    assert completions == complete(engine_class("transformers")(tiny, 4), some, GREEDY)
    texts = {completion.text for completion in completions.values()}
    assert len(texts) > 6  # of nine


def test_on_a_gpu_arm_takes_no_step_ahead_and_only_its_text_mode_decodes_by_graphs(
    demo, requests
):
    engine = engine_class("vllm")(replace(demo, device="cuda"), 4)
    engine.complete(requests, GREEDY)
    of_arm = {"async_scheduling", "enforce_eager", "compilation_config"}
    assert not of_arm & {*engine._arguments()}
    for arm, eager in ((Arm(), False), (CODE, True)):
        engine.complete([replace(requests[0], arm=arm)], GREEDY)
        arguments = engine._arguments()
        assert arguments["async_scheduling"] is False
        assert arguments["enable_chunked_prefill"] is False
        assert ("enforce_eager" in arguments) == eager
        assert ("compilation_config" in arguments) == (not eager)
        # Every name is one of vLLM's.
        EngineArgs = importlib.import_module("vllm").EngineArgs
        assert EngineArgs(**arguments).async_scheduling is False


def test_arm_on_several_devices_is_refused_at_once(demo, requests):
    engine = engine_class("vllm")(demo, 8, tensor_parallel=2)
    with pytest.raises(InputError, match="tensor_parallel above 1"):
        engine.complete(under_arm(requests), GREEDY)


def test_a_model_without_a_folder_is_refused_at_once(demo, monkeypatch):
    monkeypatch.setattr(demo.model, "name_or_path", "")
    with pytest.raises(InputError, match="reads a checkpoint folder"):
        engine_class("vllm")(demo, 8)


class StandIn:
    """An LLMEngine that takes requests, refuses ARM and fails at its first step."""

    def __init__(self, ended):
        self.engine_core = SimpleNamespace(shutdown=ended.append)

    def collective_rpc(self, name, args):
        return ["layer 1 of Some activates by MulAndSilu"]

    def add_request(self, *args):
        pass

    def abort_request(self, keys):
        pass

    def step(self):
        raise ZeroDivisionError


def test_vllm_is_started_again_for_longer_prompts_alone_and_refuses_arm_at_once(
    demo, requests, monkeypatch
):
    rooms = []
    ended = []

    def make(arguments, made):
        rooms.append(arguments["max_model_len"])
        made.set_result(StandIn(ended))

    monkeypatch.setattr(importlib.import_module("lib.generation.vllm"), "_make", make)
    engine = engine_class("vllm")(demo, 8)
    for new_tokens in (20, 10, 20, 21):
        with pytest.raises(ZeroDivisionError):
            next(engine.complete(requests, Sampling(new_tokens)))
    assert len(rooms) == 2
    assert rooms[1] == rooms[0] + 1
    assert ended == [60]
    message = "cannot run ARM on demo: layer 1 of Some activates"
    with pytest.raises(InputError, match=message):
        next(engine.complete(under_arm(requests), GREEDY))
    assert len(rooms) == 3
    assert len(ended) == 3


def test_completions_come_one_by_one_and_may_be_left(engine, all_requests):
    completions = engine.complete(all_requests, GREEDY)
    assert next(completions).key in {request.key for request in all_requests}
    completions.close()
    assert not engine.llm.has_unfinished_requests()
    assert len(complete(engine, all_requests[:2], GREEDY)) == 2


def test_an_answer_that_was_cut_goes_on_as_if_it_had_not_been(engine, requests):
    [whole] = complete(engine, requests[:1], Sampling(12)).values()
    resumed = replace(requests[0], resumed_tokens=whole.token_ids[:5])
    assert complete(engine, [resumed], Sampling(12)) == {requests[0].key: whole}
