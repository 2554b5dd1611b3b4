"""Who sees the inserted tokens where: in which layers later tokens attend to them, and whether to their values too.

    with hiding(model, spans, [1]):  # in layer 1 no later token sees what was inserted
        model(input_ids)

Positions stay as they are, and the inserted tokens themselves see all that comes before them in every layer; only what
the tokens after them may see is changed. It works through the project's attention function, so for every family alike.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention.function import PROMPT, attending, view
from lib.errors import InputError


@dataclass(frozen=True)
class _Hiding:
    """The spans of the rows' inserted tokens, and the layers that hide them or silence them, counted from 1."""

    starts: torch.Tensor  # (B, 1, 1) positions
    stops: torch.Tensor
    hidden: frozenset[int]
    silent: frozenset[int]

    def _cut(self, block: torch.Tensor, start: int, first: int) -> torch.Tensor:
        """Return (B, 1, Q, keys), whether a later token would look at an inserted one."""
        queries = torch.arange(start, start + block.shape[2], device=block.device)[:, None]
        keys = torch.arange(first, first + block.shape[3], device=block.device)
        cut = ((queries >= self.stops) & (keys >= self.starts) & (keys < self.stops))[:, None]
        return cut[: len(block)]  # what all rows begin with may go in as one

    def change_scores(self, layer: int, scores: torch.Tensor, start: int, first: int) -> None:
        if layer in self.hidden:
            scores.masked_fill_(self._cut(scores, start, first), -torch.inf)

    def change_weights(self, layer: int, weights: torch.Tensor, start: int, first: int) -> None:
        if layer in self.silent:
            weights.masked_fill_(self._cut(weights, start, first), 0.0)


@contextlib.contextmanager
def hiding(
    model: PreTrainedModel, spans: Sequence[slice], hidden: Collection[int] = (), silent: Collection[int] = ()
) -> Iterator[None]:
    """Hide each row's inserted tokens from later tokens in the `hidden` layers until the block ends.

    In the `silent` layers they are seen as keys, which enlarges the softmax's denominator, but their values count as
    zero. spans: one per row of the batch, in positions of the whole prompt, also where a cache holds its beginning.
    Layers count from 1. Raises InputError for a layer that the model lacks.
    """
    decoder = model.get_decoder()
    last = decoder.config.num_hidden_layers
    if missing := sorted(layer for layer in {*hidden, *silent} if not 1 <= layer <= last):
        raise InputError(f"hiding in layers {missing} was asked for; the model has layers 1 to {last}")
    starts, stops = (
        torch.tensor(ends, device=decoder.device)[:, None, None]
        for ends in ([span.start for span in spans], [span.stop for span in spans])
    )
    token = view.set(_Hiding(starts, stops, frozenset(hidden), frozenset(silent)))
    try:
        with attending(decoder, PROMPT):
            yield
    finally:
        view.reset(token)
