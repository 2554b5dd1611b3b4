"""Keys and values of the rows that are being answered, in a place for each row."""

import torch
from transformers import Cache, DynamicCache


class SlotCache(Cache):
    """Keys and values of up to `slots` rows, (slots, K, capacity, D) per layer.

    It is allocated once, with `positions_first` so that a position's heads lie side by
    side. Every row has a slot and a length of its own, which the host knows, so nothing
    that a layer does with it waits for the device.
    """

    def __init__(
        self,
        slots: int,
        capacity: int,
        device: torch.device,
        positions_first: bool = False,
    ):
        super().__init__(layers=[])
        self.slots = slots
        self.capacity = capacity
        self.positions_first = positions_first
        self.lengths = [0] * slots
        self.stored: list[list[torch.Tensor]] = []  # keys and values of each layer
        self.places = torch.arange(slots, device=device)
        # What a step is about: its rows, the position (rows,) of each one's new token,
        # and how many positions any of them looks at.
        self.rows = self.places[:0]
        self.at = self.places[:0]
        self.longest = 0

    def write(self, slot: int, prefilled: DynamicCache, lengths: list[int]) -> None:
        """Copy rows of these lengths into the slots from `slot` on.

        What lies beyond a row's length is never looked at.
        """
        rows = slice(slot, slot + len(lengths))
        longest = max(lengths)
        for layer, (keys, values, _) in enumerate(prefilled):
            if layer == len(self.stored):
                self.stored.append([self._empty(keys), self._empty(values)])
            for own, new in zip(self.stored[layer], (keys, values), strict=True):
                own[rows, :, :longest] = new[:, :, :longest]
        self.lengths[rows] = lengths

    def _empty(self, like: torch.Tensor) -> torch.Tensor:
        """Return room for all slots' keys or values, as wide as these (B, K, T, D)."""
        _, heads, _, width = like.shape
        if self.positions_first:
            room = like.new_zeros(self.slots, self.capacity, heads, width)
            return room.transpose(1, 2)
        return like.new_zeros(self.slots, heads, self.capacity, width)

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Let the row of one slot take another, so that running rows come first."""
        length = self.lengths[source]
        self.lengths[target] = length
        for layer in self.stored:
            for tensor in layer:
                tensor[target, :, :length] = tensor[source, :, :length]

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
