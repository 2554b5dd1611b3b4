"""The key/value caches of continuous batching, and `prefill`, which fills them with
prompts and returns the logits that are needed.

A *row* is one running sequence; a *slot* is the part of a cache that stores a row.
Shapes: B rows, K key heads, T tokens, D head width, N logits.
"""

import os
from collections.abc import Sequence
from typing import cast

import torch
from torch.utils.hooks import RemovableHandle
from transformers import Cache, DynamicCache, PreTrainedModel

from lib.arm.redistribution import Installed
from lib.attention.model_properties import device_of, on_device
from lib.errors import InputError
from lib.prompts.batches import pad

# A common prefix of prompts is computed in a separate forward pass if this saves at
# least so many tokens. On a GPU, a pass of a few tokens takes as long as one of about a
# thousand.
MIN_SAVED_TOKENS = {"cpu": 1, "cuda": 1024}


class SlotCache(Cache):
    """A preallocated cache of keys and values, (slots, K, capacity, D) per layer.

    The host knows the length of every row, so that no layer waits for the device.
    """

    def __init__(self, slots: int, capacity: int):
        super().__init__(layers=[])
        self.slots = slots
        self.capacity = capacity
        self.lengths = [0] * slots
        self.stored: list[list[torch.Tensor]] = []  # [keys, values] of each layer
        # Set for each decoding step: the index at which the new tokens' keys and values
        # are written, and the number of tokens in the longest row.
        self.write_index: tuple = ()
        self.longest = 0

    def write(self, slot: int, prefilled: DynamicCache, lengths: list[int]) -> None:
        """Copy prefilled rows of these lengths into the slots that start at `slot`.

        The padding beyond a row's length is copied too, but never attended to.
        """
        rows = slice(slot, slot + len(lengths))
        for layer, (keys, values, _) in enumerate(prefilled):
            if layer == len(self.stored):
                self.stored.append([self._allocated(keys), self._allocated(values)])
            for stored, new in zip(self.stored[layer], (keys, values), strict=True):
                stored[rows, :, : new.shape[2]] = new
        self.lengths[rows] = lengths

    def _allocated(self, like: torch.Tensor) -> torch.Tensor:
        """Return zeros (slots, K, capacity, D) for keys or values such as `like` (B, K,
        T, D).
        """
        _, heads, _, width = like.shape
        return like.new_zeros(self.slots, heads, self.capacity, width)

    def move(self, source: int, target: int) -> None:
        """Copy a row to another slot, so that running rows fill the first slots."""
        length = self.lengths[source]
        self.lengths[target] = length
        for layer in self.stored:
            for tensor in layer:
                tensor[target, :, :length] = tensor[source, :, :length]

    def next_positions(self, rows: int, device: torch.device | str) -> torch.Tensor:
        """Start a decoding step of the first `rows` rows, and return the positions
        (rows,) of their new tokens.
        """
        lengths = self.lengths[:rows]
        positions = torch.tensor(lengths, device=device)
        self.write_index = torch.arange(rows, device=device), slice(None), positions
        self.longest = max(lengths) + 1
        self.lengths[:rows] = [length + 1 for length in lengths]
        return positions

    def update(self, key, value, layer_idx, *args, **kwargs):
        """Store the new tokens' keys and values (rows, K, 1, D), and return views of
        the rows' keys and values (rows, K, longest, D).
        """
        keys, values = self.stored[layer_idx]
        keys[self.write_index] = key[:, :, 0]
        values[self.write_index] = value[:, :, 0]
        used = (slice(len(key)), slice(None), slice(self.longest))
        return keys[used], values[used]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.longest - 1

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.longest, 0


@torch.inference_mode()
def prefill(
    model: PreTrainedModel,
    rows: Sequence[list[int]],
    positions: Sequence[range],
    arm: Installed | None = None,
) -> tuple[DynamicCache, torch.Tensor]:
    """Run rows of token ids through a model, and return their cache and the logits (N,
    vocabulary) in float32 at each row's `positions`.

    arm: ARM in this model, with the `lengths` of the rows that it changes; None: it is
    not active. Without ARM, a common prefix is computed once if that saves enough
    tokens. Raises InputError for a token id beyond the model's embedding.
    """
    # Without a config the cache keeps all positions. The architecture's own cache would
    # drop those of the common prefix that a sliding window has left.
    cache = DynamicCache()
    shared: list[int] = []
    if not arm:
        before = [row[: at.start] for row, at in zip(rows, positions, strict=True)]
        shared += os.path.commonprefix(before)  # noqa: RUF071 (of any sequences, here ids)
    saved = len(shared) * (len(rows) - 1)
    device = "cpu" if device_of(model).type == "cpu" else "cuda"
    if saved < MIN_SAVED_TOKENS[device]:
        shared = []
    if shared:
        prefix = on_device(model, torch.tensor([shared]))
        decoder = model.get_decoder()
        decoder(input_ids=prefix, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(rows))

    past = len(shared)
    ids = on_device(model, pad([torch.tensor(row[past:]) for row in rows])[0])
    flat = [(row, index - past) for row, at in enumerate(positions) for index in at]
    with logits_at(model, *torch.tensor(flat, device=ids.device).T):
        output = model(input_ids=ids, past_key_values=cache, use_cache=True)
    return cache, output.logits[0].float()


def raise_if_nan(values: torch.Tensor) -> None:
    """Raise InputError if the model produced NaN, for example because float16
    overflowed.
    """
    if values.isnan().any():
        raise overflow_error()


def overflow_error() -> InputError:
    """Return the error for a model that produced NaN."""
    return InputError("the model overflowed in this dtype (NaN): use --dtype float32")


def logits_at(
    model: PreTrainedModel, rows: torch.Tensor, positions: torch.Tensor
) -> RemovableHandle:
    """Make a model compute its logits (1, N, vocabulary) only at these positions, until
    the returned handle is removed, or its `with` block ends.

    rows, positions: (N,) indices into the batch of a forward pass.
    """

    def only_these(_, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (inputs[0][rows, positions][None],)

    head = cast(torch.nn.Module, model.get_output_embeddings())
    return head.register_forward_pre_hook(only_these)
