"""Compute attention in a decoding step, in which each row has one new token."""

import torch


class Step:
    """A decoding step of B rows, whose masks are computed once for all layers.

    positions: (B,) of the new tokens; each attends to the positions up to its own.
    """

    def __init__(self, positions: torch.Tensor):
        self.last = positions[:, None, None, None]
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def mask(self, tokens: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return the mask (B, 1, 1, T) that is added to scores: 0 for the positions
        that a row's new token attends to, else -inf.

        tokens: T, the number of keys. window: how many tokens the new one attends to,
        with itself; None: all.
        """
        known = self.masks.get((tokens, window))
        if known is not None:
            return known
        position = torch.arange(tokens, device=self.last.device)
        hidden = position > self.last
        if window:
            hidden |= position <= self.last - window
        mask = torch.zeros_like(hidden, dtype=dtype)
        mask.masked_fill_(hidden, -torch.inf)
        self.masks[tokens, window] = mask
        return mask

    def attend(
        self,
        query: torch.Tensor,  # (B, H, 1, D)
        key: torch.Tensor,  # (B, K, T, D)
        value: torch.Tensor,
        window: int | None,
        scaling: float | None,
    ) -> torch.Tensor:
        """Return the heads' outputs, (B, 1, H, D).

        Scores are summed in float32. Neither keys nor values are copied, whatever their
        dtype.
        """
        # (B, K, groups, D): the queries of a key head, in place of a sequence, so that
        # keys need not be repeated for each of them
        rows = query.unflatten(1, (key.shape[1], -1)).squeeze(3)
        mask = self.mask(key.shape[2], window, query.dtype)
        output = torch.nn.functional.scaled_dot_product_attention(
            rows, key, value, attn_mask=mask, scale=scaling
        )
        return output.flatten(1, 2).unsqueeze(1)
