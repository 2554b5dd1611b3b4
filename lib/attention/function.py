"""The project's attention, which replaces a model's own while a block of `attending` runs, in two forms.

Registered with transformers, both get queries and keys after RoPE and norms, so they serve every architecture that
calls transformers' attention interface. PROMPT takes the queries of whole prompts in blocks of rows, looks only at keys
that a row may see, adds up the columns that a `Recording` asks for and lets a `View` hide some. ONE_TOKEN is a step of
generation: one query per row, to that row's own positions. Scores are kept in float32 by both: rounded to bfloat16,
those of Qwen2.5, which reach 140,000 in layer 1, move a token's output by a tenth.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from lib.errors import InputError

PROMPT, ONE_TOKEN = "whole_prompts", "one_token_per_row"
# Elements of one block of scores: 2 MiB in float32 stay near a processor's cache and keep memory flat; a GPU, for
# which launches count instead, gets 512 MiB.
BLOCK_ELEMENTS, GPU_BLOCK_ELEMENTS = 1 << 19, 1 << 27
# Keywords that a model may pass and that change nothing in an inference forward over a whole prompt.
HARMLESS = "position_ids cache_position use_cache output_attentions output_router_logits is_causal position_embeddings"


class _LastLayerDone(Exception):
    """Ends the forward: nothing after the last layer asked for is needed."""


@dataclass
class Recording:
    """What `_attend` fills in while a forward runs."""

    sums: torch.Tensor  # (B, L, H, R, T) column sums below the diagonal, one for each of R sets of queries
    rows: torch.Tensor | None  # (B, R, T) 1 for queries that count; None when there is one set and all do
    index: dict[int, int]  # zero-based layer -> position in L
    last: int | None  # zero-based layer that ends the forward; None: run to the end
    values: dict[int, torch.Tensor] | None = None  # what goes into each layer's heads; None: not kept
    outputs: dict[int, torch.Tensor] | None = None  # what comes out of them
    row_error: dict[int, float] = field(default_factory=dict)  # largest distance of a row's sum from one
    masks: set[int] = field(default_factory=set)  # the windows that the model made masks for
    windows: dict[int, int | None] = field(default_factory=dict)  # and those its layers passed on


class View(Protocol):
    """Changes what a block of queries sees; `start` and `first` are the positions of its first query and key."""

    def change_scores(self, layer: int, scores: torch.Tensor, start: int, first: int) -> None:
        """Change scores (B, H, Q, keys) of a layer, counted from 1, in place, before the softmax."""

    def change_weights(self, layer: int, weights: torch.Tensor, start: int, first: int) -> None:
        """Change the weights that values are mixed by, in place."""


_recording: ContextVar[Recording | None] = ContextVar("recording", default=None)
view: ContextVar["View | None"] = ContextVar("view", default=None)
_step: ContextVar["_Step"] = ContextVar("step")


def record(decoder: PreTrainedModel, input_ids: torch.Tensor, recording: Recording, positions=None):
    """Run `decoder` with this module's attention, filling `recording`; return its output, None if ended early."""
    given = {}
    if positions is not None:
        # Without a mask of its own, a jump in positions would pass for a second prompt packed into the row.
        given = {"position_ids": positions.to(input_ids.device), "attention_mask": torch.ones_like(input_ids)}
    with attending(decoder, PROMPT), torch.inference_mode():
        token = _recording.set(recording)
        try:
            return decoder(input_ids=input_ids, use_cache=False, **given)
        except _LastLayerDone:
            return None
        finally:
            _recording.reset(token)


