"""The vllm engine against the transformers engine, in float32: the demo model, and two tiny ones for their families."""

import asyncio
import importlib
import importlib.util
import sys
from dataclasses import replace
from itertools import chain, zip_longest
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, Qwen2Config, Qwen2ForCausalLM

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.evaluation.run import ELICITATION
from lib.generation.engines import ENGINES, engine_class
from lib.generation.interface import Request, Sampling
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

MISSING = "vllm is not installed (make test-vllm installs it)"
needs_vllm = pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason=MISSING)
GREEDY = Sampling(16, elicit=ELICITATION)
CODE = Arm(c=0.5, p1=90, mode="code", layer=2, statistics="sequence")
# What one run mixes, and how many of the prompts each part takes.
PARTS = {"plain": (None, 48), "text": (Arm(), 48), "code": (CODE, 16)}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Keep transformers off the cores of vLLM's workers: threads that wait for each other there take minutes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def everything(demo):
    """48 problems with slashes, by token id."""
    problems = load_problems("embedded", limit=48, seed=0)
    prompts = [build_prompt(demo.tokenizer, p.problem, "mless", format="chat") for p in problems]
    return [Request(str(n), prompt.input_ids.tolist(), seed=2**62 + n) for n, prompt in enumerate(prompts)]


@pytest.fixture(scope="module")
def asked(everything):
    return everything[:8]


@pytest.fixture(scope="module")
def engine(demo, everything):
    engine = engine_class("vllm")(demo, 16)
    ask(engine, everything, PARTS)  # asked for before the first completion: vLLM starts once
    yield engine
    engine.close()


def complete(engine, asked, sampling, arm=None):
    return {completion.key: completion for completion in engine.complete(asked, sampling, arm)}


def ask(engine, asked, parts):
    """Ask for all parts of a run before any begins, as a run does."""
    streams = []
    for part, (arm, count) in parts.items():
        requests = [replace(request, key=f"{part} {request.key}") for request in asked[:count]]
        streams.append(engine.complete(requests, GREEDY, arm))
    return streams


def mixed(engine, asked, parts):
    """Run all parts at the same time."""
    in_turn = chain.from_iterable(zip_longest(*ask(engine, asked, parts)))
    return {completion.key: completion for completion in in_turn if completion}


def one_after_the_other(engine, asked, parts):
    """Run the parts as an engine must whose model is changed for all its requests at once."""
    return {found.key: found for found in chain.from_iterable(ask(engine, asked, parts))}


def by_number(monkeypatch):
    """Let completions hold token ids: numbers close no box, so all tokens of both steps are compared."""
    for name in ("transformers", "vllm"):
        monkeypatch.setattr(engine_class(name), "_decode", lambda self, ids: " ".join(map(str, ids)))


@pytest.fixture(scope="module")
def expected(demo, everything):
    """What the transformers engine writes for the parts of a run."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        by_number(monkeypatch)
        return one_after_the_other(engine_class("transformers")(demo, 16), everything, PARTS)


@pytest.fixture(params=["in peace", "pre-empted"])
def preempted(request, monkeypatch):
    """A count of how often vLLM was made to drop all running requests, which it then computes once more."""
    count = SimpleNamespace(wanted=request.param == "pre-empted", seen=0)
    if count.wanted:
        vllm = importlib.import_module("vllm").AsyncLLMEngine
        generate = vllm.generate

        async def disturbed(llm, *arguments):
            async for output in generate(llm, *arguments):
                if len(output.outputs[0].token_ids) == 7 and arguments[-1].endswith("5"):
                    await llm.reset_prefix_cache(reset_running_requests=True)
                    count.seen += 1
                yield output

        monkeypatch.setattr(vllm, "generate", disturbed)
    return count


@needs_vllm
def test_greedy_tokens_equal_those_of_transformers_with_and_without_arm(
    engine, everything, expected, preempted, monkeypatch
):
    by_number(monkeypatch)
    found = mixed(engine, everything, PARTS)
    assert found == expected
    assert all(completion.elicited for completion in found.values())
    texts = [{found[f"{part} {n}"].text for part in PARTS} for n in range(PARTS["code"][1])]
    assert sum(len(different) == len(PARTS) for different in texts) > len(texts) / 2
    assert preempted.seen > 5 or not preempted.wanted


TINY = dict(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=3,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=32,
    max_position_embeddings=1024,
    initializer_range=0.3,
    tie_word_embeddings=False,  # else it only repeats its input
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=2,
)
FAMILIES = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM)}


@needs_vllm
@pytest.mark.parametrize("family", FAMILIES)
def test_arm_works_in_every_family_with_a_fused_gate(family, demo, asked, tmp_path, monkeypatch):
    by_number(monkeypatch)
    config, model = FAMILIES[family]
    model(config(**TINY, vocab_size=len(demo.tokenizer))).save_pretrained(tmp_path)
    demo.tokenizer.save_pretrained(tmp_path)
    tiny, parts = load(str(tmp_path), device="cpu"), {"plain": (None, 3), "text": (Arm(), 3), "code": (CODE, 3)}
    nothing = AutoModelForCausalLM.from_pretrained(tmp_path, device_map="meta")
    engine = engine_class("vllm")(replace(tiny, model=nothing), 4)  # which reads the weights by itself
    found = mixed(engine, asked, parts)
    engine.close()
    assert found == one_after_the_other(engine_class("transformers")(tiny, 4), asked, parts)
    assert len({completion.text for completion in found.values()}) > 6  # of nine


@needs_vllm
@pytest.mark.parametrize(
    "arm, options, message",
    [
        (Arm(), {"tensor_parallel": 2}, "tensor_parallel above 1"),
        (Arm(layer=99), {}, "layer 99 asked for"),
        (Arm(mode="code"), {}, "statistics='sequence'"),
    ],
)
def test_arm_that_cannot_work_is_refused_at_the_call(demo, asked, arm, options, message):
    with pytest.raises(InputError, match=message):
        engine_class("vllm")(demo, 8, **options).complete(asked, GREEDY, arm)


@needs_vllm
def test_activation_that_vllm_runs_otherwise_is_refused_before_the_first_completion(demo, asked, monkeypatch):
    async def make(arguments):
        return SimpleNamespace(collective_rpc=refuse, output_handler=None, shutdown=lambda timeout: None)

    async def refuse(name, args):
        return ["layer 1 of Some activates by MulAndSilu"]

    monkeypatch.setattr(importlib.import_module("lib.generation.vllm"), "_make", make)
    engine = engine_class("vllm")(demo, 8)
    plain, _ = (engine.complete(asked, GREEDY, arm) for arm in (None, Arm()))
    with pytest.raises(InputError, match="cannot run ARM on demo: layer 1 of Some activates"):
        next(plain)


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
