"""The transformers engine compared with the library's greedy `generate`."""

import contextlib
import itertools
import math
from dataclasses import replace

import pytest
import torch
from families import FAMILIES, KINDS, spread
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache

from lib.arm.redistribution import installed
from lib.arm.settings import Arm
from lib.attention.custom_attention import attending
from lib.attention.query_blocks import Step
from lib.generation import transformers_engine
from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.generation.key_value_caches import SlotCache
from lib.generation.transformers_engine import choose

CODE = Arm(c=1.0, mode="code")
STOPS = [27, 43, 62, 83, 87, 95]  # enough tokens that rows end at different steps
# The logits of a decoding step may differ from those of a full forward pass by a few
# roundings of the dtype, relative to their norm.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.01}


@pytest.fixture(params=["llama", "gemma3-local-and-global"])
def tiny(request, tokenizer, speaking):
    torch.manual_seed(2)
    model = spread(FAMILIES[request.param](), 0.2)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return speaking(model)


def requests(lengths):
    """Return requests of three common tokens and so many others each."""
    generator = torch.Generator().manual_seed(3)
    made = []
    for number, length in enumerate(lengths):
        ids = torch.randint(10, 97, (length,), generator=generator).tolist()
        made.append(Request(str(number), [7, 8, 9, *ids]))
    return made


def complete(loaded, requests, batch_size, arm=None, **sampling):
    """Return the completions of requests by key, with ARM if given."""
    engine = engine_class("transformers")(loaded, batch_size)
    under_arm = [replace(request, arm=arm) for request in requests]
    completions = engine.complete(under_arm, Sampling(**sampling))
    return {completion.key: completion for completion in completions}


