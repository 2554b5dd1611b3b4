"""Received attention against transformers' eager attention, on tiny random models of each family."""

import functools

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
)

from lib.attention import function as attention_function
from lib.attention.check import check_attention
from lib.attention.received import observe, received_attention
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
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
GEMMA = dict(SMALL, sliding_window=7, layer_types=["sliding_attention", "full_attention", "sliding_attention"])
# Small enough for a test, real enough to be built: the picture tower is never run.
PICTURES = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28)


def gemma3_multimodal():
    config = Gemma3Config(text_config=GEMMA, vision_config=PICTURES, mm_tokens_per_image=4)
    return Gemma3ForConditionalGeneration._from_config(config)


def of_type(model_type, **others):
    """A random model of one of transformers' types, with a window of seven where the type knows windows."""
    window = {"sliding_window": 7} if hasattr(AutoConfig.for_model(model_type), "sliding_window") else {}
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **{**SMALL, **window, **others}))


MULTI_HEAD_LATENT = dict(num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=4) | dict(
    qk_nope_head_dim=8, v_head_dim=6, head_dim=4
)
PLAIN = (
    "apertus arcee bitnet biogpt cohere ernie4_5 flex_olmo gemma glm glm4 gpt_neox granite helium hunyuan_v1_dense "
    "llama nanochat nemotron olmo olmo2 olmoe opt persimmon phi qwen3_moe seed_oss stablelm"
)
WINDOWED = (
    "cohere2 cwm exaone4 gemma2 gemma3_text gemma4_text gpt_oss ministral mistral mixtral olmo3 phi3 qwen3 "
    "smollm3 starcoder2 vaultgemma"
)
FAMILIES = {name: functools.partial(of_type, name) for name in (PLAIN + " " + WINDOWED).split()} | {
    "qwen2": lambda: of_type("qwen2"),
    "qwen2-window": lambda: of_type("qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen2_moe": lambda: of_type("qwen2_moe"),
    "gemma3-local-and-global": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**GEMMA)),
    "gemma3-multimodal": gemma3_multimodal,
    "deepseek_v3": lambda: of_type("deepseek_v3", **MULTI_HEAD_LATENT),
}


def spread(model):
    """Draw the weights wider: with the default of 0.02 attention is too even to tell heads apart."""
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    return model.eval()


@pytest.fixture(params=FAMILIES, scope="module")
def model(request):
    torch.manual_seed(1)
    return spread(FAMILIES[request.param]())


@pytest.fixture
def llama():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SMALL)).eval()


def eager(model, ids):
    """The definition, from the full attention matrices of one unpadded prompt: (L, H, T)."""
    decoder = model.get_decoder()
    before = decoder.config._attn_implementation
    decoder.set_attn_implementation("eager")
    with torch.inference_mode():
        attentions = decoder(input_ids=ids[None], output_attentions=True, use_cache=False).attentions
    decoder.set_attn_implementation(before)
    assert len(attentions) == len(decoder.layers)
    below = torch.tril(torch.ones(len(ids), len(ids)), -1)
    return torch.stack([(a[0, ..., : len(ids)] * below).sum(-2) / below.sum(-2) for a in attentions])


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5, equal_nan=True)


def test_equals_eager_on_one_prompt(model):
    ids = torch.randint(1, 97, (40,))
    same(received_attention(model, ids)[0], eager(model, ids))


def test_equals_eager_when_blocks_are_smaller_than_the_prompt(model, monkeypatch):
    monkeypatch.setattr("lib.attention.function.BLOCK_ELEMENTS", 1)
    ids = torch.randint(1, 97, (53,))
    same(received_attention(model, ids)[0], eager(model, ids))


def test_padded_batch_equals_each_prompt_alone(model):
    prompts = [torch.randint(1, 97, (n,)) for n in (30, 17, 2)]
    batch = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True)
    found = received_attention(model, batch, lengths=[30, 17, 2])
    for row, ids in zip(found, prompts, strict=True):
        same(row[..., : len(ids)], eager(model, ids))
        assert row[..., len(ids) - 1 :].isnan().all()


def test_the_check_at_load_accepts_every_family(model):
    check_attention(model)


