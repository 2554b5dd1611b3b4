"""RMS norms as one kernel each, where torch's own gives what a model's does.

A norm as transformers writes it is eight kernels, of which a layer's step has two.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

# Whether steps fuse norms: the rows of `make gpu` decide (CLUSTER.md).
FUSED_NORMS = False
# What roundings to bfloat16 may move a norm's output by, relative to it.
TOLERANCE = 0.02


@torch.inference_mode()
def fusable_norms(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return a model's norms that steps are to fuse: those that were tried and computed
    the same, whatever they are called.

    There are none unless FUSED_NORMS is set.
    """
    if not FUSED_NORMS:
        return []
    candidates = [
        module
        for module in model.modules()
        if hasattr(module, "variance_epsilon") and hasattr(module, "weight")
    ]
    return [norm for norm in candidates if _is_plain(norm)]


def _is_plain(norm: Any) -> bool:
    """Say whether a norm gives what torch's own does."""
    x = torch.linspace(-3, 2, len(norm.weight)).to(norm.weight)
    return torch.allclose(norm(x), _in_one_kernel(norm, x), TOLERANCE, TOLERANCE)


def _in_one_kernel(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Return what a norm, a module with `weight` and `variance_epsilon`, gives."""
    return torch.nn.functional.rms_norm(
        x, norm.weight.shape, norm.weight, norm.variance_epsilon
    )


@contextlib.contextmanager
def fused(norms: Sequence[torch.nn.Module]) -> Iterator[None]:
    """Let these norms be one kernel each until the block ends."""
    for norm in norms:
        norm.forward = functools.partial(_in_one_kernel, norm)
    try:
        yield
    finally:
        for norm in norms:
            del norm.forward
