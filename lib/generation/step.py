"""One step of generation: a token of every row goes in, the next one's logits come out.

Nothing that a layer does waits for the device. On CUDA, where starting a step's
thousand kernels takes longer than running them, a step is recorded as a graph and
replayed. There is a graph for each pair of rows and positions, both rounded up: what a
row attends to beyond its length is masked, and rows beyond the last one are idle. Where
attention stops at each row's length, positions are all that there are.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from lib.attention.function import attending
from lib.attention.steps import Step, stops_at_lengths
from lib.generation.next_token import on_device
from lib.generation.norms import fusable_norms, fused
from lib.generation.slots import SlotCache
from lib.prompts.batches import is_out_of_memory

# On CUDA positions are a multiple of these, rows of that part of all slots: a graph is
# recorded for each shape, and kernels plan anew for some.
POSITIONS_UNIT = 128
ROWS_PART = 1 / 8


class DecodeSteps:
    """The steps of the rows in `cache`.

    On CUDA they are graphs, unless `eager` is set or the model's forward waits for the
    device itself.
    """

    def __init__(self, model: PreTrainedModel, slots: int, capacity: int):
        device = model.device
        self.rounded = device.type == "cuda"  # whether shapes are
        self.model = model
        self.ragged = stops_at_lengths(model)
        self.norms = fusable_norms(model)
        self.cache = SlotCache(slots, capacity, device, positions_first=self.ragged)
        # Set by who changes the model by what no graph can hold.
        self.eager = False
        # Cleared where the model's forward waits for the device.
        self.recordable = True
        self.graphs: dict[tuple[int, int], Any] = {}
        # What every graph reads: tokens and their positions.
        self.inputs = torch.zeros(slots, 2, dtype=torch.long, device=device)
        # What every graph writes to, (slots, vocabulary).
        self.logits: torch.Tensor | None = None
        # Memory of what graphs hold in between, which all of them share.
        self.pool = torch.cuda.graph_pool_handle() if self.rounded else None

    def fits(self, slots: int, capacity: int) -> bool:
        """Say whether so many rows of so many positions have room in the cache."""
        return slots <= self.cache.slots and capacity <= self.cache.capacity

    @property
    def as_graphs(self) -> bool:
        """Whether the next step is a graph."""
        return self.rounded and self.recordable and not self.eager

    @torch.inference_mode()
    def __call__(self, tokens: list[int]) -> torch.Tensor:
        """Feed the first rows a token each; return their next logits (rows, V)."""
        rows = len(tokens)
        lengths = self.cache.lengths
        longest = max(lengths[:rows]) + 1
        if self.rounded:
            longest = min(rounded_up(longest, POSITIONS_UNIT), self.cache.capacity)
        if self.ragged:
            longest = self.cache.capacity

        inputs = self._inputs(tokens)
        logits = self._replay(inputs, longest) if self.as_graphs else None
        if logits is None:
            logits = self._forward(inputs, longest)
        lengths[:rows] = [length + 1 for length in lengths[:rows]]
        return logits[:rows]

    def _inputs(self, tokens: list[int]) -> torch.Tensor:
        """Return the first rows' tokens and positions (rows, 2), on the device."""
        pairs = list(zip(tokens, self.cache.lengths, strict=False))
        return on_device(torch.tensor(pairs), self.inputs.device)

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
        step = Step(positions, cache.capacity if self.ragged else None)
        with attending(self.model.get_decoder(), step=step), fused(self.norms):
            output = self.model(
                input_ids=tokens,
                position_ids=positions[:, None],
                past_key_values=cache,
                use_cache=True,
            )
        return output.logits[:, -1].float()

    def _replay(self, inputs: torch.Tensor, longest: int) -> torch.Tensor | None:
        """Do the same by a graph, with a number of rows that is rounded up.

        Returns None, then and later, for a model whose forward waits for the device.
        """
        slots = self.cache.slots
        rows = min(rounded_up(len(inputs), math.ceil(slots * ROWS_PART)), slots)

        # An idle row writes to the first position of a free slot, which is written anew
        # before it is looked at.
        self.inputs[: len(inputs)] = inputs
        self.inputs[len(inputs) : rows] = 0
        if (rows, longest) not in self.graphs:
            try:
                graph = captured(lambda: self._write(rows, longest), self.pool)
            except RuntimeError as error:
                if is_out_of_memory(error):
                    raise
                self.recordable = False
                reason = str(error).splitlines()[0]
                print(f"steps are not replayed as graphs: {reason}", file=sys.stderr)
                return None
            self.graphs[rows, longest] = graph
        self.graphs[rows, longest].replay()
        return self.logits

    def _write(self, rows: int, longest: int) -> None:
        """Do a step of the rows in `inputs` and leave its logits where graphs do."""
        logits = self._forward(self.inputs[:rows], longest)
        if self.logits is None:
            self.logits = logits.new_zeros(self.cache.slots, logits.shape[1])
        self.logits[:rows] = logits


def rounded_up(number: int, unit: int) -> int:
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

    stream = torch.cuda.current_stream()
    graph = torch.cuda.CUDAGraph()
    try:
        # What other threads ask of the device meanwhile is no business of this graph.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            run()
    except RuntimeError as error:
        # A capture that breaks leaves its own stream the current one, and ends with an
        # error of its own, behind which the reason stands.
        torch.cuda.set_stream(stream)
        reason = error.__context__
        if reason is None:
            raise
        raise reason from None
    return graph
