"""Scores of attention in blocks of queries, and their softmax.

A block covers as many queries as fit near a processor's cache or fill a GPU, and the
keys that they see, so no T x T array is held at once.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

# Elements of one block of scores: 2 MiB in float32 stay near a processor's cache and
# keep memory flat; a GPU, for which launches count instead, gets 512 MiB.
BLOCK_ELEMENTS = 1 << 19
GPU_BLOCK_ELEMENTS = 1 << 27
# So many blocks there are at least, of scores that are no trifle to a GPU; each has a
# multiple of so many queries, which its matrix units need.
GPU_CAUSAL_BLOCKS = 6
GPU_TILE = 16
GPU_UNDIVIDED_ELEMENTS = 1 << 24


def softmax_weights(scores: torch.Tensor, sink: torch.Tensor | None) -> torch.Tensor:
    """Return the weights (B, H, Q, keys) of scores in float32; what goes to a sink (H,)
    is cut off again.
    """
    batch, _, queries, keys = scores.shape
    if sink is not None:
        # (B, H, Q, 1)
        column = sink.view(1, -1, 1, 1).expand(batch, -1, queries, 1)
        scores = torch.cat([scores, column.to(scores.dtype)], -1)
    weights = scores.softmax(-1, dtype=torch.float32)
    return weights[..., :keys]


def score_blocks(
    query: torch.Tensor,
    key: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
    mask: Any,
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yield (its first query, the first key that it sees, scores (B, H, Q, keys)) of
    blocks of (B, K, groups, Q, D).

    Positions count all keys (B, K, T, D); the queries are the last of them. A `mask`
    replaces that of a causal window.
    """
    batch, queries = query.shape[0], query.shape[3]
    heads = query.shape[1] * query.shape[2]
    tokens = key.shape[2]
    past = tokens - queries
    if mask is not None:
        window = None
    elements = BLOCK_ELEMENTS
    most = queries
    if is_gpu(query):
        elements = GPU_BLOCK_ELEMENTS
        if batch * heads * queries * tokens > GPU_UNDIVIDED_ELEMENTS:
            # A block ends at its last query: of one block half would be hidden.
            tiles = math.ceil(queries / GPU_TILE)
            most = GPU_TILE * math.ceil(tiles / GPU_CAUSAL_BLOCKS)
    size = max(16, min(most, elements // (batch * heads * tokens)))
    keys = key.flatten(0, 1)  # which may copy: once for all blocks
    for start in range(past, tokens, size):
        stop = min(start + size, tokens)
        first = max(0, start - window + 1) if window else 0
        rows = query[:, :, :, start - past : stop - past].flatten(2, 3)
        scores = _products(rows.flatten(0, 1), keys[:, first:stop])
        scores = scores if scaling == 1 else scores.mul_(scaling)
        scores = scores if softcap is None else torch.tanh(scores / softcap) * softcap
        scores = scores.view(batch, heads, stop - start, stop - first)
        if mask is None:
            _hide_later(scores, start, first, window)
        yield start, first, scores if mask is None else scores + mask


def is_gpu(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is on a GPU, or on torch's meta device, which has no
    numbers but shows the operations that a GPU would run.
    """
    return tensor.is_cuda or tensor.is_meta


def _products(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return (N, Q, keys) in float32, of (N, Q, D) and (N, keys, D)."""
    if queries.dtype == torch.float32:
        return queries @ keys.transpose(1, 2)
    return torch.bmm(queries, keys.transpose(1, 2), out_dtype=torch.float32)


def _hide_later(
    scores: torch.Tensor, start: int, first: int, window: int | None
) -> None:
    """Set to -inf what a query of this block may not see: later keys, and keys that
    left the window.
    """
    if not window:
        # All keys before the block are seen: only its own square needs the mask.
        scores = scores[..., start - first :]
        first = start
    queries, keys = scores.shape[2:]
    # Filling under a mask that all heads share takes as long as the softmax, adding a
    # twelfth of that.
    scores += _mask(queries, keys, start - first, window, scores.device, scores.dtype)


@lru_cache(maxsize=8)  # most blocks of a forward, and of the next one, have the same
def _mask(
    queries: int,
    keys: int,
    before: int,
    window: int | None,
    device: torch.device,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Return (queries, keys), -inf for keys that a query does not see, else 0; so many
    keys come before the first query.
    """
    query = torch.arange(before, before + queries, device=device)[:, None]
    key = torch.arange(keys, device=device)
    hidden = key > query
    if window:
        hidden |= key <= query - window
    mask = torch.zeros_like(hidden, dtype=dtype)
    return mask.masked_fill_(hidden, -torch.inf)
