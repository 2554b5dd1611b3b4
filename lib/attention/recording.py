"""The data that the attention function fills in a forward pass."""

from dataclasses import dataclass, field

import torch


class StopForward(Exception):
    """Raised in a hook or a layer to end a forward pass whose other layers are not
    needed; `attending` and `lib.arm.mlp_activations.watched` catch it.
    """


@dataclass
class Recording:
    """What a forward pass records, and in which layers; layers count from zero."""

    # (B, L, H, R, T): the attention that each token receives from later queries, summed
    sums: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    # (B, R, T): 1 for the queries of each set; None: one set with all queries
    rows: torch.Tensor | None = None
    index: dict[int, int] = field(default_factory=dict)  # layer -> its index in L
    last: int | None = None  # layer after which the forward pass ends; None: all run
    # The values (B, K, T, D) and the outputs (B, T, H, D) of each layer's heads; None:
    # not recorded.
    values: dict[int, torch.Tensor] | None = None
    outputs: dict[int, torch.Tensor] | None = None
    # The sliding windows, in tokens, for which the model built masks, and the window of
    # each layer; None: all earlier tokens.
    masks: set[int] = field(default_factory=set)
    windows: dict[int, int | None] = field(default_factory=dict)

    def keep(self, layer: int, values: torch.Tensor, outputs: torch.Tensor) -> None:
        """Store the values and outputs of a layer's heads, if they are recorded."""
        if self.values is not None:
            self.values[layer] = values
        if self.outputs is not None:
            self.outputs[layer] = outputs

    def add(self, layer: int, weights: torch.Tensor, start: int, first: int) -> None:
        """Add the attention weights (B, H, Q, keys) of a block of queries to `sums`,
        without the attention of tokens to themselves, which is set to 0 in `weights`.

        start, first: positions of the block's first query and of its first key.
        """
        slot = self.index[layer]
        stop = start + weights.shape[2]
        # Subtracted from the sum, it would leave only rounding errors of what a token
        # receives that gives nearly all of its attention to itself.
        weights.diagonal(start - first, -2, -1).zero_()
        if self.rows is None:
            columns = weights.sum(-2, keepdim=True)
        else:
            columns = self.rows[:, None, :, start:stop] @ weights
        # add_ instead of +=, which would copy the result onto itself.
        self.sums[:, slot, :, :, first:stop].add_(columns)  # (B, H, R, keys)
