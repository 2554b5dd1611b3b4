"""Received attention against transformers' eager attention, on tiny random models of each family."""

import pytest
import torch
from families import FAMILIES, SMALL, eager, spread
from transformers import LlamaConfig, LlamaForCausalLM

from lib.attention import function as attention_function
from lib.attention.received import observe, received_attention
from lib.errors import InputError


@pytest.fixture(params=FAMILIES, scope="module")
def model(request):
    torch.manual_seed(1)
    return spread(FAMILIES[request.param]())


@pytest.fixture
def llama():
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SMALL)).eval()


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
    found = observe(model, ids, [1, 2, 3], values=True, outputs=True)
    for i, output in enumerate(found.outputs):
        torch.testing.assert_close(output.flatten(2), projected[i], rtol=1e-4, atol=1e-4)
        assert found.values[i].shape[::2] == (1, 12)
    assert not observe(model, ids, [1, 2, 3], values=True).outputs  # of every layer of a 1.5B, a gigabyte


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
