"""Fresh weights: what the family draws before training, the same for the same seed, and nothing read."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from lib.models import checkpoints
from lib.models.loading import load


def test_a_seed_draws_what_transformers_draws_and_reads_no_weights(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(checkpoints, "read_tensor", lambda *_: pytest.fail("weights were read"))
    state = torch.random.get_rng_state()
    found = load(str(tiny_checkpoint), layers=2, device="cpu", seed=5)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(tiny_checkpoint, num_hidden_layers=2)
    for name, expected in AutoModel.from_config(config).state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[name], expected)


def test_seeds_differ_and_are_named(tiny_checkpoint):
    one, other = (load(str(tiny_checkpoint), layers=1, device="cpu", seed=seed) for seed in (0, 1))
    assert not torch.equal(one.model.embed_tokens.weight, other.model.embed_tokens.weight)
    assert one.revision != other.revision and one.name == "tiny-llama untrained 0"
