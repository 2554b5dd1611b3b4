"""The project's attention: one function for every family, in the place of a model's own
while `attending` runs.

Registered with transformers, it gets queries and keys after RoPE and norms, so it
serves every architecture that calls transformers' attention interface. The queries of
whole prompts go in blocks of rows: a `Recording` adds up their columns, `hiding` keeps
inserted tokens from later ones. In a `Step` of generation each row has one query, to
its own positions. Scores are kept in float32: rounded to bfloat16, those of Qwen2.5,
which reach 140,000 in layer 1, move a token's output by a tenth.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from lib.errors import InputError

NAME = "meaningless_tokens"  # under which transformers knows the function
# Elements of one block of scores: 2 MiB in float32 stay near a processor's cache and
# keep memory flat; a GPU, for which launches count instead, gets 512 MiB.
BLOCK_ELEMENTS, GPU_BLOCK_ELEMENTS = 1 << 19, 1 << 27
# Keywords that a model may pass and that change nothing in an inference forward over a
# whole prompt.
HARMLESS = (
    "position_ids cache_position use_cache output_attentions output_router_logits"
    " is_causal position_embeddings"
)


class LastLayerDone(Exception):
    """Ends the forward: nothing after the last layer asked for is needed."""


@dataclass
class Recording:
    """What is filled in while a forward runs; layers count from zero."""

    sums: torch.Tensor = field(
        default_factory=lambda: torch.empty(0)
    )  # (B, L, H, R, T) of columns below the diagonal
    rows: torch.Tensor | None = (
        # (B, R, T) 1 for queries that count in each set of R; None: one set, and all do
        None
    )
    index: dict[int, int] = field(default_factory=dict)  # layer -> position in L
    last: int | None = None  # layer that ends the forward; None: run to the end
    values: dict[int, torch.Tensor] | None = (
        None  # what goes into each layer's heads; None: not kept
    )
    outputs: dict[int, torch.Tensor] | None = None  # what comes out of them
    masks: set[int] = field(
        default_factory=set
    )  # the windows that the model made masks for
    windows: dict[int, int | None] = field(
        default_factory=dict
    )  # and those its layers passed on

    def add(self, layer: int, weights: torch.Tensor, start: int, first: int) -> None:
        """Add a block's columns, below the diagonal and over the queries that count, to
        the running sums.
        """
        stop, slot = start + weights.shape[2], self.index[layer]
        own = weights.diagonal(start - first, -2, -1).unsqueeze(
            2
        )  # (B, H, 1, Q): what each token gives itself
        if self.rows is None:
            columns = weights.sum(-2, keepdim=True)
        else:
            rows = self.rows[:, None, :, start:stop]  # (B, 1, R, Q)
            columns, own = rows @ weights, rows * own
        self.sums[:, slot, :, :, first:stop] += columns  # (B, H, R, keys)
        self.sums[:, slot, :, :, start:stop] -= own


@dataclass(frozen=True)
class _Hiding:
    """The spans of the rows' inserted tokens, and the layers that hide them or silence
    them, counted from zero.
    """

    starts: torch.Tensor  # (B, 1, 1) positions
    stops: torch.Tensor
    layers: dict[str, frozenset[int]]

    def change(
        self,
        how: str,
        layer: int,
        block: torch.Tensor,
        start: int,
        first: int,
        value: float,
    ) -> None:
        """Put a value where later tokens look at inserted ones, in a block (B, H, Q,
        keys) of one of the layers.
        """
        if layer in self.layers[how]:
            queries = torch.arange(start, start + block.shape[2], device=block.device)[
                :, None
            ]
            keys = torch.arange(first, first + block.shape[3], device=block.device)
            cut = (
                (queries >= self.stops) & (keys >= self.starts) & (keys < self.stops)
            )[:, None]
            block.masked_fill_(
                cut[: len(block)], value
            )  # what all rows begin with may go in as one


class Step:
    """Which positions the rows of a step see, worked out once for all layers of the
    same window.
    """

    def __init__(self, lengths: torch.Tensor):
        self.last = lengths[
            :, None, None, None
        ]  # (B, 1, 1, 1) the new tokens' positions
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def mask(self, tokens: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return what is added to scores, (B, 1, 1, T): 0 for the positions of a row
        that its new token sees.
        """
        if (tokens, window) not in self.masks:
            position = torch.arange(tokens, device=self.last.device)
            hidden = position > self.last
            if window:
                hidden |= position <= self.last - window
            self.masks[tokens, window] = torch.zeros_like(
                hidden, dtype=dtype
            ).masked_fill_(hidden, -torch.inf)
        return self.masks[tokens, window]


