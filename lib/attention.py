"""Received attention of any layer and head, without ever holding a T x T array per head and layer.

For attention A (rows are queries) token j receives the mean of A[i, j] over the later tokens i > j
(Bogdan et al. 2025, arXiv 2506.19143; the quantity of the paper's Figs. 9-11 and 13-20).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention_function import Recording, record
from lib.errors import InputError

CHECK_TOKENS = 10
# Families that combine several softmax maps into one head: no single map is what a token receives.
COMBINED = ("diffllama",)
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}  # of the hidden state's norm


@dataclass(frozen=True)
class Observation:
    """What one forward showed of its layers, in the order asked for; `values` and `outputs` only if kept."""

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
    keep: bool = False,
) -> Observation:
    """Return received attention as `received_attention` does and, with `keep`, values and head outputs.

    positions: (B, T) rotary positions instead of 0 to T - 1; queries: (B, R, T) bool, each of the R means is taken
    over these later tokens alone (None: one mean over all); a token after the last of them receives NaN.
    """
    decoder = model.get_decoder()
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    layers = list(range(1, len(decoder.layers) + 1)) if layers is None else list(layers)
    rows = _rows(_check(decoder, input_ids, layers, lengths), queries, input_ids)
    batch, tokens = input_ids.shape
    heads = decoder.config.num_attention_heads
    sums = torch.zeros(batch, len(layers), heads, rows.shape[1], tokens, device=model.device)
    index = {layer - 1: i for i, layer in enumerate(layers)}
    every = rows.shape[1] == 1 and bool(rows.all())
    recording = Recording(sums, None if every else rows, index, max(index), keep)
    record(decoder, input_ids, recording, positions)
    later = rows.flip(2).cumsum(2).flip(2) - rows  # (B, R, T) how many queries that count come later
    later[later == 0] = torch.nan
    values, outputs = ([kept[i] for i in index] if keep else [] for kept in (recording.values, recording.outputs))
    return Observation(sums / later[:, None, None], values, outputs)


def _rows(lengths: torch.Tensor, queries: torch.Tensor | None, input_ids: torch.Tensor) -> torch.Tensor:
    """Return (B, R, T), 1.0 for each query that counts: a real token that was asked for."""
    real = (torch.arange(input_ids.shape[1], device=input_ids.device) < lengths[:, None])[:, None]
    return (real if queries is None else real & queries.to(real.device)).float()


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


def check_attention(model: PreTrainedModel) -> None:
    """Verify on ten tokens that this module computes what the model's own attention does, in every layer.

    Raises InputError naming the model type when it does not: layers without softmax attention, another mask,
    an ingredient that is unknown here; and when the weights give NaN.
    """
    decoder, family = model.get_decoder(), model.config.model_type
    if family in COMBINED:
        raise InputError(f"model type {family} is not supported: its heads combine several attention matrices")
    count, heads = len(decoder.layers), decoder.config.num_attention_heads
    ids = torch.arange(1, CHECK_TOKENS + 1, device=model.device)[None]
    with torch.inference_mode():
        own = decoder(input_ids=ids, use_cache=False).last_hidden_state
    if not bool(own.isfinite().all()):
        raise InputError(f"the weights of this {family} model give NaN or infinity: damaged, or wrong for {own.dtype}")
    sums = torch.zeros(1, count, heads, 1, CHECK_TOKENS, device=model.device)
    recording = Recording(sums, None, {i: i for i in range(count)}, last=None, keep=False)
    try:
        found = record(decoder, ids, recording).last_hidden_state
    except Exception as error:  # a model's own code may fail in any way on what it does not expect
        raise InputError(f"model type {family} is not supported: {error}") from error
    if silent := [i + 1 for i in range(count) if i not in recording.row_error]:
        raise InputError(f"model type {family} is not supported: layers {silent} show no attention matrix")
    if unseen := [i + 1 for i in range(count) if recording.windows[i] != _window(decoder.config, recording, i)]:
        raise InputError(f"model type {family} is not supported: layers {unseen} do not say how far they look back")
    rows, state = max(recording.row_error.values()), float((found - own).norm() / own.norm())
    if not (rows < 1e-3 and state < TOLERANCE[own.dtype]):
        raise InputError(
            f"model type {family} is not supported: rows of attention miss one by {rows:.1g} "
            f"and the hidden state differs by {state:.1g} from the model's own attention"
        )


def _window(config, recording: Recording, layer: int) -> int | None:
    """Return how many tokens a layer, counted from 0, sees according to the masks made; None for all before it."""
    kinds = getattr(config, "layer_types", None)
    slides = recording.masks and (not kinds or kinds[layer] == "sliding_attention")
    return max(recording.masks) if slides else None
