"""Compute received attention of any layer and head, without a T x T array in memory.

For attention A (rows are queries), token j receives the mean of A[i, j] over the later
tokens i > j (Bogdan et al. 2025, arXiv 2506.19143; the quantity of the paper's Figs.
9-11 and 13-20). For comparison, `observe` also computes it for uniform attention, in
which a query gives the same weight to all tokens that it attends to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention.custom_attention import Recording, attending
from lib.attention.model_properties import device_of, longest_context, on_device
from lib.errors import InputError


@dataclass(frozen=True)
class Observation:
    """The results of one forward pass over B prompts of T tokens, for L layers in the
    requested order.

    received: (B, L, H, R, T) float32, by each of R sets of queries; NaN where it is
    undefined. values: a tensor (B, K, T, D) for each layer, of K key heads, which serve
    H / K heads each. output: (B, T, H, D), the outputs of the deepest layer's heads
    before the output projection; empty if they were not requested.
    """

    received: torch.Tensor
    values: list[torch.Tensor]
    output: torch.Tensor


def received_attention(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int] | None = None,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the attention that each token receives: the mean weight, from 0 to 1, that
    all later tokens give to it.

    The result is float32 (B, L, H, T): B prompts, L layers, H heads and T tokens. It is
    NaN for the last token of a row and for padding. A token's attention to itself does
    not count.

    input_ids: (B, T) padded on the right (which is exact for a causal model), or (T,).
    layers: counted from 1; None: all. lengths: (B,) tokens of each row without padding;
    None: no row is padded. Takes one forward pass up to the last requested layer, and
    O(T) memory. Raises InputError for a layer that the model lacks, a prompt longer
    than its context, and invalid lengths.
    """
    # A copy, because a tensor of inference mode cannot be written to.
    return observe(model, input_ids, layers, lengths).received.squeeze(3).clone()


@torch.inference_mode()
def observe(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int] | None = None,
    lengths: torch.Tensor | None = None,
    *,
    queries: torch.Tensor | None = None,
    uniform: bool = False,
    with_output: bool = False,
) -> Observation:
    """Return received attention as `received_attention` does, for R sets of queries,
    with the heads' values.

    queries: (B, R, T) bool; the mean of a set is only over its tokens; None: one set
    with all tokens. A token after the last one of a set receives NaN. uniform: all
    scores are equal, and all values zero. with_output: the heads' outputs in the
    deepest layer, too.
    """
    decoder = model.get_decoder()
    if layers is None:
        layers = range(1, decoder.config.num_hidden_layers + 1)
    input_ids = on_device(model, torch.atleast_2d(input_ids))
    rows = _queries(decoder, input_ids, layers, lengths, queries)
    heads = decoder.config.num_attention_heads
    shape = (len(input_ids), len(layers), heads, *rows.shape[1:])
    index = {layer - 1: slot for slot, layer in enumerate(layers)}
    recording = Recording(
        sums=torch.zeros(shape, device=device_of(model)),
        rows=rows,
        index=index,
        uniform=uniform,
        with_output=with_output,
    )
    with attending(decoder, recording=recording):
        decoder(input_ids=input_ids, use_cache=False)
    return Observation(
        recording.sums / _later(rows)[:, None, None],
        [recording.values[layer] for layer in index],
        recording.output,
    )


def _later(rows: torch.Tensor) -> torch.Tensor:
    """Return how many queries of each set come after each token, (B, R, T); NaN instead
    of 0, because there is no mean over them.
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
    """Return the sets of queries as (B, R, T): 1.0 for each requested token that is not
    padding, else 0.0.

    Raises InputError for arguments of `observe` that the model rules out.
    """
    batch, tokens = input_ids.shape
    last = decoder.config.num_hidden_layers
    missing = [layer for layer in layers if not 1 <= layer <= last]
    if missing or not layers:
        raise InputError(
            f"layers {missing or layers} were requested; the model has layers 1 to"
            f" {last}"
        )
    if len(set(layers)) < len(layers):
        raise InputError(f"layers {list(layers)} were requested: give each only once")
    if input_ids.numel() == 0:
        raise InputError("the batch is empty, so no attention can be measured")
    context = longest_context(decoder.config)
    if context and tokens > context:
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
    positions = torch.arange(tokens, device=input_ids.device)
    is_token = (positions < lengths.to(positions.device)[:, None])[:, None]
    if queries is None:
        return is_token.float()
    return (is_token & queries.to(is_token.device)).float()