Work = tuple[
    Recording | None, _Hiding | None, Step | None
]  # what the attention does beside attending
_work: ContextVar[Work] = ContextVar("work", default=(None, None, None))


@contextlib.contextmanager
def attending(
    decoder: PreTrainedModel,
    recording: Recording | None = None,
    view: _Hiding | None = None,
    step: Step | None = None,
) -> Iterator[None]:
    """Let a decoder attend by this module until the block ends, beside what blocks
    around this one ask for.

    Where a recording names a last layer the forward ends there, and the block with it.
    """
    before = _work.get()
    # What transformers' setter changes after a walk through all modules, which takes a
    # millisecond of every step of generation. The check at load refuses a model whose
    # layers do not read it.
    config, token = (
        decoder.config,
        _work.set((recording or before[0], view or before[1], step or before[2])),
    )
    previous, config._attn_implementation = config._attn_implementation, NAME
    try:
        with contextlib.suppress(LastLayerDone):
            yield
    finally:
        config._attn_implementation = previous
        _work.reset(token)


@contextlib.contextmanager
def hiding(
    model: PreTrainedModel,
    spans: Sequence[slice],
    hidden: Collection[int] = (),
    silent: Collection[int] = (),
) -> Iterator[None]:
    """Hide each row's inserted tokens from later tokens in the `hidden` layers until
    the block ends.

    In the `silent` layers they are seen as keys, which enlarges the softmax's
    denominator, but their values count as zero. Positions stay; spans: one per row of
    the batch, in positions of the whole prompt, also where a cache holds its beginning.
    Layers count from 1. Raises InputError for a layer that the model lacks.
    """
    decoder = model.get_decoder()
    last = decoder.config.num_hidden_layers
    if missing := sorted(
        layer for layer in {*hidden, *silent} if not 1 <= layer <= last
    ):
        raise InputError(
            f"hiding in layers {missing} was asked for; the model has layers 1 to"
            f" {last}"
        )
    starts, stops = torch.tensor(
        [[span.start, span.stop] for span in spans], device=decoder.device
    ).T[..., None, None]
    layers = {
        "hidden": frozenset(n - 1 for n in hidden),
        "silent": frozenset(n - 1 for n in silent),
    }
    with attending(decoder, view=_Hiding(starts, stops, layers)):
        yield


def _attend(
    module,
    query: torch.Tensor,  # (B, H, T, D)
    key: torch.Tensor,  # (B, K, T, D): K key heads, each serving H / K query heads
    value: torch.Tensor,
    attention_mask,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: (
        torch.Tensor | None
    ) = None,  # (H,) score of the sink, a place outside the prompt that takes mass
    dropout: float = 0.0,
    **others,
) -> tuple[torch.Tensor, None]:
    if unknown := sorted(
        name
        for name, given in others.items()
        if given is not None and name not in HARMLESS.split()
    ):
        raise InputError(
            f"{type(module).__name__} uses {', '.join(unknown)}, which this attention"
            " lacks"
        )
    (recording, view, step), layer, tokens = _work.get(), module.layer_idx, key.shape[2]
    mask = step.mask(tokens, sliding_window, query.dtype) if step else None
    if step and softcap is None and s_aux is None:
        # It sums scores in float32 and copies neither keys nor values, whatever their
        # dtype.
        rows = query.unflatten(1, (key.shape[1], -1)).squeeze(
            3
        )  # (B, K, groups, D): a key head's queries side by side
        output = torch.nn.functional.scaled_dot_product_attention(
            rows, key, value, attn_mask=mask, scale=scaling
        )
        return output.flatten(1, 2).unsqueeze(1), None  # (B, 1, H, D)
    recorded = recording if recording and layer in recording.index else None
    ends = recorded is not None and layer == recorded.last
    if recording:
        recording.windows[layer] = sliding_window
    past = tokens - query.shape[2]  # keys of an earlier forward, which a cache kept
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if not query.is_cuda:  # where products of halves have no sums in float32
        query, key, scaling = query.float() * scaling, key.float(), 1.0
    query = query.unflatten(1, (key.shape[1], -1))  # (B, K, groups, T, D)
    output = value.new_empty(*query.shape[:4], value.shape[-1])
    for start, first, scores in _blocks(
        query, key, scaling, sliding_window, softcap, mask
    ):
        stop = start + scores.shape[2]
        if view:
            view.change("hidden", layer, scores, start, first, -torch.inf)
        if s_aux is not None:  # whose part is cut off again
            sink = s_aux.view(1, -1, 1, 1).expand(len(scores), -1, scores.shape[2], 1)
            scores = torch.cat([scores, sink.to(scores.dtype)], -1)
        weights = scores.softmax(-1, dtype=torch.float32)[..., : stop - first]
        if view:
            view.change("silent", layer, weights, start, first, 0.0)
        if recorded:
            recorded.add(layer, weights, start, first)
        if not ends or (recorded and recorded.outputs is not None):
            weights = weights.to(value.dtype).view(*key.shape[:2], -1, stop - first)
            mixed = weights @ value[:, :, first:stop]
            output[:, :, :, start - past : stop - past] = mixed.view(
                *query.shape[:3], -1, value.shape[-1]
            )
    output = output.flatten(1, 2).transpose(1, 2)  # (B, T, H, D)
    if recorded:
        for kept, tensor in ((recorded.values, value), (recorded.outputs, output)):
            if kept is not None:
                kept[layer] = tensor
    if ends:
        raise LastLayerDone
    return output.contiguous(), None


