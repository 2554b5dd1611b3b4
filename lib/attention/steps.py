"""Attention in a step of generation: each row has one query, to its own positions.

What lies beyond a row's length is hidden by a mask, and read all the same. Where torch
has a kernel that stops at each row's length on the device, `RAGGED` takes that instead.
"""

import inspect
from typing import cast

import torch
from transformers import PreTrainedModel

# Whether steps stop at each row's length: the rows of `make gpu` decide (CLUSTER.md).
RAGGED = False
# What the kernel multiplies, and what it is asked that an older torch does not know.
RAGGED_DTYPES = (torch.float16, torch.bfloat16)
RAGGED_OPTIONS = {"enable_gqa", "scale", "seqused_k", "window_size"}


def stops_at_lengths(model: PreTrainedModel) -> bool:
    """Say whether a model's steps are to stop at each row's length, and can."""
    is_served = model.device.type == "cuda" and model.dtype in RAGGED_DTYPES
    if not RAGGED or not is_served:
        return False
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return False
    options = inspect.signature(varlen_attn).parameters
    return RAGGED_OPTIONS.issubset(options)


class Step:
    """Which positions the rows of a step see, worked out once for all layers.

    With a `capacity`, that of each row in a cache whose positions come before its
    heads, attention stops at each row's length.
    """

    def __init__(self, positions: torch.Tensor, capacity: int | None = None):
        # (B, 1, 1, 1) the new tokens' positions
        self.last = positions[:, None, None, None]
        self.masks: dict[tuple[int, int | None], torch.Tensor] = {}
        self.capacity = capacity
        if capacity:
            self.lengths = (positions + 1).int()
            # Where each row's query begins, and where its keys do.
            begins = torch.arange(
                len(positions) + 1, dtype=torch.int32, device=positions.device
            )
            self.query_begins = begins
            self.key_begins = begins * capacity

    def mask(self, tokens: int, window: int | None, dtype: torch.dtype) -> torch.Tensor:
        """Return what is added to scores, (B, 1, 1, T).

        It is 0 for the positions of a row that its new token sees.
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
        """Return what the heads put out, (B, 1, H, D).

        It sums scores in float32 and copies neither keys nor values, whatever their
        dtype.
        """
        if self.capacity:
            return self._attend_to_lengths(query, key, value, window, scaling)
        # (B, K, groups, D): a key head's queries side by side
        rows = query.unflatten(1, (key.shape[1], -1)).squeeze(3)
        mask = self.mask(key.shape[2], window, query.dtype)
        output = torch.nn.functional.scaled_dot_product_attention(
            rows, key, value, attn_mask=mask, scale=scaling
        )
        return output.flatten(1, 2).unsqueeze(1)

    def _attend_to_lengths(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        window: int | None,
        scaling: float | None,
    ) -> torch.Tensor:
        """Do the same without reading what lies beyond a row's length."""
        from torch.nn.attention.varlen import varlen_attn

        _, heads, capacity, width = key.shape
        packed = (-1, heads, width)  # (B * capacity, K, D), a view
        output = varlen_attn(
            query.squeeze(2),
            key.transpose(1, 2).view(packed),
            value.transpose(1, 2).view(packed),
            cu_seq_q=self.query_begins,
            cu_seq_k=self.key_begins,
            max_q=1,
            max_k=capacity,
            scale=scaling,
            # A window counts the new token itself.
            window_size=(window - 1, 0) if window else (-1, -1),
            enable_gqa=True,
            seqused_k=self.lengths,
        )
        return cast(torch.Tensor, output).unsqueeze(1)
