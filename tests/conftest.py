"""What every test stands on: a fixed seed, no window, the demo model once, and a checkpoint of a megabyte."""

import matplotlib
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lib.models.loading import load


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def no_window():
    matplotlib.use("Agg")


@pytest.fixture(scope="session")
def demo():
    """The demo model, whole; converting it takes half a minute, once per machine."""
    return load("demo", device="cpu")


@pytest.fixture
def tiny_checkpoint(tmp_path, demo):
    """A folder with a random Llama of three layers that speaks through the demo model's tokenizer."""
    config = LlamaConfig(
        vocab_size=len(demo.tokenizer),
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        bos_token_id=demo.tokenizer.bos_token_id,
        eos_token_id=demo.tokenizer.eos_token_id,
    )
    folder = tmp_path / "tiny-llama"
    LlamaForCausalLM(config).save_pretrained(folder)
    demo.tokenizer.save_pretrained(folder)
    return folder
