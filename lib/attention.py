"""Received attention of any layer and head, without ever holding a T x T array per head and layer.

For attention A (rows are queries) token j receives the mean of A[i, j] over the later tokens i > j
(Bogdan et al. 2025, arXiv 2506.19143; the quantity of the paper's Figs. 9-11 and 13-20).

The function registered here replaces a model's own attention for the length of one forward. It gets queries and
keys after RoPE, norms and scaling, so it serves every architecture that calls transformers' attention
interface; it takes the queries in blocks of rows, looks only at keys that a row may see, and adds up columns.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from lib.errors import InputError

NAME = "received_attention"
# Elements of one block of scores: 4 MiB in float32 stays near the cache and keeps memory flat.
BLOCK_ELEMENTS = 1 << 20
# Keywords that a model may pass and that change nothing in an inference forward over a whole prompt.
HARMLESS = {
    "position_ids",
    "cache_position",
    "use_cache",
    "output_attentions",
    "is_causal",
    "position_embeddings",
}


class _LastLayerDone(Exception):
    """Ends the forward: nothing after the last layer asked for is needed."""


@dataclass
class _Recording:
    sums: torch.Tensor  # (B, L, H, T) column sums below the diagonal
    rows: torch.Tensor | None  # (B, T) 1 for real queries, 0 for padding; None when there is no padding
    index: dict[int, int]  # zero-based layer -> position in L
    last: int


_recording: ContextVar[_Recording] = ContextVar("recording")


def received_attention(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int] | None = None,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return what each token receives, float32 (B, L, H, T), NaN for the last token and padding.

    input_ids: (B, T) padded on the right (exact for a causal model), or (T,); layers: counted from 1, None for
    all; lengths: (B,) real tokens per row. Costs one forward up to the last layer asked for and O(T) memory.
    Raises InputError for a layer the model lacks, a prompt longer than its context, and bad lengths.
    """
    decoder = model.get_decoder()
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    layers = list(range(1, len(decoder.layers) + 1)) if layers is None else list(layers)
    lengths = _check(decoder, input_ids, layers, lengths)
    batch, tokens = input_ids.shape
    heads = decoder.config.num_attention_heads
    sums = torch.zeros(batch, len(layers), heads, tokens, device=model.device)
    position = torch.arange(tokens, device=model.device)
    rows = None if bool((lengths == tokens).all()) else (position < lengths[:, None]).float()
    index = {layer - 1: i for i, layer in enumerate(layers)}
    with _installed(decoder), torch.inference_mode():
        token = _recording.set(_Recording(sums, rows, index, max(index)))
        try:
            decoder(input_ids=input_ids, use_cache=False)
        except _LastLayerDone:
            pass
        finally:
            _recording.reset(token)
    later = (lengths[:, None] - 1 - position).float()  # (B, T) number of later tokens
    later[later <= 0] = torch.nan
    return sums / later[:, None, None, :]


def _check(decoder, input_ids: torch.Tensor, layers: list[int], lengths) -> torch.Tensor:
    batch, tokens = input_ids.shape
    missing = [layer for layer in layers if not 1 <= layer <= len(decoder.layers)]
    if missing or not layers:
        raise InputError(f"layers {missing or layers} asked for; the model has layers 1 to {len(decoder.layers)}")
    if input_ids.numel() == 0:
        raise InputError("received attention of an empty batch was asked for")
    context = decoder.config.max_position_embeddings
    if tokens > context:
        raise InputError(f"a prompt of {tokens} tokens is longer than the model's context of {context}")
    if lengths is None:
        return torch.full((batch,), tokens, device=input_ids.device)
    lengths = torch.as_tensor(lengths, device=input_ids.device)
    if lengths.shape != (batch,) or bool((lengths < 1).any()) or bool((lengths > tokens).any()):
        raise InputError(f"lengths must be {batch} numbers from 1 to {tokens}, not {lengths.tolist()}")
    return lengths


@contextlib.contextmanager
def _installed(decoder: PreTrainedModel) -> Iterator[None]:
    # transformers offers a setter but no getter; this is the only place that reads the private name.
    previous = decoder.config._attn_implementation
    decoder.set_attn_implementation(NAME)
    try:
        yield
    finally:
        decoder.set_attn_implementation(previous)


def _attend(
    module,
    query: torch.Tensor,  # (B, H, T, D)
    key: torch.Tensor,  # (B, K, T, D): K key heads, each serving H / K query heads
    value: torch.Tensor,
    attention_mask,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    **others,
) -> tuple[torch.Tensor, None]:
    unknown = sorted(name for name, given in others.items() if given is not None and name not in HARMLESS)
    if unknown:
        raise InputError(f"{type(module).__name__} uses {', '.join(unknown)}, which received attention lacks")
    recording = _recording.get()
    slot = recording.index.get(module.layer_idx)
    batch, heads, tokens, width = query.shape
    groups = heads // key.shape[1]
    query = query * (width**-0.5 if scaling is None else scaling)
    query = query.view(batch, key.shape[1], groups, tokens, width)
    output = torch.empty_like(query)
    size = max(16, min(tokens, BLOCK_ELEMENTS // (batch * heads * tokens)))
    for start in range(0, tokens, size):
        stop = min(start + size, tokens)
        first = max(0, start - sliding_window + 1) if sliding_window else 0
        block = query[:, :, :, start:stop].flatten(2, 3)  # (B, K, groups * Q, D)
        scores = block @ key[:, :, first:stop].transpose(2, 3)  # (B, K, groups * Q, keys)
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        scores = scores.view(batch, heads, stop - start, stop - first)
        _hide(scores, start, first, sliding_window)
        weights = scores.softmax(-1, dtype=torch.float32)
        if slot is not None:
            _add_columns(recording, slot, weights, start, first)
        if module.layer_idx != recording.last:
            weights = weights.to(value.dtype).view(batch, key.shape[1], -1, stop - first)
            mixed = weights @ value[:, :, first:stop]
            output[:, :, :, start:stop] = mixed.view(batch, key.shape[1], groups, -1, width)
    if module.layer_idx == recording.last:
        raise _LastLayerDone
    return output.view(batch, heads, tokens, width).transpose(1, 2).contiguous(), None


def _hide(scores: torch.Tensor, start: int, first: int, window: int | None) -> None:
    """Set to -inf what a query of this block may not see: later keys, and keys that left the window."""
    queries = torch.arange(start, start + scores.shape[2], device=scores.device)[:, None]
    if not window:  # all keys before the block are seen: only its own square needs the mask
        square = scores[..., start - first :]
        keys = torch.arange(start, start + square.shape[-1], device=scores.device)
        square.masked_fill_(keys > queries, -torch.inf)
        return
    keys = torch.arange(first, first + scores.shape[3], device=scores.device)
    scores.masked_fill_((keys > queries) | (keys <= queries - window), -torch.inf)


def _add_columns(recording: _Recording, slot: int, weights: torch.Tensor, start: int, first: int) -> None:
    """Add the block's columns, below the diagonal and over real queries only, to the running sums."""
    stop = start + weights.shape[2]
    own = weights.diagonal(start - first, -2, -1)  # (B, H, Q): what each token gives itself
    if recording.rows is None:
        columns = weights.sum(-2)
    else:
        real = recording.rows[:, start:stop]
        columns = (real[:, None, None, :] @ weights).squeeze(-2)
        own = own * real[:, None, :]
    recording.sums[:, slot, :, first:stop] += columns
    recording.sums[:, slot, :, start:stop] -= own


# The mask is causal by construction above, so transformers need not build one.
AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, lambda *args, **kwargs: None)
