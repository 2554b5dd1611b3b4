"""A hub with a model of eight layers in several shards."""

import pytest
import torch
from families import of_type, save
from hub_server import serving

REPO = "Qwen/Qwen2.5-Math-7B"
WIDE = {
    "vocab_size": 600,
    "hidden_size": 128,
    "intermediate_size": 256,
    "head_dim": 32,
    "num_hidden_layers": 8,
    "tie_word_embeddings": False,
}


@pytest.fixture(scope="package")
def models(tmp_path_factory):
    """A folder of repositories; the one under REPO also has code and a pickle."""
    root = tmp_path_factory.mktemp("models")
    folder = root / REPO
    torch.manual_seed(0)
    save(of_type("qwen2", **WIDE), folder, max_shard_size="1800KB")
    assert len(list(folder.glob("*.safetensors"))) == 4
    (folder / "modeling_custom.py").write_text("raise SystemExit")
    (folder / "training.pt").write_bytes(b"pickle")
    return root


@pytest.fixture
def server(models, tmp_path, monkeypatch):
    """A hub that serves `models`."""
    with serving(models, tmp_path, monkeypatch) as server:
        yield server
