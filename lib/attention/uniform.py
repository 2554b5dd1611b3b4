"""What attention shows that is spread evenly over all that a token may see: arithmetic, without any weights."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from lib.attention.function import Recording, record
from lib.attention.received import Observation, later_queries, query_rows


def observe_uniform(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    layers: Sequence[int],
    lengths: torch.Tensor,
    *,
    queries: torch.Tensor | None = None,
    keep: bool = False,
) -> Observation:
    """Return what `observe` would if every score of the model were the same; only its windows and heads matter.

    A query i that sees n = min(i + 1, window) tokens gives 1 / n to each. Values are all zero: there are none.
    """
    decoder = model.get_decoder()
    input_ids = torch.atleast_2d(input_ids).to(model.device)
    rows = query_rows(lengths.to(model.device), queries, input_ids)  # (B, R, T)
    batch, tokens = input_ids.shape
    places = torch.arange(tokens, device=model.device)
    received = []
    for window in _windows(decoder, layers):
        shares = rows / (places + 1).clamp(max=window or tokens)
        given = torch.nn.functional.pad(shares.double().cumsum(2), (1, 0))  # by the queries before each place
        last = (places + (window or tokens)).clamp(max=tokens)  # the first query that does not see it
        received.append((given[..., last] - given[..., places + 1]).float() / later_queries(rows))
    heads = decoder.config.num_attention_heads
    stacked = torch.stack(received, 1)[:, :, None].expand(-1, -1, heads, -1, -1)  # (B, L, H, R, T)
    return Observation(stacked, [torch.zeros(batch, 1, tokens, 1)] * len(layers), [])


def _windows(decoder: PreTrainedModel, layers: Sequence[int]) -> list[int | None]:
    """Return how many tokens each layer sees, as the model itself says in a forward; None: all before."""
    count, heads = decoder.config.num_hidden_layers, decoder.config.num_attention_heads
    sums = torch.zeros(1, count, heads, 1, 1, device=decoder.device)
    recording = Recording(sums, None, {i: i for i in range(count)}, last=None, keep=False)
    record(decoder, torch.ones(1, 1, dtype=torch.long, device=decoder.device), recording)
    return [recording.windows[layer - 1] for layer in layers]
