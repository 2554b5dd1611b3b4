"""What the vllm engine asks of vLLM and makes of its tokens, on a stand-in for it.

The stand-in continues a prompt by a script {token: next token}.
"""

import itertools
import sys
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lib.arm.settings import Arm
from lib.generation.requests import Request, Sampling
from lib.models.loading import Loaded
from lib.models.names import Source

ELICITATION = "\nThe answer is \\boxed{"
END = 4999
START = 5000
COUNTED = " one two three four five six seven eight nine ten eleven twelve"


class StandIn:
    """An LLMEngine that gives the answer to one request a step."""

    def __init__(self):
        self.script = {}
        self.asked = []
        self.waiting = []
        self.engine_core = SimpleNamespace(shutdown=lambda seconds: None)

    def add_request(self, key, prompt, parameters):
        self.asked.append((key, prompt, parameters))
        self.waiting.append((key, prompt, parameters))

    def step(self):
        key, prompt, parameters = self.waiting.pop(0)
        token = prompt["prompt_token_ids"][-1]
        tokens = []
        while len(tokens) < parameters.max_tokens:
            token = self.script[token]
            tokens.append(token)
            if token in parameters.stop_token_ids:
                break
        stopped = tokens[-1] in parameters.stop_token_ids
        reason = "stop" if stopped else "length"
        output = SimpleNamespace(token_ids=tokens, finish_reason=reason)
        return [SimpleNamespace(request_id=key, outputs=[output])]


@pytest.fixture
def vllm(monkeypatch):
    """The engine's module, with a stand-in for vLLM."""
    fake = SimpleNamespace(
        EngineArgs=SimpleNamespace,
        LLMEngine=SimpleNamespace(from_engine_args=lambda arguments: StandIn()),
        SamplingParams=SimpleNamespace,
        TokensPrompt=dict,
    )
    kinds = SimpleNamespace(RequestOutputKind=SimpleNamespace(FINAL_ONLY="final"))
    monkeypatch.setitem(sys.modules, "vllm", fake)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", kinds)
    monkeypatch.delitem(sys.modules, "lib.generation.vllm", raising=False)
    from lib.generation import vllm

    yield vllm
    sys.modules.pop("lib.generation.vllm", None)


@pytest.fixture(scope="module")
def tokenizer(tiny_llama):
    return AutoTokenizer.from_pretrained(tiny_llama)


@pytest.fixture
def engine(vllm, tokenizer, tmp_path):
    """The engine, started for a model of no weights."""
    config = LlamaConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=2)
    model = LlamaForCausalLM(config)
    model.name_or_path = str(tmp_path)
    source = Source("m", "m")
    loaded = Loaded(model, tokenizer, "m", source, "none", "cpu", "float32", 2)
    engine = vllm.Engine(loaded, 4)
    engine.stops = {END}
    engine._start()
    return engine


def complete(engine, tokenizer, answer, boxed, **sampling):
    """Complete a prompt by `answer`, and the elicitation by the text `boxed`."""

    def ids(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    engine.needed = 1000
    engine.llm.script = dict(itertools.pairwise([START, *ids(answer), END]))
    if boxed:
        behind = [ids(ELICITATION)[-1], *ids(boxed), END]
        engine.llm.script |= dict(itertools.pairwise(behind))
    request = Request("a", [7, 8, START], seed=3)
    [completion] = engine.complete([request], Sampling(10, **sampling))
    return completion


def test_an_answer_with_a_box_is_asked_for_no_other(engine, tokenizer):
    completion = complete(engine, tokenizer, r" \boxed{42}", "", elicit=ELICITATION)
    assert completion.text == r" \boxed{42}"
    assert completion.finish_reason == "stop"
    assert not completion.elicited
    assert completion.token_ids[-1] == END
    assert completion.completion_tokens == len(completion.token_ids) - 1


def test_an_answer_without_a_box_goes_on_until_it_closes(engine, tokenizer):
    completion = complete(
        engine, tokenizer, " The sum is", "42} so", elicit=ELICITATION
    )
    assert completion.text == f" The sum is{ELICITATION}42}}"
    assert completion.elicited
    (_, _, first), (_, prompt, second) = engine.llm.asked
    assert (first.seed, second.seed) == (3, 4)
    assert second.max_tokens == Sampling(1).elicit_tokens
    written = list(completion.token_ids[:-1])
    assert prompt["prompt_token_ids"][: 3 + len(written)] == [7, 8, START, *written]


def test_a_cut_answer_has_no_token_that_ended_it(engine, tokenizer):
    completion = complete(engine, tokenizer, COUNTED, "")
    assert completion.finish_reason == "length"
    assert len(completion.token_ids) == completion.completion_tokens == 10


def test_what_is_written_under_arm_is_read_by_no_other_request(vllm, engine):
    engine._ask(Request("b", [1, 2], 5, Arm()), [1, 2, 9], 6, 4, Sampling(4))
    [(_, prompt, parameters)] = engine.llm.asked
    assert prompt["cache_salt"] == "b"
    assert parameters.skip_reading_prefix_cache
    assert parameters.extra_args["arm"]["prompt_tokens"] == 2
