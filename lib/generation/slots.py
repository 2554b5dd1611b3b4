"""Keys and values of the rows that are being answered, in a place for each row."""

import torch
from transformers import Cache, DynamicCache


class SlotCache(Cache):
    """Keys and values of up to `slots` rows, (slots, K, capacity, D) per layer.

    It is allocated once. Every row has a slot and a length of its own, which the host
    knows, so nothing that a layer does with it waits for a device.
    """

    def __init__(self, slots: int, capacity: int):
        super().__init__(layers=[])
        self.slots = slots
        self.capacity = capacity
        self.lengths = [0] * slots
        self.stored: list[list[torch.Tensor]] = []  # keys and values of each layer
        # What a step is about: its rows, the position (rows,) of each one's new token,
        # and how many positions any of them looks at.
        self.rows = torch.empty(0, dtype=torch.long)
        self.at = self.rows
        self.longest = 0

    def write(self, slot: int, prefilled: DynamicCache, lengths: list[int]) -> None:
        """Copy rows of these lengths into the slots from `slot` on.

        What lies beyond a row's length is never looked at.
        """
        rows = slice(slot, slot + len(lengths))
        for layer, (keys, values, _) in enumerate(prefilled):
            if layer == len(self.stored):
                self.stored.append([self._empty(keys), self._empty(values)])
            for own, new in zip(self.stored[layer], (keys, values), strict=True):
                own[rows, :, : new.shape[2]] = new
        self.lengths[rows] = lengths

    def _empty(self, like: torch.Tensor) -> torch.Tensor:
        """Return room for all slots' keys or values, as wide as these (B, K, T, D)."""
        _, heads, _, width = like.shape
        return like.new_zeros(self.slots, heads, self.capacity, width)

    def move(self, source: int, target: int) -> None:
        """Let the row of one slot take another, so that running rows come first."""
        length = self.lengths[source]
        self.lengths[target] = length
        for layer in self.stored:
            for tensor in layer:
                tensor[target, :, :length] = tensor[source, :, :length]

    def next_positions(self, rows: int, device: torch.device | str) -> torch.Tensor:
        """Begin a step of the first rows; return the positions (rows,) of their new
        tokens.
        """
        lengths = self.lengths[:rows]
        self.rows = torch.arange(rows, device=device)
        self.at = torch.tensor(lengths, device=device)
        self.longest = max(lengths) + 1
        self.lengths[:rows] = [length + 1 for length in lengths]
        return self.at

    def update(self, key, value, layer_idx, *args, **kwargs):
        """Write each running row's new position; return views up to the longest row."""
        keys, values = self.stored[layer_idx]
        keys[self.rows, :, self.at] = key[:, :, 0]
        values[self.rows, :, self.at] = value[:, :, 0]
        rows = len(key)
        longest = self.longest
        return keys[:rows, :, :longest], values[:rows, :, :longest]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.longest - 1

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.longest, 0


class OwnCache(DynamicCache):
    """The one slot of a model of which some layers keep something else than keys and
    values: what the family's own cache holds of a row.
    """

    slots = 1

    def write(self, slot: int, prefilled: DynamicCache, lengths: list[int]) -> None:
        """Take over a row of this length."""
        self.layers = prefilled.layers
        self.lengths = lengths

    def next_positions(self, rows: int, device: torch.device | str) -> torch.Tensor:
        """Begin a step; return the position (1,) of its token."""
        (length,) = self.lengths
        self.lengths = [length + 1]
        return torch.tensor([length], device=device)
