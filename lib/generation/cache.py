"""Keys and values of the rows that are being answered, in a place for each row, and how
whole prompts get there: `prefill`, which gives logits where they are needed, too.
"""

import os
from collections.abc import Sequence
from typing import cast

import torch
from torch.utils.hooks import RemovableHandle
from transformers import Cache, DynamicCache, PreTrainedModel

from lib.attention.function import device_of, layers_without_attention, on_device
from lib.errors import InputError
from lib.prompts.batches import pad

# Tokens that a forward for what rows share has to save: on a GPU, where a forward of
# few tokens takes as long as one of about so many.
WORTH_A_FORWARD = {"cpu": 1, "cuda": 1024}


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
        # What a step is about: where its rows' new tokens go in the keys or values of a
        # layer, and how many positions any of them looks at.
        self.positions: tuple = ()
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
        positions = torch.tensor(lengths, device=device)
        self.positions = torch.arange(rows, device=device), slice(None), positions
        self.longest = max(lengths) + 1
        self.lengths[:rows] = [length + 1 for length in lengths]
        return positions

    def update(self, key, value, layer_idx, *args, **kwargs):
        """Write each running row's new position; return views up to the longest row."""
        keys, values = self.stored[layer_idx]
        keys[self.positions] = key[:, :, 0]
        values[self.positions] = value[:, :, 0]
        seen = (slice(len(key)), slice(None), slice(self.longest))
        return keys[seen], values[seen]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.longest - 1

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.longest, 0


class SingleRowCache(DynamicCache):
    """A cache with one slot, for a model some of whose layers keep something other than
    keys and values; it wraps the architecture's cache.
    """

    slots = 1

    def write(self, slot: int, prefilled: DynamicCache, lengths: list[int]) -> None:
        """Take over a row of this length."""
        self.layers = prefilled.layers
        self.lengths = lengths

    def next_positions(self, rows: int, device: torch.device | str) -> torch.Tensor:
        """Start a decoding step; return the position (1,) of its token."""
        (length,) = self.lengths
        self.lengths = [length + 1]
        return torch.tensor([length], device=device)


@torch.inference_mode()
def prefill(
    model: PreTrainedModel,
    rows: Sequence[list[int]],
    positions: Sequence[range],
    changed: list[int] | None = None,
) -> tuple[DynamicCache, torch.Tensor]:
    """Run rows of ids through a model, and return its cache and the logits (N,
    vocabulary) in float32 at each row's `positions`.

    A common prefix is computed once if that saves enough tokens, unless ARM is active:
    then `changed` says how many first tokens of each row it changes. For a model with
    layers other than attention, the cache is valid only for a single row, because
    several rows are padded. Raises InputError for an id beyond the model's embedding,
    and for such layers with ARM.
    """
    plain = not layers_without_attention(model)
    if changed and not plain:
        raise InputError(
            f"{model.config.model_type}: ARM needs a model whose layers all have"
            " attention"
        )
    # Sliding windows of the architecture's cache would drop positions that rows share.
    cache = DynamicCache(config=None if plain else model.config.get_text_config())
    shared: list[int] = []
    if plain and not changed:
        before = [row[: at.start] for row, at in zip(rows, positions, strict=True)]
        shared += os.path.commonprefix(before)  # noqa: RUF071 (of any sequences, here ids)
    saved = len(shared) * (len(rows) - 1)
    device = "cpu" if device_of(model).type == "cpu" else "cuda"
    if saved < WORTH_A_FORWARD[device]:
        shared = []
    if shared:
        beginning = on_device(model, torch.tensor([shared]))
        decoder = model.get_decoder()
        decoder(input_ids=beginning, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(rows))

    begun = len(shared)
    ids = on_device(model, pad([torch.tensor(row[begun:]) for row in rows])[0])
    flat = [(row, index - begun) for row, at in enumerate(positions) for index in at]
    with logits_at(model, *torch.tensor(flat, device=ids.device).T):
        output = model(
            input_ids=ids,
            attention_mask=_real(ids, changed),
            past_key_values=cache,
            use_cache=True,
        )
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


def _real(ids: torch.Tensor, changed: list[int] | None) -> torch.Tensor | None:
    """Return the mask of the tokens that ARM changes; None without ARM.

    For attention it hides only padding, to which no real token attends.
    """
    if not changed:
        return None
    place = torch.arange(ids.shape[1], device=ids.device)
    return (place < torch.tensor(changed, device=ids.device)[:, None]).long()


def logits_at(
    model: PreTrainedModel, rows: torch.Tensor, positions: torch.Tensor
) -> RemovableHandle:
    """Make a model compute the logits (1, N, vocabulary) only at these positions, while
    the returned context is active.

    `rows` and `positions` (N,) index the complete batch of a forward pass.
    """

    def only_these(_, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (inputs[0][rows, positions][None],)

    head = cast(torch.nn.Module, model.get_output_embeddings())
    return head.register_forward_pre_hook(only_these)
