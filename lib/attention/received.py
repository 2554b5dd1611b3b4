"""Received attention of any layer and head, without ever holding a T x T array of each.

For attention A (rows are queries) token j receives the mean of A[i, j] over the later
tokens i > j (Bogdan et al. 2025, arXiv 2506.19143; the quantity of the paper's Figs.
9-11 and 13-20). `observe_uniform` says what it would be if attention were spread evenly
over all that a token may see: arithmetic, without any weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention.function import (
    Recording,
    attending,
    device_of,
    on_device,
    refuse_without_attention,
)
from lib.errors import InputError


@dataclass(frozen=True)
class Observation:
    """What one forward showed of its layers, in the order asked for; `values` and
    `outputs` only if asked for.
    """

    # (B, L, H, R, T) float32, NaN where undefined; R sets of queries
    received: torch.Tensor
    # L times (B, K, T, D): K key heads, each serving H / K heads
    values: list[torch.Tensor]
    # L times (B, T, H, D): what each head puts out, before the output projection
    outputs: list[torch.Tensor]


def received_attention(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int] | None = None,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return what each token receives, float32 (B, L, H, T), NaN for the last token and
    padding.

    input_ids: (B, T) padded on the right (exact for a causal model), or (T,); layers:
    counted from 1, None for all; lengths: (B,) real tokens per row. Costs one forward
    up to the last layer asked for and O(T) memory. Raises InputError for a layer the
    model lacks, a prompt longer than its context, and bad lengths.
    """
    # A copy, since what inference mode made cannot be written to.
    return observe(model, input_ids, layers, lengths).received.squeeze(3).clone()


@torch.inference_mode()
def observe(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int] | None = None,
    lengths: torch.Tensor | None = None,
    *,
    queries: torch.Tensor | None = None,
    values: bool = False,
    outputs: bool = False,
) -> Observation:
    """Return received attention as `received_attention` does and, if asked for, values
    and head outputs.

    queries: (B, R, T) bool, each of the R means is taken over these later tokens alone
    (None: one mean over all); a token after the last of them receives NaN.
    """
    decoder = model.get_decoder()
    if layers is None:
        layers = range(1, decoder.config.num_hidden_layers + 1)
    input_ids = on_device(model, torch.atleast_2d(input_ids))
    rows = _queries(decoder, input_ids, layers, lengths, queries)
    heads = decoder.config.num_attention_heads
    shape = (len(input_ids), len(layers), heads, *rows.shape[1:])
    index = {layer - 1: place for place, layer in enumerate(layers)}
    every_query_counts = rows.shape[1] == 1 and bool(rows.all())
    recording = Recording(
        sums=torch.zeros(shape, device=device_of(model)),
        rows=None if every_query_counts else rows,
        index=index,
        last=max(index),
        values={} if values else None,
        outputs={} if outputs else None,
    )
    with attending(decoder, recording=recording):
        decoder(input_ids=input_ids, use_cache=False)
    return Observation(
        recording.sums / _later(rows)[:, None, None],
        _in_order(recording.values, index),
        _in_order(recording.outputs, index),
    )


@torch.inference_mode()
def observe_uniform(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int],
    lengths: torch.Tensor | None = None,
    *,
    queries: torch.Tensor | None = None,
    values: bool = False,
) -> Observation:
    """Return what `observe` would if every score of the model were the same; only its
    windows and heads matter.

    A query i that sees n = min(i + 1, window) tokens gives 1 / n to each. Values are
    all zero: there are none.
    """
    decoder = model.get_decoder()
    input_ids = on_device(model, torch.atleast_2d(input_ids))
    rows = _queries(decoder, input_ids, layers, lengths, queries)
    tokens = input_ids.shape[1]
    # Each layer says in a forward how many tokens it sees.
    recording = Recording()
    with attending(decoder, recording=recording):
        decoder(input_ids=input_ids[:1, :1], use_cache=False)

    later = _later(rows)
    received = []
    for layer in layers:
        window = recording.windows[layer - 1] or tokens
        received.append(_sums_of_even(rows, window).float() / later)

    heads = decoder.config.num_attention_heads
    stacked = torch.stack(received, 1)[:, :, None]
    stacked = stacked.expand(-1, -1, heads, -1, -1)  # (B, L, H, R, T)
    no_values = torch.zeros(len(input_ids), 1, tokens, 1)
    return Observation(stacked, [no_values] * len(received), [])


def _sums_of_even(rows: torch.Tensor, window: int) -> torch.Tensor:
    """Return (B, R, T), float64, what evenly spread queries give to each token."""
    tokens = rows.shape[2]
    places = torch.arange(tokens, device=rows.device)
    later = places + 1
    shares = rows / later.clamp(max=window)
    # What the queries before each place give to one token that they see.
    sums = shares.double().cumsum(2)
    before = torch.nn.functional.pad(sums, (1, 0))
    # The first query that does not see the token.
    last = (places + window).clamp(max=tokens)
    return before[..., last] - before[..., later]


def _in_order(
    kept: dict[int, torch.Tensor] | None, index: dict[int, int]
) -> list[torch.Tensor]:
    """Return what was kept of each layer, in the order asked for."""
    return [kept[layer] for layer in index] if kept else []


def _later(rows: torch.Tensor) -> torch.Tensor:
    """Return (B, R, T), how many queries that count come after each token, NaN for
    none.
    """
    later = rows.flip(2).cumsum(2).flip(2) - rows
    return later.masked_fill(later == 0, torch.nan)


def _queries(
    decoder: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int],
    lengths,
    queries: torch.Tensor | None,
) -> torch.Tensor:
    """Return (B, R, T), 1.0 for each query that counts: a real token that was asked
    for. Raises InputError.
    """
    batch, tokens = input_ids.shape
    last = decoder.config.num_hidden_layers
    missing = [layer for layer in layers if not 1 <= layer <= last]
    if missing or not layers:
        raise InputError(
            f"layers {missing or layers} asked for; the model has layers 1 to {last}"
        )
    refuse_without_attention(decoder, layers)
    if input_ids.numel() == 0:
        raise InputError("received attention of an empty batch was asked for")
    context = decoder.config.max_position_embeddings
    if tokens > context:
        raise InputError(
            f"a prompt of {tokens} tokens is longer than the model's context of"
            f" {context}"
        )
    if lengths is None:
        lengths = [tokens] * batch
    lengths = torch.as_tensor(lengths)
    is_possible = (lengths >= 1) & (lengths <= tokens)
    if lengths.shape != (batch,) or not bool(is_possible.all()):
        raise InputError(
            f"lengths must be {batch} numbers from 1 to {tokens}, not"
            f" {lengths.tolist()}"
        )
    place = torch.arange(tokens, device=input_ids.device)
    real = (place < lengths.to(place.device)[:, None])[:, None]
    return (real if queries is None else real & queries.to(real.device)).float()
