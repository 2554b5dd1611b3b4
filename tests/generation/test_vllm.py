"""The vllm engine against the transformers engine, in float32: the demo model, and two
tiny ones for their families.
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
from lib.generation import Request, Sampling, engine_class
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

MISSING = "vllm is not installed (make test-vllm installs it)"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason=MISSING
)
GREEDY = Sampling(16, elicit=ELICITATION)
CODE = Arm(c=0.5, p1=90, mode="code", layer=2, statistics="sequence")
# What one run mixes, and how many of the prompts each part takes.
PARTS = {"plain": (None, 48), "text": (Arm(), 48), "code": (CODE, 16)}


@pytest.fixture(scope="module")
def everything(demo):
    """48 problems with slashes, by token id."""
    torch.set_num_threads(
        1
        # off the cores of vLLM's workers: threads that wait for each other there take
        # minutes
    )
    problems = load_problems("embedded", limit=48, seed=0)
    prompts = [
        build_prompt(demo.tokenizer, p.problem, "mless", format="chat")
        for p in problems
    ]
    return [
        Request(str(n), prompt.input_ids.tolist(), seed=2**62 + n)
        for n, prompt in enumerate(prompts)
    ]


@pytest.fixture(scope="module")
def asked(everything):
    return everything[:8]


@pytest.fixture(scope="module")
def engine(demo, everything):
    engine = engine_class("vllm")(demo, 16)
    engine.complete(
        mixed(everything, PARTS), GREEDY
    )  # asked for before the first completion: vLLM starts once
    yield engine
    engine.close()


def complete(engine, asked, sampling):
    return {
        completion.key: completion for completion in engine.complete(asked, sampling)
    }


def mixed(asked, parts):
    """Return the prompts of all parts of a run."""
    some = [
        (part, arm, one)
        for part, (arm, count) in parts.items()
        for one in asked[:count]
    ]
    return [replace(one, key=f"{part} {one.key}", arm=arm) for part, arm, one in some]


def by_number(monkeypatch):
    """Let completions hold token ids: numbers close no box, so all tokens of both steps
    are compared.
    """
    for name in ("transformers", "vllm"):
        monkeypatch.setattr(
            engine_class(name), "_decode", lambda self, ids: " ".join(map(str, ids))
        )


def test_greedy_tokens_equal_those_of_transformers_with_and_without_arm(
    demo, engine, everything, monkeypatch
):
    by_number(monkeypatch)
    expected = complete(
        engine_class("transformers")(demo, 16), mixed(everything, PARTS), GREEDY
    )
    found = complete(engine, mixed(everything, PARTS), GREEDY)
    assert found == expected
    assert all(completion.elicited for completion in found.values())
    assert all(completion.token_ids for completion in found.values())
    texts = [
        {found[f"{part} {n}"].text for part in PARTS} for n in range(PARTS["code"][1])
    ]
    assert sum(len(different) == len(PARTS) for different in texts) > len(texts) / 2


TINY = dict(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=3,
    num_attention_heads=2,
    num_key_value_heads=1,
)
TINY |= dict(
    head_dim=32,
    max_position_embeddings=1024,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=2,
)
TINY |= dict(
    initializer_range=0.3, tie_word_embeddings=False
)  # else it only repeats its input
FAMILIES = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_arm_works_in_every_family_with_a_fused_gate(
    family, demo, asked, tmp_path, monkeypatch
):
    by_number(monkeypatch)
    config, model = FAMILIES[family]
    model(config(**TINY, vocab_size=len(demo.tokenizer))).save_pretrained(tmp_path)
    demo.tokenizer.save_pretrained(tmp_path)
    tiny, parts = (
        load(str(tmp_path), device="cpu"),
        {"plain": (None, 3), "text": (Arm(), 3), "code": (CODE, 3)},
    )
    kind = engine_class("vllm")
    engine = kind(kind.load(str(tmp_path), device="cpu"), 4)
    assert engine.model.device.type == "meta"  # vLLM alone holds the weights
    found = complete(engine, mixed(asked, parts), GREEDY)
    assert found == complete(
        engine_class("transformers")(tiny, 4), mixed(asked, parts), GREEDY
    )
    assert len({completion.text for completion in found.values()}) > 6  # of nine


def test_on_a_gpu_arm_takes_no_step_ahead_and_only_its_text_mode_decodes_by_graphs(
    demo, asked
):
    engine = engine_class("vllm")(replace(demo, device="cuda"), 4)
    engine.complete(asked, GREEDY)
    assert not {"async_scheduling", "enforce_eager", "compilation_config"} & set(
        engine._arguments()
    )
    for arm, eager in ((Arm(), False), (CODE, True)):
        engine.complete([replace(asked[0], arm=arm)], GREEDY)
        found = engine._arguments()
        assert (found["async_scheduling"], found["enable_chunked_prefill"]) == (
            False,
            False,
        )
        assert ("enforce_eager" in found, "compilation_config" in found) == (
            eager,
            not eager,
        )
        EngineArgs = importlib.import_module("vllm").EngineArgs
        assert (
            EngineArgs(**found).async_scheduling is False
        )  # every name is one of vLLM's


def test_arm_on_several_devices_and_a_model_without_a_folder_are_refused_at_once(
    demo, asked, monkeypatch
):
    with pytest.raises(InputError, match="tensor_parallel above 1"):
        engine_class("vllm")(demo, 8, tensor_parallel=2).complete(
            mixed(asked, PARTS), GREEDY
        )
    monkeypatch.setattr(demo.model, "name_or_path", "")
    with pytest.raises(InputError, match="reads a checkpoint folder"):
        engine_class("vllm")(demo, 8)


def test_vllm_is_started_again_for_longer_prompts_alone_and_refuses_arm_at_once(
    demo, asked, monkeypatch
):
    rooms, ended = [], []

    def make(arguments, made):
        rooms.append(arguments["max_model_len"])
        answers = {
            "collective_rpc": lambda name, args: [
                "layer 1 of Some activates by MulAndSilu"
            ]
        }
        answers |= {
            "add_request": lambda *given: None,
            "abort_request": lambda keys: None,
            "step": lambda: 1 / 0,
        }
        made.set_result(
            SimpleNamespace(
                **answers, engine_core=SimpleNamespace(shutdown=ended.append)
            )
        )

    monkeypatch.setattr(importlib.import_module("lib.generation.vllm"), "_make", make)
    engine = engine_class("vllm")(demo, 8)
    for new in (20, 10, 20, 21):
        with pytest.raises(ZeroDivisionError):
            next(engine.complete(asked, Sampling(new)))
    assert len(rooms) == 2 and rooms[1] == rooms[0] + 1 and ended == [60]
    with pytest.raises(
        InputError, match="cannot run ARM on demo: layer 1 of Some activates"
    ):
        next(engine.complete(mixed(asked, PARTS), GREEDY))
    assert len(rooms) == 3 and len(ended) == 3


def test_completions_come_one_by_one_and_may_be_left(engine, everything):
    stream = engine.complete(everything, GREEDY)
    assert next(stream).key in {request.key for request in everything}
    stream.close()
    assert not engine.llm.has_unfinished_requests()
    assert len(complete(engine, everything[:2], GREEDY)) == 2


def test_an_answer_that_was_cut_goes_on_as_if_it_had_not_been(engine, demo, asked):
    whole = complete(engine, asked[:1], Sampling(12))[asked[0].key]
    begun = tuple(demo.tokenizer(whole.text, add_special_tokens=False)["input_ids"][:5])
    assert complete(
        engine, [replace(asked[0], resumed_tokens=begun)], Sampling(12)
    ) == {asked[0].key: whole}