def generated(model, request, new_tokens):
    """Return the new tokens of the library's greedy `generate`."""
    ids = torch.tensor([request.input_ids])
    tokens = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new_tokens,
        do_sample=False,
    )
    return tokens[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("arm", [None, Arm(c=1.0), CODE], ids=str)
@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_greedy_answers_equal_those_of_generate_in_any_batch_size(
    tiny, batch_size, arm
):
    prompts = requests([1, 9, 4, 20, 12, 5, 2])
    seeded = [replace(request, seed=i) for i, request in enumerate(prompts)]
    tiny.model.generation_config.eos_token_id = STOPS
    plain = complete(tiny, seeded, batch_size, max_new_tokens=10)
    changed = complete(tiny, seeded, batch_size, arm, max_new_tokens=10)
    for request in seeded:
        with contextlib.ExitStack() as stack:
            if arm:
                hook = installed(tiny.model, arm, seed=request.seed)
                stack.enter_context(hook)
            tokens = generated(tiny.model, request, 10)
        written = list(itertools.takewhile(lambda token: token not in STOPS, tokens))
        assert changed[request.key].text == tiny.tokenizer.decode(written)
    lengths = {completion.completion_tokens for completion in changed.values()}
    assert len(lengths) > 2
    assert (changed == plain) == (arm is None)
    # ARM was removed from the model.
    assert complete(tiny, seeded, batch_size, max_new_tokens=10) == plain


@pytest.mark.parametrize("family", KINDS)
def test_a_decoding_step_gives_the_logits_of_a_full_forward_in_every_dtype(
    family, device
):
    model = spread(FAMILIES[family](), 0.1).to(device)
    prompts = [torch.randint(3, 97, (length,), device=device) for length in (21, 9, 30)]
    for dtype, tolerance in TOLERANCES.items():
        logits, expected = step_and_full_forward(model.to(dtype), prompts)
        apart = (logits - expected).norm(dim=-1) / expected.norm(dim=-1)
        assert apart.max() < tolerance, dtype


@torch.inference_mode()
def step_and_full_forward(model, prompts):
    """Return the logits of the last tokens (B, vocabulary) from a decoding step, and
    from full forward passes.

    The step continues from a cache of all tokens but the last.
    """
    decoder = model.get_decoder()
    cache = SlotCache(len(prompts), 40)
    expected = []
    for row, ids in enumerate(prompts):
        prefilled = DynamicCache()
        decoder(input_ids=ids[None, :-1], past_key_values=prefilled, use_cache=True)
        cache.write(row, prefilled, [len(ids) - 1])
        expected.append(model(input_ids=ids[None], use_cache=False).logits[0, -1])
    positions = cache.next_positions(len(prompts), model.device)
    with attending(decoder, step=Step(positions)):
        output = model(
            input_ids=torch.stack([ids[-1:] for ids in prompts]),
            position_ids=positions[:, None],
            past_key_values=cache,
            use_cache=True,
        )
    return output.logits[:, -1].float(), torch.stack(expected).float()


def test_a_prefill_that_runs_out_of_memory_is_retried_with_fewer_prompts(
    tiny, monkeypatch
):
    prompts = requests([3, 8, 5, 2])
    expected = complete(tiny, prompts, 4, max_new_tokens=6)
    prefill = transformers_engine.prefill

    def prefill_of_one(model, rows, *others):
        if len(rows) > 1:
            raise torch.OutOfMemoryError("out of memory")
        return prefill(model, rows, *others)

    monkeypatch.setattr(transformers_engine, "prefill", prefill_of_one)
    assert complete(tiny, prompts, 4, max_new_tokens=6) == expected


def test_the_batch_size_fits_into_free_memory(tiny, monkeypatch):
    # Bytes per token: keys and values of 3 layers with 2 heads of 8 float32 numbers.
    position = 2 * 3 * 2 * 8 * 4
    monkeypatch.setattr(
        transformers_engine, "free_memory", lambda *_: 2 * 5 * position * 100
    )
    engine = engine_class("transformers")(tiny, 64)
    assert engine._rows_that_fit(100) == 5  # half of it is used


@given(st.integers(1, 400), st.integers(0, 2**32), st.sampled_from([0.5, 5, 50]))
def test_a_drawn_token_is_that_of_the_cumulative_sum_in_float64(
    vocabulary, seed, spread
):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(8, vocabulary, generator=generator)
    logits[:, torch.rand(vocabulary, generator=generator) < 0.3] = -math.inf
    logits[:, int(seed) % vocabulary] = 0
    seeds = range(seed, seed + 8)
    drawn = choose(logits, Sampling(1, 1.0), [seeded(number) for number in seeds])
    for row, number, token in zip(logits, seeds, drawn, strict=True):
        sums = row.softmax(-1).double().cumsum(-1)
        draw = torch.rand((), generator=seeded(number), dtype=torch.float64)
        assert token == int((sums <= draw * sums[-1]).sum())


def seeded(number):
    return torch.Generator().manual_seed(number)


@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2**-53, 1.0])
def test_a_token_without_probability_is_never_drawn(share):
    probabilities = torch.rand(50, 300, generator=seeded(3))
    probabilities[:, ::2] = 0
    probabilities[:, 200:] = 0
    draws = torch.full((50,), share, dtype=torch.float64)
    tokens, _ = transformers_engine._tokens_at(probabilities, draws)
    assert (probabilities.gather(1, tokens[:, None]) > 0).all()


@pytest.mark.parametrize("temperature", [0, 1])
def test_no_token_is_chosen_from_logits_that_overflowed(temperature, refused):
    logits = torch.tensor([[0.0, 1.0], [0.0, math.nan]])
    generators = [torch.Generator()] * 2
    message = refused(choose, logits, Sampling(1, temperature), generators)
    assert "overflowed in this dtype (NaN): use --dtype float32" in message


def test_a_sampled_answer_depends_on_its_requests_seed_and_not_on_its_key(tiny):
    (request,) = requests([4])
    alike = []
    for key, seed in (("a", 1), ("b", 1), ("c", 2)):
        alike.append(replace(request, key=key, seed=seed))
    drawn = complete(tiny, alike, 3, max_new_tokens=12, temperature=1.0)
    assert drawn["a"].token_ids == drawn["b"].token_ids
    assert drawn["a"].token_ids != drawn["c"].token_ids
