"""One step of generation: a token of every row goes in, the next one's logits come out.

Nothing that a layer does waits for the device. On CUDA, where starting a step's
thousand kernels takes longer than running them, a step is recorded as a graph and
replayed. There is a graph for each pair of rows and positions, both rounded up: what a
row attends to beyond its length is masked, and rows beyond the last one are idle.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from lib.attention.function import Step, attending
from lib.generation.drawing import on_device
from lib.generation.slots import SlotCache
from lib.prompts.batches import is_out_of_memory

GRAPH_POSITIONS = 128  # a graph's positions are a multiple of these
GRAPH_PARTS = 8  # and its rows a multiple of the slots over this


class DecodeSteps:
    """The steps of the rows in `cache`.

    On CUDA they are graphs, unless they are to be `eager` or the model's forward waits
    itself.
    """

    def __init__(
        self, model: PreTrainedModel, slots: int, capacity: int, eager: bool = False
    ):
        self.model = model
        self.cache = SlotCache(slots, capacity, model.device)
        self.as_graphs = model.device.type == "cuda" and not eager
        self.graphs: dict[tuple[int, int], Any] = {}
        # What every graph reads: tokens and their positions.
        self.inputs = torch.zeros(slots, 2, dtype=torch.long, device=model.device)
        # What every graph writes to, (slots, vocabulary).
        self.logits: torch.Tensor | None = None
        # Memory of what graphs hold in between, which all of them share.
        self.pool = torch.cuda.graph_pool_handle() if self.as_graphs else None

    @torch.inference_mode()
    def __call__(self, tokens: list[int]) -> torch.Tensor:
        """Feed the first rows a token each; return their next logits (rows, V)."""
        rows = len(tokens)
        lengths = self.cache.lengths
        longest = max(lengths[:rows]) + 1
        pairs = list(zip(tokens, lengths, strict=False))

        logits = self._replay(pairs, longest) if self.as_graphs else None
        if logits is None:
            inputs = on_device(torch.tensor(pairs), self.inputs.device)
            logits = self._forward(inputs, longest)
        lengths[:rows] = [length + 1 for length in lengths[:rows]]
        return logits[:rows]

    def _forward(self, inputs: torch.Tensor, longest: int) -> torch.Tensor:
        """Return the logits (rows, V) in float32 of tokens and positions (rows, 2).

        No row looks at more than `longest` positions.
        """
        tokens = inputs[:, :1]
        positions = inputs[:, 1]
        cache = self.cache
        cache.rows = cache.places[: len(inputs)]
        cache.at = positions
        cache.longest = longest
        with attending(self.model.get_decoder(), step=Step(positions)):
            output = self.model(
                input_ids=tokens,
                position_ids=positions[:, None],
                past_key_values=cache,
                use_cache=True,
            )
        return output.logits[:, -1].float()

    def _replay(
        self, pairs: list[tuple[int, int]], longest: int
    ) -> torch.Tensor | None:
        """Do the same by a graph, with shapes rounded up.

        Returns None, then and later, for a model whose forward waits for the device.
        """
        slots = self.cache.slots
        part = math.ceil(slots / GRAPH_PARTS)
        rows = min(_rounded_up(len(pairs), part), slots)
        positions = min(_rounded_up(longest, GRAPH_POSITIONS), self.cache.capacity)

        # An idle row writes to the first position of a free slot, which is written anew
        # before it is looked at.
        padded = pairs + [(0, 0)] * (rows - len(pairs))
        self.inputs[:rows] = on_device(torch.tensor(padded), self.inputs.device)
        if (rows, positions) not in self.graphs:
            try:
                graph = captured(lambda: self._write(rows, positions), self.pool)
            except RuntimeError as error:
                if is_out_of_memory(error):
                    raise
                self.as_graphs = False
                reason = str(error).splitlines()[0]
                print(f"steps are not replayed as graphs: {reason}", file=sys.stderr)
                return None
            self.graphs[rows, positions] = graph
        self.graphs[rows, positions].replay()
        return self.logits

    def _write(self, rows: int, longest: int) -> None:
        """Do a step of the rows in `inputs` and leave its logits where graphs do."""
        logits = self._forward(self.inputs[:rows], longest)
        if self.logits is None:
            self.logits = logits.new_zeros(self.cache.slots, logits.shape[1])
        self.logits[:rows] = logits


def _rounded_up(number: int, unit: int) -> int:
    """Return the smallest multiple of `unit` that is no smaller than a number."""
    return math.ceil(number / unit) * unit


def captured(run: Callable[[], None], pool: Any) -> Any:
    """Return a CUDA graph of what `run` starts.

    It runs once before: libraries allocate on first use, and a wait for the device
    shows before anything is recorded, as the RuntimeError that is raised then.
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
