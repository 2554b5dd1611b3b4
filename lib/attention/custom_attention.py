"""Compute the attention of every architecture by one function, which can record it and
hide tokens from it.

The function replaces a model's attention inside a block of `attending`. It is
registered with transformers and receives queries and keys after RoPE and norms, so it
works for every architecture that calls transformers' attention interface. The queries
of a prompt are processed in blocks: a `Recording` sums the attention that each token
receives, and `hiding` hides inserted tokens from later ones. Steps of generation are
computed by `query_blocks.Step`. Scores are in float32, because those of Qwen2.5 reach
140,000 in layer 1: rounded to bfloat16, they would change a token's output by a tenth.
"""

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from lib.attention.model_properties import device_of
from lib.attention.query_blocks import Step, score_blocks, softmax_weights
from lib.errors import InputError


class StopForward(Exception):
    """Raised in a hook or a layer to end a forward pass whose other layers are not
    needed; `attending` and `lib.arm.mlp_activations.watched` catch it.
    """


@dataclass
class Recording:
    """What a forward pass records, and in which layers; layers count from zero."""

    # (B, L, H, R, T): the attention that each token receives from later queries, summed
    sums: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    # (B, R, T): 1 for the queries of each set
    rows: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    # layer -> its index in L; the forward pass ends after the last one
    index: dict[int, int] = field(default_factory=dict)
    # The values (B, K, T, D) of the heads in each of these layers
    values: dict[int, torch.Tensor] = field(default_factory=dict)
    # Whether the outputs (B, T, H, D) of the heads in the last one are computed, too
    with_output: bool = False
    output: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    # Whether all scores are equal and all values zero, instead of the model's
    uniform: bool = False
    # The sliding windows, in tokens, for which the model built masks, and the window of
    # each layer; None: all earlier tokens.
    masks: set[int] = field(default_factory=set)
    windows: dict[int, int | None] = field(default_factory=dict)

    def add(self, layer: int, weights: torch.Tensor, start: int, first: int) -> None:
        """Add the attention weights (B, H, Q, keys) of a block of queries to `sums`.

        weights: after `zero_own_`. start, first: positions of the block's first query
        and of its first key.
        """
        slot = self.index[layer]
        stop = start + weights.shape[2]
        columns = self.rows[:, None, :, start:stop] @ weights
        # add_ instead of +=, which would copy the result onto itself.
        self.sums[:, slot, :, :, first:stop].add_(columns)  # (B, H, R, keys)


@dataclass(frozen=True)
class Hiding:
    """The inserted tokens of each row that are hidden from later tokens, as `hiding`
    describes.
    """

    # (2, B, 1, 1): start and stop of the inserted tokens, and of their visible part
    inserted: torch.Tensor
    visible: torch.Tensor
    # The layers, counted from zero, by "hidden" and "silent".
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
        """Set the elements of a block (B, H, Q, keys) at which later tokens attend to
        hidden ones to `value`, if the layer is one of `layers[how]`.

        how: "hidden" for scores, "silent" for weights. layer: counted from zero. start,
        first: positions of the block's first query and of its first key.
        """
        if layer not in self.layers[how]:
            return
        queries = torch.arange(start, start + block.shape[2], device=block.device)
        keys = torch.arange(first, first + block.shape[3], device=block.device)
        _, stops = self.inserted
        is_later = queries[:, None] >= stops
        is_inserted = _within(keys, self.inserted)
        is_visible = _within(keys, self.visible)
        hidden = (is_later & is_inserted & ~is_visible)[:, None]
        # The common prefix of all rows is computed as a batch of one row.
        block.masked_fill_(hidden[: len(block)], value)