class _Step:
    """Which positions the rows of a step see, worked out once for all layers of the same window."""

    def __init__(self, lengths: torch.Tensor):
        self.last = lengths[:, None, None, None]  # (B, 1, 1, 1) the new tokens' positions
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def mask(self, tokens: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return what is added to scores, (B, 1, 1, T): 0 for the positions of a row that its new token sees."""
        if (tokens, window) not in self.masks:
            position = torch.arange(tokens, device=self.last.device)
            hidden = position > self.last
            if window:
                hidden |= position <= self.last - window
            self.masks[tokens, window] = torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, -torch.inf)
        return self.masks[tokens, window]


@contextlib.contextmanager
def attending_from_one_token(decoder: PreTrainedModel, lengths: torch.Tensor) -> Iterator[None]:
    """Let each row's one new token attend to its own `lengths` (B,) positions in the cache, and to itself."""
    token = _step.set(_Step(lengths))
    try:
        with attending(decoder, ONE_TOKEN):
            yield
    finally:
        _step.reset(token)


@contextlib.contextmanager
def attending(decoder: PreTrainedModel, name: str) -> Iterator[None]:
    """Let a decoder attend by the function registered under a name until the block ends."""
    # What transformers' setter changes after a walk through all modules, which takes a millisecond of every step of
    # generation. The check at load refuses a model whose layers do not read it.
    config = decoder.config
    previous, config._attn_implementation = config._attn_implementation, name
    try:
        yield
    finally:
        config._attn_implementation = previous


def _attend(
    module,
    query: torch.Tensor,  # (B, H, T, D)
    key: torch.Tensor,  # (B, K, T, D): K key heads, each serving H / K query heads
    value: torch.Tensor,
    attention_mask,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,  # (H,) score of the sink, a place outside the prompt that takes mass
    dropout: float = 0.0,
    **others,
) -> tuple[torch.Tensor, None]:
    _refuse_unknown(module, others)
    recording, seen, layer = _recording.get(), view.get(), module.layer_idx
    slot = recording.index.get(layer) if recording else None
    ends = recording is not None and layer == recording.last
    if recording:
        recording.windows[layer] = sliding_window
    past = key.shape[2] - query.shape[2]  # keys of an earlier forward, which a cache kept
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if not query.is_cuda:  # where products of halves have no sums in float32
        query, key, scaling = query.float() * scaling, key.float(), 1.0
    query = query.unflatten(1, (key.shape[1], -1))  # (B, K, groups, T, D)
    output = value.new_empty(*query.shape[:4], value.shape[-1])
    for start, first, scores in _blocks(query, key, scaling, sliding_window, softcap):
        stop = start + scores.shape[2]
        if seen:
            seen.change_scores(layer + 1, scores, start, first)
        weights, sink = _softmax(scores, s_aux)
        if seen:
            seen.change_weights(layer + 1, weights, start, first)
        if recording and recording.last is None:
            error = (weights.sum(-1) + sink - 1).abs().max().item()
            recording.row_error[layer] = max(error, recording.row_error.get(layer, 0.0))
        if recording and slot is not None:
            _add_columns(recording, slot, weights, start, first)
        if not ends or (recording and recording.outputs is not None):
            weights = weights.to(value.dtype).view(*key.shape[:2], -1, stop - first)
            mixed = weights @ value[:, :, first:stop]
            output[:, :, :, start - past : stop - past] = mixed.view(*query.shape[:3], -1, value.shape[-1])
    output = output.flatten(1, 2).transpose(1, 2)  # (B, T, H, D)
    if recording and slot is not None:
        for kept, tensor in ((recording.values, value), (recording.outputs, output)):
            if kept is not None:
                kept[layer] = tensor
    if ends:
        raise _LastLayerDone
    return output.contiguous(), None


def _blocks(
    query: torch.Tensor, key: torch.Tensor, scaling: float, window: int | None, softcap: float | None
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yield (its first query, the first key that it sees, scores (B, H, Q, keys)) of blocks of (B, K, groups, Q, D).

    Positions count all keys (B, K, T, D); the queries are the last of them.
    """
    batch, key_heads, groups, queries, _ = query.shape
    heads, tokens = key_heads * groups, key.shape[2]
    past = tokens - queries
    elements = GPU_BLOCK_ELEMENTS if query.is_cuda else BLOCK_ELEMENTS
    size = max(16, min(queries, elements // (batch * heads * tokens)))
    for start in range(past, tokens, size):
        stop = min(start + size, tokens)
        first = max(0, start - window + 1) if window else 0
        scores = _products(query[:, :, :, start - past : stop - past].flatten(2, 3), key[:, :, first:stop])
        scores = scores if scaling == 1 else scores.mul_(scaling)
        scores = _capped(scores, softcap).view(batch, heads, stop - start, stop - first)
        _hide(scores, start, first, window)
        yield start, first, scores


def _products(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Return the float32 products (B, K, N, T) of (B, K, N, D) and (B, K, T, D), of halves with sums in float32."""
    if query.dtype == torch.float32:
        return query @ key.transpose(2, 3)
    products = torch.bmm(query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2), out_dtype=torch.float32)
    return products.unflatten(0, key.shape[:2])


def _capped(scores: torch.Tensor, softcap: float | None) -> torch.Tensor:
    return scores if softcap is None else torch.tanh(scores / softcap) * softcap


def _softmax(scores: torch.Tensor, sink: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | float]:
    """Return weights (B, H, Q, keys) in float32 and what the sink takes of each row, (B, H, Q) or 0."""
    if sink is None:
        return scores.softmax(-1, dtype=torch.float32), 0.0
    column = sink.view(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
    weights = torch.cat([scores, column.to(scores.dtype)], -1).softmax(-1, dtype=torch.float32)
    return weights[..., :-1], weights[..., -1]


def _hide(scores: torch.Tensor, start: int, first: int, window: int | None) -> None:
    """Set to -inf what a query of this block may not see: later keys, and keys that left the window."""
    if not window:  # all keys before the block are seen: only its own square needs the mask
        scores, first = scores[..., start - first :], start
    queries = torch.arange(start, start + scores.shape[2], device=scores.device)[:, None]
    keys = torch.arange(first, first + scores.shape[3], device=scores.device)
    hidden = keys > queries
    if window:
        hidden |= keys <= queries - window
    # Filling under a mask that all heads share takes as long as the softmax, adding a twelfth of that.
    scores += torch.zeros_like(hidden, dtype=scores.dtype).masked_fill_(hidden, -torch.inf)


def _add_columns(recording: Recording, slot: int, weights: torch.Tensor, start: int, first: int) -> None:
    """Add the block's columns, below the diagonal and over the queries that count, to the running sums."""
    stop = start + weights.shape[2]
    own = weights.diagonal(start - first, -2, -1).unsqueeze(2)  # (B, H, 1, Q): what each token gives itself
    if recording.rows is None:
        columns = weights.sum(-2, keepdim=True)
    else:
        rows = recording.rows[:, None, :, start:stop]  # (B, 1, R, Q)
        columns, own = rows @ weights, rows * own
    recording.sums[:, slot, :, :, first:stop] += columns  # (B, H, R, keys)
    recording.sums[:, slot, :, :, start:stop] -= own


def _no_mask(*, mask_function: Callable, config, local_size: int | None = None, use_vmap: bool = False, **_) -> None:
    """Build no mask, `_hide` does it; refuse what is neither causal nor a causal window (chunks, blocks of images)."""
    if local_size == 0:  # made by models whose windows are switched off, and used by none of their layers
        return
    window = local_size or 2
    for query, key in ((0, 1), (0, 0), (window - 1, 0), (window, 0), (window + 1, 1), (window + 1, 2)):
        expected = key <= query and (local_size is None or query - key < window)
        if use_vmap or bool(mask_function(torch.tensor(0), 0, torch.tensor(query), torch.tensor(key))) != expected:
            raise InputError(f"{config.model_type} masks its attention in a way that received attention lacks")
    recording = _recording.get()
    if recording and local_size:
        recording.masks.add(local_size)


def _attend_from_one_token(
    module,
    query: torch.Tensor,  # (B, H, 1, D)
    key: torch.Tensor,  # (B, K, T, D), written up to each row's length and beyond
    value: torch.Tensor,
    attention_mask,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    dropout: float = 0.0,
    **others,
) -> tuple[torch.Tensor, None]:
    _refuse_unknown(module, others)
    mask = _step.get().mask(key.shape[2], sliding_window, query.dtype)
    query = query.unflatten(1, (key.shape[1], -1)).squeeze(3)  # (B, K, groups, D): a key head's queries side by side
    if softcap is None and s_aux is None:
        # It sums scores in float32 and copies neither keys nor values, whatever their dtype.
        attended = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    else:
        query = query.float() * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        scores = _capped(query @ key.float().transpose(2, 3), softcap) + mask
        weights, _ = _softmax(scores.flatten(1, 2).unsqueeze(2), s_aux)  # (B, H, 1, T)
        attended = weights.view_as(scores).to(value.dtype) @ value
    return attended.flatten(1, 2).unsqueeze(1), None  # (B, 1, H, D)


def _refuse_unknown(module, others: dict) -> None:
    unknown = sorted(name for name, given in others.items() if given is not None and name not in HARMLESS.split())
    if unknown:
        raise InputError(f"{type(module).__name__} uses {', '.join(unknown)}, which this attention lacks")


AttentionInterface.register(PROMPT, _attend)
AttentionInterface.register(ONE_TOKEN, _attend_from_one_token)
AttentionMaskInterface.register(PROMPT, _no_mask)
AttentionMaskInterface.register(ONE_TOKEN, lambda *args, **kwargs: None)