def _blocks(
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
    batch, key_heads, groups, queries, _ = query.shape
    heads, tokens = key_heads * groups, key.shape[2]
    past, window = tokens - queries, window if mask is None else None
    elements = GPU_BLOCK_ELEMENTS if query.is_cuda else BLOCK_ELEMENTS
    size = max(16, min(queries, elements // (batch * heads * tokens)))
    for start in range(past, tokens, size):
        stop = min(start + size, tokens)
        first = max(0, start - window + 1) if window else 0
        rows, keys = (
            query[:, :, :, start - past : stop - past].flatten(2, 3),
            key[:, :, first:stop],
        )
        if rows.dtype == torch.float32:
            scores = rows @ keys.transpose(2, 3)
        else:  # of halves, with sums in float32
            scores = torch.bmm(
                rows.flatten(0, 1),
                keys.flatten(0, 1).transpose(1, 2),
                out_dtype=torch.float32,
            )
        scores = scores if scaling == 1 else scores.mul_(scaling)
        scores = scores if softcap is None else torch.tanh(scores / softcap) * softcap
        scores = scores.view(batch, heads, stop - start, stop - first)
        if mask is None:
            _hide_later(scores, start, first, window)
        yield start, first, scores if mask is None else scores + mask


def _hide_later(
    scores: torch.Tensor, start: int, first: int, window: int | None
) -> None:
    """Set to -inf what a query of this block may not see: later keys, and keys that
    left the window.
    """
    if (
        not window
    ):  # all keys before the block are seen: only its own square needs the mask
        scores, first = scores[..., start - first :], start
    queries = torch.arange(start, start + scores.shape[2], device=scores.device)[
        :, None
    ]
    keys = torch.arange(first, first + scores.shape[3], device=scores.device)
    hidden = keys > queries
    if window:
        hidden |= keys <= queries - window
    # Filling under a mask that all heads share takes as long as the softmax, adding a
    # twelfth of that.
    scores += torch.zeros_like(hidden, dtype=scores.dtype).masked_fill_(
        hidden, -torch.inf
    )


def _no_mask(
    *,
    mask_function: Callable,
    config,
    local_size: int | None = None,
    use_vmap: bool = False,
    **_,
) -> None:
    """Build no mask, `_blocks` hides; refuse what is neither causal nor a causal window
    (chunks, blocks of images).
    """
    recording, _, step = _work.get()
    if (
        step or local_size == 0
    ):  # zero: of models whose windows are switched off, used by none of their layers
        return
    window = local_size or 2
    for query, key in (
        (0, 1),
        (0, 0),
        (window - 1, 0),
        (window, 0),
        (window + 1, 1),
        (window + 1, 2),
    ):
        expected = key <= query and (local_size is None or query - key < window)
        if (
            use_vmap
            or bool(
                mask_function(
                    torch.tensor(0), 0, torch.tensor(query), torch.tensor(key)
                )
            )
            != expected
        ):
            raise InputError(
                f"{config.model_type} masks its attention in a way that received"
                " attention lacks"
            )
    if recording and local_size:
        recording.masks.add(local_size)


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _no_mask)
