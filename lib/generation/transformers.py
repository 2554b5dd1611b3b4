"""Decode many prompts at once with a transformers model, in continuous batches.

A finished row leaves and a waiting prompt takes its place. No row is padded on the
left, nothing is concatenated or repeated for grouped heads. Tokens that are given, such
as an elicitation, are fed through the same steps from the kept cache. A step reads all
weights once, so its floor is their bytes for few rows and their multiplications for
many; large batches pay.
"""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil
import torch
from transformers import DynamicCache

from lib.arm.moving import Installed, installed
from lib.errors import InputError
from lib.generation.next_token import choose
from lib.generation.prefill import prefill
from lib.generation.requests import Completion, Request, Sampling
from lib.generation.step import POSITIONS_UNIT, DecodeSteps, rounded_up
from lib.generation.writer import Answer, Writer
from lib.grading.answer import last_box
from lib.models.loading import with_weights
from lib.prompts.batches import batch_tokens, in_batches, is_out_of_memory

# Of the memory that is free, what the cache of all rows may take.
GPU_SHARE = 0.8
CPU_SHARE = 0.5


class _Row:
    """A request at work: its answer so far, and what is still to be fed."""

    def __init__(self, request: Request, device: torch.device):
        self.request = request
        self.answer = Answer(list(request.resumed_tokens), [], [])
        # Tokens that must go in before the next one is chosen.
        self.feed: list[int] = []
        # What its tokens are drawn from, and what ARM draws from.
        self.draws = torch.Generator("cpu").manual_seed(request.seed)
        self.noise = torch.Generator(device).manual_seed(request.seed)