def _within(positions: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
    """Return whether positions (T,) lie in spans (2, B, 1, 1), as (B, 1, T)."""
    starts, stops = spans
    return (positions >= starts) & (positions < stops)


def zero_own_(weights: torch.Tensor, offset: int) -> torch.Tensor:
    """Set the attention that tokens give to themselves to 0, in place, and return the
    weights (..., Q, keys); the first query is the key number `offset`.

    Subtracted from a sum, it would leave only rounding errors of what a token receives
    that gives nearly all of its attention to itself.
    """
    weights.diagonal(offset, -2, -1).zero_()
    return weights


ATTENTION_NAME = "meaningless_tokens"  # of the function, in transformers' registry
# Keywords that a model may pass and that do not change the attention of a prompt.
HARMLESS = (
    "position_ids",
    "cache_position",
    "use_cache",
    "output_attentions",
    "output_router_logits",
    "is_causal",
    "position_embeddings",
)


# What the function records and hides, and the decoding step that it computes, if any;
# `attending` sets them.
Active = tuple[Recording | None, Hiding | None, Step | None]
_active: ContextVar[Active] = ContextVar("active", default=(None, None, None))


@contextlib.contextmanager
def attending(
    decoder: PreTrainedModel,
    recording: Recording | None = None,
    view: Hiding | None = None,
    step: Step | None = None,
) -> Iterator[None]:
    """Make a decoder use this module's attention until the block ends.

    recording: is filled by a forward pass. view: the tokens that are hidden. step: the
    decoding step that is computed. None: as in the enclosing block, if there is one. If
    the recording has layers, StopForward ends the forward pass after the last, which
    also ends the block without an error.
    """
    before = _active.get()
    active = (recording or before[0], view or before[1], step or before[2])
    token = _active.set(active)
    # transformers' setter also walks through all modules, which takes a millisecond of
    # every step of generation. `check_attention` refuses models whose layers do not
    # read this field of the config.
    config = decoder.config
    previous = config._attn_implementation
    config._attn_implementation = ATTENTION_NAME
    try:
        with contextlib.suppress(StopForward):
            yield
    finally:
        config._attn_implementation = previous
        _active.reset(token)


@contextlib.contextmanager
def hiding(
    model: PreTrainedModel,
    spans: Sequence[slice],
    hidden: Collection[int] = (),
    silent: Collection[int] = (),
    visible: Sequence[slice] | None = None,
) -> Iterator[None]:
    """Hide each row's inserted tokens from later tokens in some layers until the block
    ends; the positions of all tokens stay the same.

    spans: the inserted tokens of each row of the batch, as positions in the complete
    prompt, even if a cache has the beginning of it. hidden: layers (from 1) in which
    later tokens do not attend to them. silent: layers in which they are attended to,
    which enlarges the softmax's denominator, but with values of zero. visible: the part
    of each span that is not changed; None: no part. Raises InputError for a layer that
    the model lacks.
    """
    decoder = model.get_decoder()
    last = decoder.config.num_hidden_layers
    missing = {layer for layer in (*hidden, *silent) if not 1 <= layer <= last}
    if missing:
        raise InputError(
            f"hiding in layers {sorted(missing)} was requested; the model has layers 1"
            f" to {last}"
        )
    visible = visible or [slice(0, 0)] * len(spans)
    ends = [
        [[span.start for span in of_rows], [span.stop for span in of_rows]]
        for of_rows in (spans, visible)
    ]
    # (2, B, 1, 1) each
    inserted, shown = torch.tensor(ends, device=device_of(model))[..., None, None]
    layers = {
        "hidden": frozenset(n - 1 for n in hidden),
        "silent": frozenset(n - 1 for n in silent),
    }
    with attending(decoder, view=Hiding(inserted, shown, layers)):
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
    # (H,) score of an attention sink, which receives attention besides all tokens
    s_aux: torch.Tensor | None = None,
    dropout: float = 0.0,
    **others,
) -> tuple[torch.Tensor, None]:
    """Return the outputs (B, T, H, D) of a layer's heads, and no weights, as
    transformers requires.

    The model's mask is ignored: tokens attend to all earlier ones or to a window of
    them, and padding on the right changes no other token. Raises InputError for an
    argument that this attention does not support, and StopForward after the last layer
    that is recorded.
    """
    _refuse_unknown(module, others)
    recording, view, step = _active.get()
    layer = module.layer_idx
    tokens = key.shape[2]
    if step and softcap is None and s_aux is None:
        return step.attend(query, key, value, sliding_window, scaling), None
    mask = step.mask(tokens, sliding_window, query.dtype) if step else None

    recorded = None
    is_last, has_output = False, True
    if recording:
        recording.windows[layer] = sliding_window
        recorded = recording if layer in recording.index else None
        is_last = layer == max(recording.index, default=None)
        has_output = recording.with_output or not is_last
        if recording.uniform:
            query, value, s_aux = query * 0, value * 0, None

    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    # CPUs do not sum products of bfloat16 in float32.
    if query.device.type == "cpu":
        query, key = query.float(), key.float()
    # Scaling the queries is faster than scaling all scores. It is done if it is exact.
    power_of_two = math.frexp(scaling)[0] == 0.5
    if query.dtype == torch.float32 or power_of_two:
        query = query * scaling
        scaling = 1.0
    grouped = query.unflatten(1, (key.shape[1], -1))  # (B, K, groups, T, D)
    values = value.flatten(0, 1)
    mixed = []
    blocks = score_blocks(grouped, key, scaling, sliding_window, softcap, mask)
    for start, first, scores in blocks:
        stop = start + scores.shape[2]
        if view:
            view.change("hidden", layer, scores, start, first, -torch.inf)
        weights = softmax_weights(scores, s_aux)
        if view:
            view.change("silent", layer, weights, start, first, 0.0)
        if has_output:
            by_key_head = weights.to(value.dtype).view(len(values), -1, stop - first)
            outputs = by_key_head @ values[:, first:stop]
            mixed.append(outputs.view(*query.shape[:2], -1, value.shape[-1]))
        if recorded:
            recorded.add(layer, zero_own_(weights, start - first), start, first)
    # (B, T, H, D)
    output = torch.cat(mixed, 2).transpose(1, 2) if has_output else torch.empty(0)
    if recorded:
        recorded.values[layer], recorded.output = value, output
    if is_last:
        raise StopForward
    return output.contiguous(), None


def _refuse_unknown(module, keywords: dict[str, Any]) -> None:
    """Raise InputError for a keyword that this attention does not support."""
    unknown = sorted(
        name
        for name, value in keywords.items()
        if value is not None and name not in HARMLESS
    )
    if unknown:
        raise InputError(
            f"{type(module).__name__} uses {', '.join(unknown)}, which this attention"
            " lacks"
        )


def _no_mask(
    *,
    mask_function: Callable,
    config,
    local_size: int | None = None,
    use_vmap: bool = False,
    **_,
) -> None:
    """Build no mask, because `score_blocks` hides later tokens.

    local_size: the sliding window in tokens, which the recording notes; None: there is
    none. Raises InputError if the model's mask is neither causal nor a causal window,
    such as a mask of chunks or of images.
    """
    recording, _, step = _active.get()
    # The size is 0 in models whose windows are switched off; no layer uses the mask.
    if step or local_size == 0:
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
        pair = (torch.tensor(query), torch.tensor(key))
        if use_vmap or bool(mask_function(torch.tensor(0), 0, *pair)) != expected:
            raise InputError(
                f"{config.model_type} masks its attention in a way that is not"
                " supported: only causal masks and sliding windows are"
            )
    if recording and local_size:
        recording.masks.add(local_size)


AttentionInterface.register(ATTENTION_NAME, _attend)
AttentionMaskInterface.register(ATTENTION_NAME, _no_mask)
