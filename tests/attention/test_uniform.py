"""Uniform attention in closed form against models whose scores are all the same."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from lib.attention.received import observe, observe_uniform

SHAPE = dict(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4)
SHAPE |= dict(num_key_value_heads=2, head_dim=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
WINDOWS = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}


@pytest.mark.parametrize(("family", "windows"), [("llama", {}), ("gemma3_text", WINDOWS)])
def test_the_closed_form_is_what_a_model_with_equal_scores_gives(family, windows):
    model = AutoModel.from_config(AutoConfig.for_model(family, **SHAPE, **windows)).eval()
    for layer in model.layers:
        layer.self_attn.q_proj.weight.data.zero_()
    ids, lengths = torch.randint(1, 50, (2, 17)), torch.tensor([17, 12])
    queries = torch.rand(2, 2, 17) < 0.7
    expected = observe(model, ids, [2, 1], lengths, queries=queries).received
    found = observe_uniform(model, ids, [2, 1], lengths, queries=queries).received
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6, equal_nan=True)


def test_the_first_of_three_tokens_receives_the_mean_of_a_half_and_a_third():
    model = AutoModel.from_config(AutoConfig.for_model("llama", **SHAPE)).eval()
    found = observe_uniform(model, torch.tensor([3, 4, 5]), [1], torch.tensor([3])).received[0, 0, 0, 0]
    torch.testing.assert_close(found, torch.tensor([5 / 12, 1 / 3, torch.nan]), equal_nan=True)
