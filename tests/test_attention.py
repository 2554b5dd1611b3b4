"""Received attention against transformers' eager attention, on tiny random models of each family."""

import pytest
import torch
from transformers import (
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lib.attention import received_attention
from lib.errors import InputError

SMALL = dict(
    vocab_size=97,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=512,
)
GEMMA = dict(SMALL, sliding_window=7, layer_types=["sliding_attention", "full_attention", "sliding_attention"])
# Small enough for a test, real enough to be built: the picture tower is never run.
PICTURES = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28)


def gemma3_multimodal():
    config = Gemma3Config(text_config=GEMMA, vision_config=PICTURES, mm_tokens_per_image=4)
    return Gemma3ForConditionalGeneration._from_config(config)


FAMILIES = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SMALL)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL)),
    "qwen2-window": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=5, max_window_layers=1)
    ),
    "gemma3-text": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**GEMMA)),
    "gemma3-multimodal": gemma3_multimodal,
}


@pytest.fixture(params=FAMILIES)
def model(request):
    torch.manual_seed(1)
    built = FAMILIES[request.param]().eval()
    for parameter in built.parameters():  # the default of 0.02 makes attention too even to tell heads apart
        parameter.data.normal_(0, 0.3)
    return built


@pytest.fixture
def llama():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SMALL)).eval()


def eager(model, ids):
    """The definition, from the full attention matrices of one unpadded prompt: (L, H, T)."""
    decoder = model.get_decoder()
    decoder.set_attn_implementation("eager")
    with torch.inference_mode():
        attentions = decoder(input_ids=ids[None], output_attentions=True, use_cache=False).attentions
    decoder.set_attn_implementation("sdpa")
    assert len(attentions) == len(decoder.layers)
    below = torch.tril(torch.ones(len(ids), len(ids)), -1)
    return torch.stack([(a[0] * below).sum(-2) / below.sum(-2) for a in attentions])


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5, equal_nan=True)


def test_equals_eager_on_one_prompt(model):
    ids = torch.randint(1, 97, (40,))
    same(received_attention(model, ids)[0], eager(model, ids))


def test_equals_eager_when_blocks_are_smaller_than_the_prompt(model, monkeypatch):
    monkeypatch.setattr("lib.attention.BLOCK_ELEMENTS", 1)
    ids = torch.randint(1, 97, (53,))
    same(received_attention(model, ids)[0], eager(model, ids))


def test_padded_batch_equals_each_prompt_alone(model):
    prompts = [torch.randint(1, 97, (n,)) for n in (30, 17, 2)]
    batch = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True)
    found = received_attention(model, batch, lengths=[30, 17, 2])
    for row, ids in zip(found, prompts, strict=True):
        same(row[..., : len(ids)], eager(model, ids))
        assert row[..., len(ids) - 1 :].isnan().all()


def test_layers_come_in_the_order_asked_for(model):
    ids = torch.randint(1, 97, (20,))
    found = received_attention(model, ids, layers=[3, 1])[0]
    same(found, eager(model, ids)[[2, 0]])


def test_stops_after_the_last_layer_needed(llama):
    ran = []
    for i, layer in enumerate(llama.model.layers, 1):
        layer.register_forward_hook(lambda *_, i=i: ran.append(i))
    received_attention(llama, torch.arange(1, 9), layers=[2])
    assert ran == [1]  # layer 2 ends the forward from within


def test_model_keeps_its_own_attention(llama):
    ids = torch.randint(1, 97, (1, 12))
    before = llama(ids).logits
    received_attention(llama, ids)
    torch.testing.assert_close(llama(ids).logits, before, rtol=0, atol=0)


def test_one_token_receives_nothing_defined(llama):
    assert received_attention(llama, torch.tensor([5])).isnan().all()


def test_sum_over_a_prompt_is_what_the_softmax_leaves(llama):
    ids = torch.randint(1, 97, (25,))
    found = received_attention(llama, ids)[0, 0]
    later = torch.arange(24, 0, -1)
    # 25 rows of mass one, less what each token gives itself, which lies between 0 and 1.
    assert ((found[:, :-1] * later).sum(-1) < 25).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(layers=[4]), r"layers \[4\] asked for; the model has layers 1 to 3"),
        (dict(layers=[0]), "layers 1 to 3"),
        (dict(lengths=[13]), "lengths must be 1 numbers from 1 to 12"),
    ],
)
def test_impossible_requests_are_refused(llama, arguments, message):
    with pytest.raises(InputError, match=message):
        received_attention(llama, torch.arange(1, 13), **arguments)


def test_prompt_longer_than_the_context_is_refused(llama):
    with pytest.raises(InputError, match="513 tokens is longer than the model's context of 512"):
        received_attention(llama, torch.ones(513, dtype=torch.long))


def test_empty_batch_is_refused(llama):
    with pytest.raises(InputError, match="empty"):
        received_attention(llama, torch.ones(0, 4, dtype=torch.long))


def test_attention_with_an_unknown_ingredient_is_refused(llama):
    from lib import attention

    with pytest.raises(InputError, match="LlamaAttention uses position_bias"):
        q = torch.zeros(1, 4, 3, 8)
        attention._attend(llama.model.layers[0].self_attn, q, q, q, None, position_bias=q)
