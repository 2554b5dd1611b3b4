"""Attention in a decoding step: each row has one query, at its own position."""

import torch


class Step:
    """Which positions the rows of a decoding step attend to, computed once for all
    layers.
    """

    def __init__(self, positions: torch.Tensor):
        # (B, 1, 1, 1) the new tokens' positions
        self.last = positions[:, None, None, None]
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}

    def mask(self, tokens: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return the mask (B, 1, 1, T) that is added to scores: 0 for the positions
        that a row's new token attends to, else -inf.
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

        Scores are summed in float32; neither keys nor values are copied, whatever their
        dtype.
        """
        # (B, K, groups, D): a key head's queries side by side
        rows = query.unflatten(1, (key.shape[1], -1)).squeeze(3)
        mask = self.mask(key.shape[2], window, query.dtype)
        output = torch.nn.functional.scaled_dot_product_attention(
            rows, key, value, attn_mask=mask, scale=scaling
        )
        return output.flatten(1, 2).unsqueeze(1)
