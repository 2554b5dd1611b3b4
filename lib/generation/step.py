"""One step of generation: a token goes in for every row of a batch, the logits of the
next one come out.

Every row has a slot of a cache that is allocated once, and a length of its own, which
the host knows: nothing that a layer does waits for the device. On CUDA, where starting
a step's thousand kernels takes longer than running them, it is recorded as a graph and
replayed, one for each pair of rows and positions, rounded up: what a row attends to
beyond its length is masked, and rows beyond the last one are idle.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from transformers import Cache, DynamicCache, PreTrainedModel

from lib.attention.function import Step, attending
from lib.prompts.batches import is_out_of_memory

POSITIONS = 128  # a graph's positions are a multiple of these
ROWS = 8  # and its rows a multiple of this part of all slots


class SlotCache(Cache):
    """Keys and values of up to `slots` rows, (slots, key heads, capacity, D) per layer,
    each row with its length.
    """

    def __init__(self, slots: int, capacity: int, device: torch.device):
        super().__init__(layers=[])
        self.slots, self.capacity, self.lengths = slots, capacity, [0] * slots
        self.stored: list[list[torch.Tensor]] = []  # keys and values of each layer
        self.places = torch.arange(slots, device=device)
        # Of a step: its rows, the position (rows,) of each one's new token, and how
        # many any of them looks at.
        self.rows, self.at, self.longest = self.places[:0], self.places[:0], 0

    def write(self, slot: int, prefilled: DynamicCache, lengths: list[int]) -> None:
        """Copy rows of these lengths into the slots from `slot` on; what lies beyond a
        length is never looked at.
        """
        rows, longest = slice(slot, slot + len(lengths)), max(lengths)
        for index, (keys, values, _) in enumerate(prefilled):
            if len(self.stored) == index:
                sizes = self.slots, keys.shape[1], self.capacity
                self.stored.append(
                    [part.new_zeros(*sizes, part.shape[3]) for part in (keys, values)]
                )
            for kept, part in zip(self.stored[index], (keys, values), strict=True):
                kept[rows, :, :longest] = part[:, :, :longest]
        self.lengths[rows] = lengths

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Let the row of one slot take another slot, so that running rows are always
        the first ones.
        """
        length = self.lengths[target] = self.lengths[source]
        for parts in self.stored:
            for part in parts:
                part[target, :, :length] = part[source, :, :length]

    def update(self, key, value, layer_idx, *args, **kwargs):
        """Write one new position of each running row and return views up to the longest
        row.
        """
        keys, values = self.stored[layer_idx]
        keys[self.rows, :, self.at], values[self.rows, :, self.at] = (
            key[:, :, 0],
            value[:, :, 0],
        )
        return keys[: len(key), :, : self.longest], values[
            : len(key), :, : self.longest
        ]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.longest - 1

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.longest, 0


class Steps:
    """The steps of the rows in `cache`; as graphs on CUDA, unless `eager` or where a
    model's forward waits itself.
    """

    def __init__(
        self, model: PreTrainedModel, slots: int, capacity: int, eager: bool = False
    ):
        self.model, self.cache = model, SlotCache(slots, capacity, model.device)
        self.as_graphs = model.device.type == "cuda" and not eager
        self.graphs: dict[tuple[int, int], Any] = {}
        self.fed = torch.zeros(
            slots, 2, dtype=torch.long, device=model.device
        )  # tokens and their positions
        self.logits: torch.Tensor | None = (
            None  # (slots, vocabulary), which every graph writes to
        )
        self.pool = (
            torch.cuda.graph_pool_handle() if self.as_graphs else None
        )  # of what graphs hold in between

    @torch.inference_mode()
    def __call__(self, tokens: list[int]) -> torch.Tensor:
        """Feed one token to each of the first rows and return the logits (rows,
        vocabulary) of the next.
        """
        rows, lengths = len(tokens), self.cache.lengths
        longest, fed = max(lengths[:rows]) + 1, list(zip(tokens, lengths, strict=False))
        logits = self._replay(fed, longest) if self.as_graphs else None
        if logits is None:
            logits = self._forward(
                on_device(torch.tensor(fed), self.fed.device), longest
            )
        lengths[:rows] = [length + 1 for length in lengths[:rows]]
        return logits[:rows]

    def _forward(self, fed: torch.Tensor, longest: int) -> torch.Tensor:
        """Return logits in float32 for `fed` (rows, 2), of which no row looks at more
        than `longest` positions.
        """
        cache, at = self.cache, fed[:, 1]
        cache.rows, cache.at, cache.longest = cache.places[: len(fed)], at, longest
        with attending(self.model.get_decoder(), step=Step(at)):
            given = {
                "position_ids": fed[:, 1:],
                "past_key_values": cache,
                "use_cache": True,
            }
            return self.model(input_ids=fed[:, :1], **given).logits[:, -1].float()

    def _replay(self, fed: list[tuple[int, int]], longest: int) -> torch.Tensor | None:
        """Do the same with shapes rounded up, by a graph; None, then and later, for a
        model whose forward waits.
        """
        part = -(-self.cache.slots // ROWS)
        rows = min(-(-len(fed) // part) * part, self.cache.slots)
        longest = min(-(-longest // POSITIONS) * POSITIONS, self.cache.capacity)
        # An idle row writes to the first position of a free slot, which is written anew
        # before it is looked at.
        padded = torch.tensor(fed + [(0, 0)] * (rows - len(fed)))
        self.fed[:rows] = on_device(padded, self.fed.device)
        if (rows, longest) not in self.graphs:
            try:
                self.graphs[rows, longest] = captured(
                    lambda: self._write(rows, longest), self.pool
                )
            except RuntimeError as error:
                if is_out_of_memory(error):
                    raise
                self.as_graphs = False
                print(
                    f"steps are not replayed as graphs: {str(error).splitlines()[0]}",
                    file=sys.stderr,
                )
                return None
        self.graphs[rows, longest].replay()
        return self.logits

    def _write(self, rows: int, longest: int) -> None:
        logits = self._forward(self.fed[:rows], longest)
        if self.logits is None:
            self.logits = logits.new_zeros(self.cache.slots, logits.shape[1])
        self.logits[:rows] = logits


def on_device(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor of the host's on a device, without a wait: a copy from pinned
    memory has none.
    """
    return (
        values.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda"
        else values
    )


def captured(run: Callable[[], None], pool: Any) -> Any:
    """Return a CUDA graph of what `run` starts; raises RuntimeError where it makes the
    host wait for the device.

    It runs once before: libraries allocate on first use, and a wait shows before
    anything is recorded.
    """
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        run()
    return graph
