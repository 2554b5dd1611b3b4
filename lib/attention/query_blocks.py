"""Compute attention scores in blocks of queries, and their softmax; and attention in a
decoding step, in which each row has one new token.

A block has as many queries as fit into a processor's cache or fill a GPU, but at least
16, and the keys that they attend to, so that no T x T array is in memory.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import torch


class Step:
    """A decoding step of B rows, whose masks are computed once for all layers.

    positions: (B,) of the new tokens; each attends to the positions up to its own.
    """

    def __init__(self, positions: torch.Tensor):
        self.last = positions[:, None, None, None]
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def mask(self, tokens: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return the mask (B, 1, 1, T) that is added to scores: 0 for the positions
        that a row's new token attends to, else -inf.

        tokens: T, the number of keys. window: how many tokens the new one attends to,
        with itself; None: all.
        """
        kind = tokens, window
        if kind not in self.masks:
            self.masks[kind] = _causal_mask(self.last, tokens, window, dtype)
        return self.masks[kind]

    def attend(
        self,
        query: torch.Tensor,  # (B, H, 1, D)
        key: torch.Tensor,  # (B, K, T, D)
        value: torch.Tensor,
        window: int | None,
        scaling: float | None,
    ) -> torch.Tensor:
        """Return the heads' outputs, (B, 1, H, D).

        Scores are summed in float32. Neither keys nor values are copied, whatever their
        dtype.
        """
        # (B, K, groups, D): the queries of a key head, in place of a sequence, so that
        # keys need not be repeated for each of them
        rows = query.unflatten(1, (key.shape[1], -1)).squeeze(3)
        mask = self.mask(key.shape[2], window, query.dtype)
        output = torch.nn.functional.scaled_dot_product_attention(
            rows, key, value, attn_mask=mask, scale=scaling
        )
        return output.flatten(1, 2).unsqueeze(1)


def _causal_mask(
    queries: torch.Tensor, keys: int, window: int | None, dtype: torch.dtype
) -> torch.Tensor:
    """Return the mask (..., keys) that is added to the scores of queries at these
    positions (..., 1): 0 for the keys that a query attends to, else -inf.

    window: how many keys a query attends to, with its own; None: all earlier ones.
    """
    key = torch.arange(keys, device=queries.device)
    hidden = key > queries
    if window:
        hidden |= key <= queries - window
    mask = torch.zeros_like(hidden, dtype=dtype)
    return mask.masked_fill_(hidden, -torch.inf)


# Elements of one block of scores. On a CPU, 2 MiB of float32 fit into the cache. A GPU
# has blocks of 512 MiB, because each launch of a kernel takes time.
BLOCK_ELEMENTS = 1 << 19
GPU_BLOCK_ELEMENTS = 1 << 27
# On a GPU, scores of more than so many elements are computed in about four blocks,
# because half of a single block would be hidden by the causal mask. Of 2, 4, 6 and 8
# blocks, four were the fastest for 16 prompts of 1,024 tokens in bfloat16, where each
# kernel has to be launched, and as fast as six in float32
# (benchmarks/gpu_parts.py at commit 988d198). The number of queries in a block is a
# multiple of 16, as matrix units prefer. GPU_BLOCK_ELEMENTS may require more and
# smaller blocks, of any number of queries.
GPU_UNDIVIDED_ELEMENTS = 1 << 24
GPU_CAUSAL_BLOCKS = 4
GPU_TILE = 16


def softmax_weights(scores: torch.Tensor, sink: torch.Tensor | None) -> torch.Tensor:
    """Return the softmax of scores (B, H, Q, keys), in float32.

    sink: (H,) scores of an attention sink, which increase the denominator, so that the
    weights sum to less than 1; None: there is none.
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
    mask: torch.Tensor | None,
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yield (position of the first query, position of the first key, scores (B, H, Q,
    keys)) for each block of Q queries.

    query: (B, K, groups, queries, D), of the last positions. key: (B, K, T, D).
    scaling: multiplies the scores. window: how many tokens a query attends to, with its
    own; None: all earlier ones. softcap: the bound of scores, as in Gemma 2, or None.
    mask: (B, 1, 1, T), added to the scores of a decoding step, which has one query and
    so one block, instead of the causal mask or window; None: the causal one.
    """
    batch, queries = query.shape[0], query.shape[3]
    heads = query.shape[1] * query.shape[2]
    tokens = key.shape[2]
    past = tokens - queries
    if mask is not None:
        window = None
    elements = BLOCK_ELEMENTS
    most = queries
    if query.device.type != "cpu":
        elements = GPU_BLOCK_ELEMENTS
        if batch * heads * queries * tokens > GPU_UNDIVIDED_ELEMENTS:
            # A block needs no keys after its last query, so several blocks together
            # have fewer scores than one.
            tiles = math.ceil(queries / GPU_TILE)
            most = GPU_TILE * math.ceil(tiles / GPU_CAUSAL_BLOCKS)
    size = max(16, min(most, elements // (batch * heads * tokens)))
    keys = key.flatten(0, 1)  # before the loop, because this may copy
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
        else:
            scores = scores + mask
        yield start, first, scores


def _products(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return the dot products (B K, groups Q, keys), in float32, of queries (B K,
    groups Q, D) and keys (B K, keys, D).
    """
    if queries.dtype == torch.float32:
        return queries @ keys.transpose(1, 2)
    return torch.bmm(queries, keys.transpose(1, 2), out_dtype=torch.float32)


def _hide_later(
    scores: torch.Tensor, start: int, first: int, window: int | None
) -> None:
    """Set to -inf the scores of keys that a query does not attend to: later keys, and
    keys before the window.

    start, first: positions of the block's first query and of its first key.
    """
    if not window:
        # Every query attends to all keys before the block, so only the square of the
        # block's queries and keys needs the mask.
        scores = scores[..., start - first :]
        first = start
    queries, keys = scores.shape[2:]
    # Adding a mask takes a twelfth of the time of masked_fill_, which takes as long as
    # the softmax.
    scores += _mask(queries, keys, start - first, window, scores.device, scores.dtype)


@lru_cache(maxsize=8)  # most blocks of all layers and batches have the same mask
def _mask(
    queries: int,
    keys: int,
    before: int,
    window: int | None,
    device: torch.device,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Return the mask (queries, keys): -inf for keys that a query does not attend to,
    else 0.

    before: the number of keys before the position of the first query.
    """
    positions = torch.arange(before, before + queries, device=device)
    return _causal_mask(positions[:, None], keys, window, dtype)
