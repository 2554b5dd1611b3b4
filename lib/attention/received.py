"""Received attention of any layer and head, without ever holding a T x T array per head
and layer.

For attention A (rows are queries) token j receives the mean of A[i, j] over the later
tokens i > j (Bogdan et al. 2025, arXiv 2506.19143; the quantity of the paper's Figs.
9-11 and 13-20). `observe_uniform` says what it would be if attention were spread evenly
over all that a token may see: arithmetic, without any weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention.function import Recording, attending
from lib.errors import InputError


@dataclass(frozen=True)
class Observation:
    """What one forward showed of its layers, in the order asked for; `values` and
    `outputs` only if asked for.
    """

    received: (
        torch.Tensor
    )  # (B, L, H, R, T) float32, NaN where undefined; R sets of queries
    values: list[
        torch.Tensor
    ]  # L times (B, K, T, D): K key heads, each serving H / K heads
    outputs: list[
        torch.Tensor
    ]  # L times (B, T, H, D): what each head puts out, before the output projection


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
    positions: torch.Tensor | None = None,
    queries: torch.Tensor | None = None,
    values: bool = False,
    outputs: bool = False,
) -> Observation:
    """Return received attention as `received_attention` does and, if asked for, values
    and head outputs.

    positions: (B, T) rotary positions instead of 0 to T - 1; queries: (B, R, T) bool,
    each of the R means is taken over these later tokens alone (None: one mean over
    all); a token after the last of them receives NaN.
    """
    decoder = model.get_decoder()
    layers = (
        list(range(1, decoder.config.num_hidden_layers + 1))
        if layers is None
        else list(layers)
    )
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    rows, given = _queries(decoder, input_ids, layers, lengths, queries), {}
    if positions is not None:
        # Without a mask of its own, a jump in positions would pass for a second prompt
        # packed into the row.
        given = {
            "position_ids": positions.to(model.device),
            "attention_mask": torch.ones_like(input_ids),
        }
    shape = (
        len(input_ids),
        len(layers),
        decoder.config.num_attention_heads,
        *rows.shape[1:],
    )
    every, index = (
        rows.shape[1] == 1 and bool(rows.all()),
        {layer - 1: i for i, layer in enumerate(layers)},
    )
    sums = torch.zeros(shape, device=model.device)
    recording = Recording(sums, None if every else rows, index, max(index))
    recording.values, recording.outputs = (
        {} if values else None,
        {} if outputs else None,
    )
    with attending(decoder, recording=recording):
        decoder(input_ids=input_ids, use_cache=False, **given)
    found = (
        [kept[i] for i in index] if kept else []
        for kept in (recording.values, recording.outputs)
    )
    return Observation(sums / _later(rows)[:, None, None], *found)


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
    decoder, recording = model.get_decoder(), Recording()
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    rows, tokens = (
        _queries(decoder, input_ids, layers, lengths, queries),
        input_ids.shape[1],
    )
    with attending(
        decoder, recording=recording
    ):  # each layer says in a forward how many tokens it sees
        decoder(input_ids=input_ids[:1, :1], use_cache=False)
    places, received = torch.arange(tokens, device=model.device), []
    for window in (recording.windows[layer - 1] or tokens for layer in layers):
        shares = rows / (places + 1).clamp(max=window)
        given = torch.nn.functional.pad(
            shares.double().cumsum(2), (1, 0)
        )  # by the queries before each place
        last = (places + window).clamp(
            max=tokens
        )  # the first query that does not see it
        received.append(
            (given[..., last] - given[..., places + 1]).float() / _later(rows)
        )
    heads = decoder.config.num_attention_heads
    stacked = torch.stack(received, 1)[:, :, None].expand(
        -1, -1, heads, -1, -1
    )  # (B, L, H, R, T)
    return Observation(
        stacked, [torch.zeros(len(input_ids), 1, tokens, 1)] * len(received), []
    )


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
    (batch, tokens), last = input_ids.shape, decoder.config.num_hidden_layers
    if (missing := [layer for layer in layers if not 1 <= layer <= last]) or not layers:
        raise InputError(
            f"layers {missing or layers} asked for; the model has layers 1 to {last}"
        )
    if input_ids.numel() == 0:
        raise InputError("received attention of an empty batch was asked for")
    context = decoder.config.max_position_embeddings
    if tokens > context:
        raise InputError(
            f"a prompt of {tokens} tokens is longer than the model's context of"
            f" {context}"
        )
    lengths = torch.as_tensor(
        [tokens] * batch if lengths is None else lengths, device=input_ids.device
    )
    if (
        lengths.shape != (batch,)
        or bool((lengths < 1).any())
        or bool((lengths > tokens).any())
    ):
        raise InputError(
            f"lengths must be {batch} numbers from 1 to {tokens}, not"
            f" {lengths.tolist()}"
        )
    real = (torch.arange(tokens, device=input_ids.device) < lengths[:, None])[:, None]
    return (real if queries is None else real & queries.to(real.device)).float()
