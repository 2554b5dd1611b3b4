"""The check of a loaded model: every supported family passes, and models that compute
attention in another way are refused."""

import pytest
import torch
from families import FAMILIES, KINDS, of_type, spread
from transformers.masking_utils import create_chunked_causal_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from lib.attention import custom_attention
from lib.attention.equivalence_check import CHECK_TOKENS, check_attention
from lib.errors import InputError

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_accepted(name):
    torch.manual_seed(1)
    model = spread(FAMILIES[name]())
    for dtype in DTYPES if name in KINDS else DTYPES[:1]:
        check_attention(model.to(dtype))


def test_large_scores_are_accepted(llama):
    """Qwen2.5 has scores of hundreds because of its biases; the check must not take
    their rounding for another attention.
    """
    for layer in llama.model.layers:
        layer.self_attn.q_proj.weight.data *= 400
    for dtype in DTYPES:
        check_attention(llama.to(dtype))


DIFFERENT = {
    "diffllama": "its heads combine several attention matrices",
    "falcon_h1": "its layers mix tokens by more than attention",
    "mamba": r"layers \[1, 2, 3\] have no attention matrix",
    "recurrent_gemma": "layers .* have no attention matrix",
    "phimoe": "layers .* have an unknown sliding window",
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_family_with_other_attention_is_refused_by_name(name):
    with pytest.raises(
        InputError, match=f"model type {name} is not supported: {DIFFERENT[name]}"
    ):
        check_attention(of_type(name).eval())


def test_chunked_masks_and_weights_that_give_nan_are_refused(llama, monkeypatch):
    monkeypatch.setattr(
        "transformers.models.llama.modeling_llama.create_causal_mask",
        create_chunked_causal_mask,
    )
    llama.config.attention_chunk_size = 4
    with pytest.raises(InputError, match="llama masks its attention in a way"):
        check_attention(llama)
    # The embedding of the last token of the check.
    llama.model.embed_tokens.weight.data[CHECK_TOKENS] = torch.inf
    with pytest.raises(
        InputError, match="weights of this llama model give NaN or infinity"
    ):
        check_attention(llama)


def test_a_single_token_that_overflows_in_the_last_layer_is_refused(llama):
    def overflow(module, inputs, output):
        output[:, -1] = torch.inf

    # Behind all attention, which would spread it to the other tokens.
    llama.model.layers[-1].mlp.register_forward_hook(overflow)
    with pytest.raises(InputError, match="give NaN or infinity"):
        check_attention(llama)


OFF = r"the output of layer \d differs by [\d.e+]+ % from the model's own attention"
UNSEEN = r"layers \[1, 2, 3\] have an unknown sliding window"


@pytest.mark.parametrize(
    "changes, factor, residual, dtypes, message",
    [
        ({"scaling": 0.4}, 1, 1000, DTYPES, OFF),
        ({"sliding_window": 6}, 1, 1000, DTYPES, UNSEEN),
        # The output of one head differs by 0.5 %.
        ({}, 1.005, 1, [torch.float32], OFF),
    ],
)
def test_wrong_attention_is_refused_even_with_a_large_residual_stream(
    llama, monkeypatch, changes, factor, residual, dtypes, message
):
    """The check must compare the output of attention: in a hidden state of thousands a
    wrong attention would be lost in the rounding.
    """
    spread(llama).model.embed_tokens.weight.data *= residual
    kernel = custom_attention._attend

    def changed(*args, **options):
        output, _ = kernel(*args, **options | changes)
        output[:, :, 1] *= factor  # (B, T, H, D)
        return output, None

    monkeypatch.setitem(
        ALL_ATTENTION_FUNCTIONS, custom_attention.ATTENTION_NAME, changed
    )
    for dtype in dtypes:
        with pytest.raises(InputError, match=f"llama is not supported: {message}"):
            check_attention(llama.to(dtype))


@pytest.mark.parametrize("calls", [1, 2])
def test_attention_that_gives_nan_in_a_later_layer_is_refused(
    llama, monkeypatch, calls
):
    """This also holds if the layer calls its attention again without NaN."""
    layer = llama.model.layers[1]
    forward = layer.forward
    layer.forward = lambda *args, **options: [
        forward(*args, **options) for _ in range(calls)
    ][-1]
    kernel = custom_attention._attend
    computed = []

    def changed(module, *args, **options):
        output, _ = kernel(module, *args, **options)
        computed.append(module.layer_idx)
        is_first = module.layer_idx == 1 and computed.count(1) == 1
        return output * (torch.nan if is_first else 1), None

    monkeypatch.setitem(
        ALL_ATTENTION_FUNCTIONS, custom_attention.ATTENTION_NAME, changed
    )
    with pytest.raises(InputError, match="the output of layer 2 differs by nan %"):
        check_attention(llama)
    assert computed.count(1) == calls
