"""Received attention of any layer and head, without ever holding a T x T array per head and layer.

For attention A (rows are queries) token j receives the mean of A[i, j] over the later tokens i > j
(Bogdan et al. 2025, arXiv 2506.19143; the quantity of the paper's Figs. 9-11 and 13-20). `observe_uniform` says
what it would be if attention were spread evenly over all that a token may see: arithmetic, without any weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention.function import Recording, record
from lib.errors import InputError


@dataclass(frozen=True)
class Observation:
    """What one forward showed of its layers, in the order asked for; `values` and `outputs` only if asked for."""

    received: torch.Tensor  # (B, L, H, R, T) float32, NaN where undefined; R sets of queries
    values: list[torch.Tensor]  # L times (B, K, T, D): K key heads, each serving H / K heads
    outputs: list[torch.Tensor]  # L times (B, T, H, D): what each head puts out, before the output projection


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
    return observe(model, input_ids, layers, lengths).received.squeeze(3)


def observe(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int] | None = None,
    lengths: torch.Tensor | None = None,
    *,
    positions: torch.Tensor | None = None,
    queries: torch.Tensor | None = None,
    values: bool = False,
    outputs: bool = False,
) -> Observation:
    """Return received attention as `received_attention` does and, if asked for, values and head outputs.

    positions: (B, T) rotary positions instead of 0 to T - 1; queries: (B, R, T) bool, each of the R means is taken
    over these later tokens alone (None: one mean over all); a token after the last of them receives NaN.
    """
    decoder = model.get_decoder()
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    layers = list(range(1, decoder.config.num_hidden_layers + 1)) if layers is None else list(layers)
    rows = _query_rows(_check(decoder, input_ids, layers, lengths), queries, input_ids)
    batch, tokens = input_ids.shape
    heads = decoder.config.num_attention_heads
    sums = torch.zeros(batch, len(layers), heads, rows.shape[1], tokens, device=model.device)
    index = {layer - 1: i for i, layer in enumerate(layers)}
    every = rows.shape[1] == 1 and bool(rows.all())
    values_of, outputs_of = ({} if asked else None for asked in (values, outputs))
    recording = Recording(sums, None if every else rows, index, max(index), values_of, outputs_of)
    record(decoder, input_ids, recording, positions)
    found = ([by_layer[i] for i in index] if by_layer else [] for by_layer in (values_of, outputs_of))
    return Observation(sums / _later_queries(rows)[:, None, None], *found)


def observe_uniform(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int],
    lengths: torch.Tensor,
    *,
    queries: torch.Tensor | None = None,
    values: bool = False,
) -> Observation:
    """Return what `observe` would if every score of the model were the same; only its windows and heads matter.

    A query i that sees n = min(i + 1, window) tokens gives 1 / n to each. Values are all zero: there are none.
    """
    decoder = model.get_decoder()
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    rows = _query_rows(lengths.to(model.device), queries, input_ids)  # (B, R, T)
    batch, tokens = input_ids.shape
    places = torch.arange(tokens, device=model.device)
    received = []
    for window in _windows(decoder, layers):
        shares = rows / (places + 1).clamp(max=window or tokens)
        given = torch.nn.functional.pad(shares.double().cumsum(2), (1, 0))  # by the queries before each place
        last = (places + (window or tokens)).clamp(max=tokens)  # the first query that does not see it
        received.append((given[..., last] - given[..., places + 1]).float() / _later_queries(rows))
    heads = decoder.config.num_attention_heads
    stacked = torch.stack(received, 1)[:, :, None].expand(-1, -1, heads, -1, -1)  # (B, L, H, R, T)
    return Observation(stacked, [torch.zeros(batch, 1, tokens, 1)] * len(layers), [])


def _windows(decoder: PreTrainedModel, layers: Sequence[int]) -> list[int | None]:
    """Return how many tokens each layer sees, as the model itself says in a forward; None: all before."""
    count, heads = decoder.config.num_hidden_layers, decoder.config.num_attention_heads
    sums = torch.zeros(1, count, heads, 1, 1, device=decoder.device)
    recording = Recording(sums, None, {i: i for i in range(count)}, last=None)
    record(decoder, torch.ones(1, 1, dtype=torch.long, device=decoder.device), recording)
    return [recording.windows[layer - 1] for layer in layers]


def _later_queries(rows: torch.Tensor) -> torch.Tensor:
    """Return (B, R, T), how many queries that count come after each token, NaN for none."""
    later = rows.flip(2).cumsum(2).flip(2) - rows
    return later.masked_fill(later == 0, torch.nan)


def _query_rows(lengths: torch.Tensor, queries: torch.Tensor | None, input_ids: torch.Tensor) -> torch.Tensor:
    """Return (B, R, T), 1.0 for each query that counts: a real token that was asked for."""
    real = (torch.arange(input_ids.shape[1], device=input_ids.device) < lengths[:, None])[:, None]
    return (real if queries is None else real & queries.to(real.device)).float()


def _check(decoder, input_ids: torch.Tensor, layers: list[int], lengths) -> torch.Tensor:
    batch, tokens = input_ids.shape
    last = decoder.config.num_hidden_layers
    missing = [layer for layer in layers if not 1 <= layer <= last]
    if missing or not layers:
        raise InputError(f"layers {missing or layers} asked for; the model has layers 1 to {last}")
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
