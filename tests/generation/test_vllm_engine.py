"""The vllm engine: its calls, on a stand-in for vLLM, and the real vLLM's texts.

The stand-in continues a prompt by a script {token: next token}. If the real vLLM is
installed, it is compared with the transformers engine, in float32 on the demo model.
"""

import importlib
import importlib.util
import itertools
import os
import sys
from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lib.arm.settings import Arm
from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems
from reproduction.evaluation.answer_run import ELICITATION

installed = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None,
    reason="vllm is not installed (make test-vllm installs it)",
)
END = 4999
START = 5000


class StandIn:
    """An LLM that records the arguments of its start and of its calls."""

    def __init__(self, **arguments):
        self.arguments = arguments
        self.calls = []
        self.script = {}

    def generate(self, prompts, parameters, use_tqdm):
        self.calls.append(list(zip(prompts, parameters, strict=True)))
        return [self._continued(*pair) for pair in self.calls[-1]]

    def _continued(self, prompt, parameters):
        token = prompt["prompt_token_ids"][-1]
        tokens = []
        while len(tokens) < parameters.max_tokens:
            token = self.script[token]
            tokens.append(token)
            if token in parameters.stop_token_ids:
                break
        reason = "stop" if token in parameters.stop_token_ids else "length"
        output = SimpleNamespace(token_ids=tokens, finish_reason=reason)
        return SimpleNamespace(outputs=[output])


@pytest.fixture
def vllm(monkeypatch):
    """The module lib.generation.vllm_engine, with the stand-in for vLLM."""
    fake = SimpleNamespace(
        LLM=StandIn, SamplingParams=SimpleNamespace, TokensPrompt=dict
    )
    monkeypatch.setitem(sys.modules, "vllm", fake)
    monkeypatch.delitem(sys.modules, "lib.generation.vllm_engine", raising=False)
    yield importlib.import_module("lib.generation.vllm_engine")
    sys.modules.pop("lib.generation.vllm_engine", None)


@pytest.fixture
def engine(vllm, speaking):
    """The engine for a tiny model, which the stand-in does not use."""
    config = LlamaConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=2)
    engine = vllm.Engine(speaking(LlamaForCausalLM(config)), 4)
    engine.stops = {END}
    engine._start(100)
    return engine


BOTH, FIRST, SECOND = slice(2), slice(1), slice(1, 2)
# The answer before the stop token, the token limit, and the expected calls.
ANSWERS = [
    (" The sum is", 10, BOTH),
    (" The sum is", 2, BOTH),
    ("", 0, SECOND),
    (r" \boxed{42}", 10, FIRST),
]


@pytest.mark.parametrize("text, limit, calls", ANSWERS)
def test_an_answer_without_a_box_is_elicited_by_a_second_call(
    engine, tokenizer, ids, text, limit, calls
):
    begun, written, elicitation = [7, 8, START], ids(text)[:limit], ids(ELICITATION)
    script = itertools.pairwise([START, *ids(text), END])
    behind = itertools.pairwise([elicitation[-1], *ids("42} so"), END])
    engine.llm.script = dict([*behind, *script])
    request = Request("a", begun, seed=3)
    [completion] = engine.complete([request], Sampling(limit, elicit=ELICITATION))
    both = [
        (begun, 3, limit),
        ([*begun, *written, *elicitation], 4, Sampling(1).elicit_tokens),
    ]
    assert [
        (prompt["prompt_token_ids"], how.seed, how.max_tokens)
        for [(prompt, how)] in engine.llm.calls
    ] == both[calls]
    elicited = "" if calls == FIRST else f"{ELICITATION}42}}"
    assert completion.text == tokenizer.decode(written) + elicited
    assert completion.finish_reason == ("stop" if limit == 10 else "length")


def test_the_environment_changes_when_vllm_is_needed_and_not_before(vllm, monkeypatch):
    for name in ("VLLM_HOST_IP", "VLLM_LOGGING_LEVEL", "VLLM_NO_USAGE_STATS"):
        monkeypatch.delenv(name, raising=False)
    importlib.reload(vllm)
    assert "VLLM_HOST_IP" not in os.environ
    engine_class("vllm")
    assert os.environ["VLLM_HOST_IP"] == "127.0.0.1"


def test_prompts_are_sent_in_chunks_and_the_context_fits_the_longest(engine):
    engine.llm.script = {START: END}
    requests = [Request(str(n), [7] * n + [START]) for n in range(40)]
    completions = list(engine.complete(requests, Sampling(10)))
    assert len(completions) == 40
    assert [len(chunk) for chunk in engine.llm.calls] == [16, 16, 8]
    with pytest.raises(KeyError):  # the engine starts a new stand-in without a script
        list(engine.complete([Request("a", [7] * 200)], Sampling(1)))
    assert engine.llm.arguments["max_model_len"] == 201
    assert engine.llm.arguments["max_num_seqs"] == 4


def test_arm_is_refused_in_one_line(engine, refused):
    message = refused(engine.complete, [Request("a", [1], arm=Arm())], Sampling(6))
    assert message == "engine vllm does not run ARM: use engine transformers"


@installed
def test_greedy_tokens_equal_those_of_transformers(demo):
    # Leave the cores to vLLM's workers: if torch uses them too, the test takes minutes.
    torch.set_num_threads(1)
    requests = []
    for number, problem in enumerate(load_problems("embedded", limit=24, seed=0)):
        prompt = build_prompt(demo.tokenizer, problem.problem, "mless", format="chat")
        ids = prompt.input_ids.tolist()
        requests.append(Request(str(number), ids, seed=2**62 + number))

    def completions(name):
        engine = engine_class(name)(demo, 4)
        done = engine.complete(requests, Sampling(16, elicit=ELICITATION))
        return sorted(done, key=lambda completion: int(completion.key))

    found = completions("vllm")
    assert found == completions("transformers")
    assert any(completion.elicited for completion in found)
