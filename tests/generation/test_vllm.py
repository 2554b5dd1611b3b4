"""The vllm engine: what it asks of vLLM, on a stand-in, and the real one's texts.

The stand-in continues a prompt by a script {token: next token}. The real one, where it
is installed, is held against the transformers engine, in float32 on the demo model.
"""

import importlib
import importlib.util
import itertools
import sys
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.evaluation.run import ELICITATION
from lib.generation.writer import Request, Sampling, engine_class
from lib.models.loading import Loaded
from lib.models.names import Source
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

installed = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None,
    reason="vllm is not installed (make test-vllm installs it)",
)
END = 4999
START = 5000
COUNTED = " one two three four five six seven eight nine ten eleven twelve"


class StandIn:
    """An LLM that remembers what it was started with and what it was asked."""

    def __init__(self, **arguments):
        self.arguments = arguments
        self.asked = []
        self.script = {}

    def generate(self, prompts, parameters, use_tqdm):
        self.asked.append(list(zip(prompts, parameters, strict=True)))
        return [self._continued(*pair) for pair in self.asked[-1]]

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
    """The engine's module, with a stand-in for vLLM."""
    fake = SimpleNamespace(
        LLM=StandIn, SamplingParams=SimpleNamespace, TokensPrompt=dict
    )
    monkeypatch.setitem(sys.modules, "vllm", fake)
    monkeypatch.delitem(sys.modules, "lib.generation.vllm", raising=False)
    yield importlib.import_module("lib.generation.vllm")
    sys.modules.pop("lib.generation.vllm", None)


@pytest.fixture(scope="module")
def tokenizer(tiny_llama):
    return AutoTokenizer.from_pretrained(tiny_llama)


@pytest.fixture
def engine(vllm, tokenizer, tmp_path):
    """The engine, for a model of no weights."""
    config = LlamaConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=2)
    model = LlamaForCausalLM(config)
    model.name_or_path = str(tmp_path)
    source = Source("m", "m", revision="none")
    loaded = Loaded(model, tokenizer, source, "cpu", "float32")
    engine = vllm.Engine(loaded, 4)
    engine.stops = {END}
    engine._start(100)
    return engine


def complete(engine, tokenizer, answer, boxed="", *, limit=10):
    """Complete a prompt by `answer`, and what is elicited by the text `boxed`."""

    def ids(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    script = dict(itertools.pairwise([START, *ids(answer), END]))
    if boxed:
        script |= dict(itertools.pairwise([ids(ELICITATION)[-1], *ids(boxed), END]))
    engine.llm.script = script
    request = Request("a", [7, 8, START], seed=3)
    [completion] = engine.complete([request], Sampling(limit, elicit=ELICITATION))
    return completion


def test_an_answer_with_a_box_is_asked_for_no_other(engine, tokenizer):
    completion = complete(engine, tokenizer, r" \boxed{42}")
    assert completion.text == r" \boxed{42}"
    assert completion.finish_reason == "stop"
    assert not completion.elicited
    assert completion.token_ids[-1] == END
    assert completion.completion_tokens == len(completion.token_ids) - 1


@pytest.mark.parametrize("limit", [10, 2, 0])
def test_an_answer_without_a_box_goes_on_until_it_closes(engine, tokenizer, limit):
    completion = complete(engine, tokenizer, " The sum is", "42} so", limit=limit)
    written = tokenizer(" The sum is", add_special_tokens=False)["input_ids"][:limit]
    assert completion.text == f"{tokenizer.decode(written)}{ELICITATION}42}}"
    assert completion.elicited
    assert completion.finish_reason == ("stop" if limit == 10 else "length")
    *firsts, [(prompt, second)] = engine.llm.asked
    assert len(firsts) == (limit > 0)
    assert all(first.seed == 3 for [(_, first)] in firsts)
    assert second.seed == 4
    assert second.max_tokens == Sampling(1).elicit_tokens
    assert prompt["prompt_token_ids"][: 3 + len(written)] == [7, 8, START, *written]


def test_a_cut_answer_has_no_token_that_ended_it(engine, tokenizer):
    engine.loaded.tokenizer.chat_template = None
    cut = complete(engine, tokenizer, COUNTED, "1}")
    assert cut.finish_reason == "length"
    assert len(cut.token_ids) == 10


def test_prompts_are_asked_for_in_chunks_with_room_for_the_longest(engine):
    engine.llm.script = {START: END}
    requests = [Request(str(n), [7] * n + [START]) for n in range(40)]
    completions = list(engine.complete(requests, Sampling(10)))
    assert len(completions) == 40
    assert [len(chunk) for chunk in engine.llm.asked] == [16, 16, 8]
    with pytest.raises(KeyError):  # of the new stand-in, which has no script
        list(engine.complete([Request("a", [7] * 200)], Sampling(1)))
    assert engine.llm.arguments["max_model_len"] == 201
    assert engine.llm.arguments["max_num_seqs"] == 4


def test_arm_is_refused_in_one_line(engine):
    with pytest.raises(InputError, match="vllm does not run ARM: use engine tran"):
        engine.complete([Request("a", [1, 2], arm=Arm())], Sampling(6))


@installed
def test_greedy_tokens_equal_those_of_transformers(demo):
    # Off the cores of vLLM's workers: threads that wait for each other there take
    # minutes.
    torch.set_num_threads(1)
    requests = []
    for number, problem in enumerate(load_problems("embedded", limit=24, seed=0)):
        prompt = build_prompt(demo.tokenizer, problem.problem, "mless", format="chat")
        ids = prompt.input_ids.tolist()
        requests.append(Request(str(number), ids, seed=2**62 + number))
    sampling = Sampling(16, elicit=ELICITATION)
    found, expected = (
        {
            done.key: done
            for done in engine_class(name)(demo, 4).complete(requests, sampling)
        }
        for name in ("vllm", "transformers")
    )
    assert found == expected
    assert any(completion.elicited for completion in found.values())
