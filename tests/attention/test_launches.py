"""The number of kernels that measuring received attention launches on a GPU."""

import pytest
import torch
from launches import Launches
from transformers import AutoModelForCausalLM, LlamaConfig

from lib.attention.received import received_attention

# In six blocks it would be 101.
MOST_PER_LAYER = 88


def launches(layers, dtype):
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=layers,
        num_attention_heads=9,
        num_key_value_heads=3,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
        ids = torch.zeros(16, 1024, dtype=torch.long)
    with Launches() as counted:
        received_attention(model, ids)
    return counted.kernels


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_layer_of_extraction_launches_few_kernels(dtype):
    few, more = launches(2, dtype), launches(4, dtype)
    of_a_layer = (more.total() - few.total()) / 2
    assert of_a_layer <= MOST_PER_LAYER
    # Each layer computes its queries in four blocks, with two products each.
    assert more["aten.bmm"] - few["aten.bmm"] == 2 * 2 * 4
