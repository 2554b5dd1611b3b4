"""Keys and values of many rows of unequal lengths, in one allocation."""

import torch
from transformers import Cache, DynamicCache


class SlotCache(Cache):
    """Keys and values of up to `slots` rows, (slots, key heads, capacity, D) per layer, each row with its length."""

    def __init__(self, slots: int, capacity: int):
        super().__init__(layers=[])
        self.shape, self.lengths = (slots, capacity), torch.zeros(slots, dtype=torch.long)
        self.stored: list[tuple[torch.Tensor, torch.Tensor]] = []

    def write(self, slot: int, prefilled: DynamicCache, row: int, length: int) -> None:
        """Copy the first `length` positions of one prefilled row into a slot."""
        for index, (keys, values, _) in enumerate(prefilled):
            if len(self.stored) == index:
                self.stored.append((self._room(keys), self._room(values)))
            for target, source in zip(self.stored[index], (keys, values), strict=True):
                target[slot, :, :length] = source[row, :, :length]
        self.lengths[slot] = length

    def _room(self, like: torch.Tensor) -> torch.Tensor:
        slots, capacity = self.shape
        return like.new_zeros(slots, like.shape[1], capacity, like.shape[3])

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Let the row of one slot take another slot, so that running rows are always the first ones."""
        length = int(self.lengths[source])
        for parts in self.stored:
            for part in parts:
                part[target, :, :length] = part[source, :, :length]
        self.lengths[target] = length

    def begin_step(self, rows: int, device: torch.device) -> torch.Tensor:
        """Return the lengths (rows,) of the running rows on the device; worked out once, not in every layer."""
        self.rows, self.at = torch.arange(rows, device=device), self.lengths[:rows].to(device)
        self.longest = int(self.lengths[:rows].max()) + 1  # which lies on the host: nothing waits for the device
        return self.at

    def update(self, key, value, layer_idx, *args, **kwargs):
        """Write one new position of each running row and return views up to the longest row."""
        keys, values = self.stored[layer_idx]
        keys[self.rows, :, self.at], values[self.rows, :, self.at] = key[:, :, 0], value[:, :, 0]
        return keys[: len(key), :, : self.longest], values[: len(key), :, : self.longest]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return int(self.lengths.max())

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0
