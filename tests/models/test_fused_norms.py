"""Norms that are computed by torch's function, compared with those of transformers."""

import copy

import pytest
import torch
from families import FAMILIES, on_cpu, save, spread
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from lib.models import loading
from lib.models.fused_norms import fuse_norms

# Qwen3 and Gemma 3 also have norms of heads.
FUSED = ["llama", "qwen2", "qwen3", "gemma2", "gemma3-local-and-global"]
IDS = torch.tensor([[5, 17, 3, 88, 41, 9, 60, 2, 33, 71]])
# On a GPU, sums in another order differ in the last digits of float32. Such a
# difference rarely decides to which of two neighbours a value is rounded in bfloat16,
# but these are 0.8 % apart, and later layers carry the difference on to the logits.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def are_fused(model):
    """Return for each norm of a model whether torch's function computes it."""
    names = [(type(part).__name__, vars(part)) for part in model.modules()]
    return ["forward" in own for name, own in names if name.endswith("Norm")]


@torch.inference_mode()
def logits(model, device="cpu"):
    return model(IDS.to(device)).logits


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("family", FUSED)
def test_logits_are_equal_within_rounding(device, family, dtype):
    model = spread(FAMILIES[family]()).to(device, dtype)
    fused = copy.deepcopy(model)
    fuse_norms(fused)
    assert all(are_fused(fused))
    expected, found = logits(model, device), logits(fused, device)
    difference = (found - expected).float().norm() / expected.float().norm()
    assert float(difference) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [LlamaRMSNorm, GemmaRMSNorm])
@torch.inference_mode()
def test_a_norm_rounds_where_that_of_transformers_does(device, kind, dtype):
    norm = spread(kind(576, eps=1e-3), 1.0).to(device, dtype)
    hidden = torch.randn(64, 576) * torch.logspace(-2, 2, 576)
    hidden = hidden.to(device, dtype)
    expected = norm(hidden)
    fuse_norms(norm)
    found = norm(hidden)
    epsilon = torch.finfo(dtype).eps
    torch.testing.assert_close(found, expected, rtol=2 * epsilon, atol=1e-7)
    if dtype != torch.float32:
        # Rounding once instead of twice would change an eighth of the values or more.
        assert (found != expected).float().mean() < 0.01


class OtherNorm(GemmaRMSNorm):
    """A norm of groups with the forward pass of Gemma's, as in Qwen 4."""

    def _norm(self, x):
        return super()._norm(x.unflatten(-1, (2, -1))).flatten(-2)


@pytest.mark.parametrize("norm", [OtherNorm(8), torch.nn.RMSNorm(8)])
def test_an_unknown_norm_is_not_changed(norm):
    fuse_norms(norm)
    assert "forward" not in vars(norm)


def test_of_a_model_that_is_partly_on_disk_the_norms_in_memory_are_fused():
    model = torch.nn.Sequential(LlamaRMSNorm(8), LlamaRMSNorm(8))
    model[0]._hf_hook = "accelerate reads the weights"
    fuse_norms(model)
    assert are_fused(model) == [False, True]


def test_a_model_loaded_for_a_gpu_has_fused_norms_and_attention_without_cudnn(
    tmp_path, monkeypatch
):
    save(FAMILIES["qwen2"](), tmp_path)
    assert not any(are_fused(on_cpu(tmp_path).model))
    read = loading.checkpoint_model

    def to_cpu(folder, config, has_head, device, *others):
        return read(folder, config, has_head, "cpu", *others)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    switched = []
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", switched.append)
    monkeypatch.setattr(loading, "checkpoint_model", to_cpu)
    loaded = loading.load(str(tmp_path), device="cuda")
    assert loaded.dtype == "bfloat16"
    assert all(are_fused(loaded.model))
    # It would plan anew for each shape.
    assert switched == [False]
