"""What a forward pass records of its attention, and what it hides from later tokens."""

from dataclasses import dataclass, field

import torch


class StopForward(Exception):
    """Ends a forward pass when nothing more is needed of it; who raises it also
    arranges for it to be caught, as `attending` does.
    """


@dataclass
class Recording:
    """What is filled in while a forward runs; layers count from zero."""

    # (B, L, H, R, T) of columns below the diagonal
    sums: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    # (B, R, T) 1 for queries that count in each set of R; None: one set, and all do
    rows: torch.Tensor | None = None
    index: dict[int, int] = field(default_factory=dict)  # layer -> position in L
    last: int | None = None  # layer that ends the forward; None: run to the end
    # What goes into each layer's heads and what comes out of them; None: not kept.
    values: dict[int, torch.Tensor] | None = None
    outputs: dict[int, torch.Tensor] | None = None
    # The sliding windows, in tokens, that the model made masks for, and those that each
    # layer passed on; None: all earlier tokens.
    masks: set[int] = field(default_factory=set)
    windows: dict[int, int | None] = field(default_factory=dict)

    def keep(self, layer: int, values: torch.Tensor, outputs: torch.Tensor) -> None:
        """Store the values and outputs of a layer's heads, if they are recorded."""
        if self.values is not None:
            self.values[layer] = values
        if self.outputs is not None:
            self.outputs[layer] = outputs

    def add(self, layer: int, weights: torch.Tensor, start: int, first: int) -> None:
        """Add a block's columns, below the diagonal and over the queries that count, to
        the running sums.
        """
        stop = start + weights.shape[2]
        slot = self.index[layer]
        # (B, H, 1, Q): what each token gives itself
        own = weights.diagonal(start - first, -2, -1).unsqueeze(2)
        if self.rows is None:
            columns = weights.sum(-2, keepdim=True)
        else:
            rows = self.rows[:, None, :, start:stop]  # (B, 1, R, Q)
            columns = rows @ weights
            own = rows * own
        # In place of += on an item, which copies the result onto itself.
        self.sums[:, slot, :, :, first:stop].add_(columns)  # (B, H, R, keys)
        self.sums[:, slot, :, :, start:stop].sub_(own)


@dataclass(frozen=True)
class Hiding:
    """The spans of the rows' inserted tokens, the part of each that stays visible, and
    the layers that hide or silence the rest, counted from zero.
    """

    # (2, B, 1, 1) the positions at which they start and stop
    inserted: torch.Tensor
    visible: torch.Tensor
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
        if layer not in self.layers[how]:
            return
        queries = torch.arange(start, start + block.shape[2], device=block.device)
        keys = torch.arange(first, first + block.shape[3], device=block.device)
        _, stops = self.inserted
        is_later = queries[:, None] >= stops
        is_inserted = _within(keys, self.inserted)
        is_visible = _within(keys, self.visible)
        cut = (is_later & is_inserted & ~is_visible)[:, None]
        # What all rows begin with may go in as one.
        block.masked_fill_(cut[: len(block)], value)


def _within(positions: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
    """Return whether positions (T,) lie in spans (2, B, 1, 1), as (B, 1, T)."""
    starts, stops = spans
    return (positions >= starts) & (positions < stops)