def test_layers_come_in_the_order_asked_for(llama):
    ids = torch.randint(1, 97, (20,))
    found = received_attention(llama, ids, layers=[3, 1])[0]
    same(found, eager(llama, ids)[[2, 0]])


def test_the_mean_may_be_taken_over_chosen_later_tokens(llama):
    ids, chosen = torch.randint(1, 97, (14,)), torch.tensor([3, 7, 8, 11])
    queries = torch.ones(1, 2, 14, dtype=torch.bool)
    queries[0, 1] = torch.isin(torch.arange(14), chosen)
    every, found = observe(llama, ids, [1], queries=queries).received[0, 0].unbind(1)
    same(every, received_attention(llama, ids, [1])[0, 0])
    llama.set_attn_implementation("eager")
    with torch.inference_mode():
        matrix = llama.model(ids[None], output_attentions=True).attentions[0][0]  # (H, T, T)
    for token in range(11):
        later = [i for i in chosen.tolist() if i > token]
        same(found[:, token], matrix[:, later, token].mean(-1))
    assert found[:, 11:].isnan().all()


def test_attention_depends_on_distances_alone(llama):
    ids = torch.randint(1, 97, (2, 15))
    shifted = observe(llama, ids, positions=torch.arange(15).expand(2, -1) + 40).received
    same(shifted.squeeze(3), received_attention(llama, ids))
    stretched = observe(llama, ids, positions=torch.arange(15).expand(2, -1) * 3).received
    assert not torch.allclose(stretched[..., :-1], shifted[..., :-1], atol=1e-3)


@pytest.mark.parametrize("name", ["llama", "deepseek_v3", "gemma3-multimodal", "gpt_oss"])
def test_kept_outputs_are_what_the_output_projection_gets(name):
    model = spread(FAMILIES[name]())
    projected = {}
    for i, layer in enumerate(model.get_decoder().layers):
        layer.self_attn.o_proj.register_forward_pre_hook(lambda _, given, i=i: projected.update({i: given[0]}))
    ids = torch.randint(1, 97, (1, 12))
    with torch.inference_mode():
        model.get_decoder()(ids)
    found = observe(model, ids, [1, 2, 3], keep=True)
    for i, output in enumerate(found.outputs):
        torch.testing.assert_close(output.flatten(2), projected[i], rtol=1e-4, atol=1e-4)
        assert found.values[i].shape[::2] == (1, 12)


@pytest.mark.parametrize(
    "model_type, message",
    [
        ("diffllama", "model type diffllama is not supported: its heads combine several attention matrices"),
        ("mamba", r"mamba is not supported: layers \[1, 2, 3\] show no attention matrix"),
        ("recurrent_gemma", "recurrent_gemma is not supported: layers .* show no attention matrix"),
        ("phimoe", "phimoe is not supported: layers .* do not say how far they look back"),
    ],
)
def test_a_family_that_differs_is_refused_by_name(model_type, message):
    with pytest.raises(InputError, match=message):
        check_attention(of_type(model_type).eval())


def test_a_model_that_masks_in_chunks_is_refused(llama, monkeypatch):
    from transformers.masking_utils import create_chunked_causal_mask

    llama.config.attention_chunk_size = 4
    monkeypatch.setattr("transformers.models.llama.modeling_llama.create_causal_mask", create_chunked_causal_mask)
    with pytest.raises(InputError, match="llama masks its attention in a way"):
        check_attention(llama)


def test_attention_that_is_not_the_models_own_is_refused(llama, monkeypatch):
    kernel = attention_function._softmax
    monkeypatch.setattr(attention_function, "_softmax", lambda *given: (2 * kernel(*given)[0], 0.0))
    with pytest.raises(InputError, match="rows of attention miss one by 1 and the hidden state differs"):
        check_attention(llama)


def test_weights_of_nan_are_refused(llama):
    llama.model.layers[1].mlp.up_proj.weight.data[0, 0] = torch.nan
    with pytest.raises(InputError, match="the weights of this llama model give NaN or infinity"):
        check_attention(llama)


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
    with pytest.raises(InputError, match="LlamaAttention uses position_bias"):
        q = torch.zeros(1, 4, 3, 8)
        attention_function._attend(llama.model.layers[0].self_attn, q, q, q, None, position_bias=q)