class Engine(Writer):
    """Continuous batches on one device.

    Greedy output in float32 does not depend on their composition. Out of memory halves
    the batch and starts what was unfinished again, with the same draws, down to one
    prompt. The cache and the graphs of steps stay while they fit what is asked for.
    """

    load = staticmethod(with_weights)

    def __init__(self, loaded, batch_size: int | None):
        super().__init__(loaded, batch_size)
        self._steps: DecodeSteps | None = None

    def _stream(
        self,
        requests: list[Request],
        sampling: Sampling,
        elicitation: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        arm = requests[0].arm
        unfinished = {request.key: request for request in requests}
        slots = self.batch_size or len(unfinished)
        with contextlib.ExitStack() as stack:
            hook = None
            if arm:
                hook = stack.enter_context(installed(self.model, **arm.model_dump()))
            while unfinished:
                slots = min(slots, len(unfinished))
                try:
                    steps = self._steps_for(slots, positions)
                    slots = min(slots, steps.cache.slots)
                    # What ARM draws in code mode comes from each row's own generator,
                    # which no graph holds.
                    steps.eager = arm is not None and arm.mode == "code"
                    batch = _Batch(self, steps, slots, sampling, elicitation, hook)
                    for completion in batch.run(list(unfinished.values())):
                        del unfinished[completion.key]
                        yield completion
                except (MemoryError, RuntimeError, InputError) as error:
                    slots = self._fewer(slots, positions, error)
                    # Before the next ones are made, nothing may hold the cache.
                    self._steps = steps = batch = None

    def _fewer(self, slots: int, positions: int, error: Exception) -> int:
        """Return with how many slots to go on after memory ran out; else raise."""
        # A prompt that no prefill has room for while this many slots take it raises an
        # InputError.
        if not is_out_of_memory(error.__cause__ or error):
            raise error
        if slots == 1:
            raise InputError(
                f"one prompt of {positions} tokens does not fit into memory"
            ) from error
        print(
            f"out of memory: going on with {slots // 2} prompts at once",
            file=sys.stderr,
        )
        return slots // 2

    def _steps_for(self, slots: int, positions: int) -> DecodeSteps:
        """Return steps for rows of so many positions, at most so many at once.

        Those that are there already come with their graphs.
        """
        if self.model.device.type == "cuda":
            positions = rounded_up(positions, POSITIONS_UNIT)
        if self._steps is None or not self._steps.fits(slots, positions):
            self._steps = None  # before there are two
            slots = min(slots, self._room(positions))
            self._steps = DecodeSteps(self.model, slots, positions)
        return self._steps

    def _room(self, positions: int) -> int:
        """Return how many rows of so many positions fit into the memory that is free.

        On a GPU prefills need the rest of it, on a CPU all else that the machine does.
        """
        if self.model.device.type == "cuda":
            # Else what an earlier batch gave back would count as taken.
            torch.cuda.empty_cache()
            free = torch.cuda.mem_get_info(self.model.device)[0] * GPU_SHARE
        else:
            free = psutil.virtual_memory().available * CPU_SHARE
        row = self._bytes_per_position() * positions
        return max(1, int(free // row))


@dataclass
class _Batch:
    """The rows at work, in the first slots of a cache."""

    engine: Engine
    steps: DecodeSteps
    slots: int  # of the cache, that are used
    sampling: Sampling
    elicitation: list[int]  # its tokens
    hook: Installed | None  # ARM
    rows: list[_Row] = field(default_factory=list)

    def run(self, requests: list[Request]) -> Iterator[Completion]:
        """Yield a completion for each request as it finishes."""
        slots = self.slots
        waiting = sorted(requests, key=self._order)
        while waiting or self.rows:
            # A prefill stops everybody: wait until it serves a good part of the batch.
            free = slots - len(self.rows)
            if waiting and free >= min(len(waiting), max(1, slots // 4)):
                admitted = [waiting.pop() for _ in range(min(free, len(waiting)))]
                new, logits = self._admit(admitted)
                yield from self._advance(new, logits)
            if self.rows:
                self._let_arm_draw(self.rows)
                logits = self.steps([row.feed.pop(0) for row in self.rows])
                yield from self._advance(range(len(self.rows)), logits)

    def _order(self, request: Request) -> tuple[int, list[int]]:
        """Say by what prompts become neighbours, which are prefilled together.

        Without ARM they should share their beginning (instruction and filler), which is
        then computed once; with ARM their length.
        """
        tokens = request.input_tokens
        return (len(tokens) if self.hook else 0), tokens

    def _let_arm_draw(self, rows: list[_Row]) -> None:
        """Let ARM draw from these rows' own generators in the next forward."""
        if self.hook:
            self.hook.generators = [row.noise for row in rows]

    @torch.inference_mode()
    def _admit(self, admitted: list[Request]) -> tuple[range, torch.Tensor]:
        """Prefill prompts into free slots.

        Return these slots and the logits (N, vocabulary) of their next tokens.
        """
        model = self.engine.model
        lengths = [len(request.input_tokens) for request in admitted]

        def fill(
            chosen: list[int],
        ) -> tuple[list[_Row], DynamicCache, torch.Tensor]:
            rows = [self._begun(admitted[i]) for i in chosen]
            ids = [row.request.input_tokens for row in rows]
            last = [range(len(tokens) - 1, len(tokens)) for tokens in ids]
            self._let_arm_draw(rows)
            changed = [lengths[i] for i in chosen] if self.hook else None
            return rows, *prefill(model, ids, last, changed)

        first = len(self.rows)
        parts = []
        at_once = batch_tokens(model.device.type)
        for chosen, (rows, filled, logits) in in_batches(lengths, fill, at_once):
            slot = len(self.rows)
            self.steps.cache.write(slot, filled, [lengths[i] for i in chosen])
            self.rows += rows
            parts.append(logits)
        return range(first, len(self.rows)), torch.cat(parts)

    def _begun(self, request: Request) -> _Row:
        """Return a request's row, at its elicitation if no reasoning is asked for."""
        row = _Row(request, self.engine.model.device)
        if self.sampling.max_new_tokens == 0:
            row.answer.finish_reason = "length"
            row.feed = list(self.elicitation)
        return row

    def _advance(self, slots: range, logits: torch.Tensor) -> Iterator[Completion]:
        """Give the rows in these slots, of logits (N, vocabulary), their next tokens.

        Yields the completions of those that finish.
        """
        # Of a row with tokens left to feed, none is chosen.
        ready = [place for place, slot in enumerate(slots) if not self.rows[slot].feed]
        if not ready:
            return
        if len(ready) < len(slots):
            logits = logits[torch.tensor(ready, device=logits.device)]
        chosen = [slots[place] for place in ready]
        draws = [self.rows[slot].draws for slot in chosen]
        tokens = choose(logits, self.sampling, draws)

        # From the last slot on, since the last row takes the place of one that leaves.
        for slot, token in sorted(zip(chosen, tokens, strict=True), reverse=True):
            row = self.rows[slot]
            if self._take(row, token):
                yield self.engine._completion(row.request, self.sampling, row.answer)
                self._leave(slot)

    def _leave(self, slot: int) -> None:
        """Free a slot and let the last row take it."""
        last = self.rows.pop()
        if slot < len(self.rows):
            self.steps.cache.move(len(self.rows), slot)
            self.rows[slot] = last

    def _take(self, row: _Row, token: int) -> bool:
        """Take the next token of a row; return whether the row is finished."""
        answer = row.answer
        stopped = token in self.engine.stops
        if answer.finish_reason:
            return self._take_elicited(row, token)

        if stopped:
            answer.end = [token]
        else:
            answer.written.append(token)
            row.feed = [token]
            if len(answer.written) < self.sampling.max_new_tokens:
                return False
        answer.finish_reason = "stop" if stopped else "length"
        row.feed += self.elicitation
        if not self.elicitation:
            return True
        return last_box(self.engine._decode(answer.written)) is not None

    def _take_elicited(self, row: _Row, token: int) -> bool:
        """Do the same for a token behind the elicitation, which ends with its box."""
        if token in self.engine.stops:
            return True
        elicited = row.answer.elicited
        elicited.append(token)
        row.feed = [token]
        text = self.sampling.elicit + self.engine._decode(elicited)
        return (
            last_box(text) is not None or len(elicited) == self.sampling.elicit_tokens
        )
