"""Compute a model's RMSNorms with few kernels on a GPU.

transformers composes an RMSNorm of six to ten operations. In bfloat16 a GPU waits for
the launches of a decoding step's kernels, and a third of these belong to norms.
`torch.nn.functional.rms_norm` is a single kernel on CUDA.
"""

from types import MethodType

import torch
from torch.nn.functional import rms_norm
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm


def fuse_norms(model: torch.nn.Module) -> None:
    """Make a model compute its RMSNorms with torch's function.

    This applies to norms with the code of Llama's or Gemma's, which most architectures
    copy; others are not changed. If weights are on disk, norms are not changed either,
    because accelerate's hooks replace their forward pass, and the model waits for
    weights instead of launches. Results are rounded to the model's dtype where
    transformers rounds them, so they differ only by the order of sums in float32.
    """
    for module in model.modules():
        if hasattr(module, "_hf_hook"):
            continue
        for known, forward in FORWARD.items():
            if _code(type(module)) == _code(known):
                module.forward = MethodType(forward, module)


def _code(kind: type) -> list[tuple]:
    """Return the compiled code of the methods that compute a norm."""
    methods = [getattr(kind, name, None) for name in ("forward", "_norm")]
    codes = [method.__code__ for method in methods if method]
    return [(code.co_code, code.co_names, code.co_consts) for code in codes]


def _as_llama(norm: LlamaRMSNorm, hidden: torch.Tensor) -> torch.Tensor:
    # The weight is a second kernel, because Llama rounds to the dtype before it.
    shape = norm.weight.shape
    return norm.weight * rms_norm(hidden, shape, eps=norm.variance_epsilon)


def _as_gemma(norm: GemmaRMSNorm, hidden: torch.Tensor) -> torch.Tensor:
    weight = 1.0 + norm.weight.float()
    normed = rms_norm(hidden.float(), weight.shape, weight, norm.eps)
    return normed.type_as(hidden)


FORWARD = {LlamaRMSNorm: _as_llama, GemmaRMSNorm: _as_gemma}
