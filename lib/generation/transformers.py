"""Answer many prompts with a transformers model, in continuous batches.

A finished row leaves and a waiting prompt takes its slot. No row is padded on the left,
and keys are neither concatenated nor repeated for grouped heads. Given tokens, such as
an elicitation, are fed through the same decoding steps from the existing cache. Each
step reads all weights once: with few rows its time is that of reading them, with many
rows that of multiplying, so large batches are efficient.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from lib.arm.redistribution import Installed, installed
from lib.attention.decoding_step import Step
from lib.attention.function import attending, layers_without_attention
from lib.generation.cache import SingleRowCache, SlotCache, overflow_error, prefill
from lib.generation.writer import (
    Completion,
    Request,
    Row,
    Sampling,
    Writer,
)
from lib.models.loading import with_weights
from lib.models.memory import free_memory
from lib.prompts.batches import batch_tokens, in_batches

# Share of the free memory for the cache of all rows. The rest is for prefills on a
# GPU, and for other programs on a CPU.
CACHE_SHARE = {"cuda": 0.8, "cpu": 0.5}
# Tokens per block of the first sum; divides the size of most vocabularies.
SUMMED_TOKENS = 128


class Engine(Writer):
    """Continuous batches on one device.

    Greedy output in float32 does not depend on the batches.
    """

    load = staticmethod(with_weights)

    @torch.inference_mode()
    def _stream(
        self, requests: list[Request], sampling: Sampling, positions: int
    ) -> Iterator[Completion]:
        arm = requests[0].arm
        at_work: contextlib.AbstractContextManager = contextlib.nullcontext()
        if arm:
            at_work = installed(self.model, **arm.model_dump())
        cache = self._cache(len(requests), positions)
        with at_work as hook:
            yield from _Batch(self, sampling, cache, hook).run(requests)

    def _cache(self, prompts: int, positions: int) -> SlotCache | SingleRowCache:
        """Return a cache with slots of this many positions, for as many of the prompts
        as fit.
        """
        if layers_without_attention(self.model):
            return SingleRowCache()
        slots = min(self.batch_size or prompts, prompts, self._rows_that_fit(positions))
        return SlotCache(slots, positions)

    def _rows_that_fit(self, positions: int) -> int:
        """Return how many rows with this many positions fit into free memory."""
        device = self.model.device
        room = free_memory(str(device)) * CACHE_SHARE[device.type]
        return max(1, int(room // (self.bytes_per_position * positions)))

    @functools.cached_property
    def bytes_per_position(self) -> int:
        """The bytes of one position's keys and values, measured in a forward pass."""
        one, _ = prefill(self.model, [[0]], [range(1)])
        return sum(keys.nbytes + values.nbytes for keys, values, _ in one)


class _SlotRow(Row):
    """A row in a slot, with generators for its tokens and for ARM."""

    def __init__(self, engine: Engine, request: Request, sampling: Sampling):
        super().__init__(engine, request, sampling)
        self.draws = torch.Generator("cpu").manual_seed(request.seed)
        self.noise = torch.Generator(engine.model.device).manual_seed(request.seed)


@dataclass
class _Batch:
    """The running rows, in the first slots of a cache."""

    engine: Engine
    sampling: Sampling
    cache: Any  # SlotCache or, with one slot, SingleRowCache
    hook: Installed | None  # ARM
    rows: list[_SlotRow] = field(default_factory=list)

    def run(self, requests: list[Request]) -> Iterator[Completion]:
        """Yield a completion for each request as it finishes."""
        slots = self.cache.slots
        # Sorting makes prompts with a common prefix neighbours, so that one prefill
        # computes the prefix once.
        waiting = sorted(requests, key=lambda request: request.input_ids)
        while waiting or self.rows:
            # A prefill stops all rows, so wait until it fills a good part of the batch.
            free = slots - len(self.rows)
            if waiting and free >= min(len(waiting), max(1, slots // 4)):
                begin = len(self.rows)
                admitted = [waiting.pop() for _ in range(min(free, len(waiting)))]
                yield from self._advance(begin, self._admit(admitted))
            if self.rows:
                yield from self._advance(0, self._step())

    def _set_arm_generators(self, rows: list[_SlotRow]) -> None:
        """Make ARM draw from these rows' generators in the next forward pass."""
        if self.hook:
            self.hook.generators = [row.noise for row in rows]

    def _admit(self, admitted: list[Request]) -> torch.Tensor:
        """Prefill prompts into free slots; return the logits (N, vocabulary) of their
        next tokens.
        """
        lengths = [len(request.input_ids) for request in admitted]

        def fill(chosen: list[int]) -> torch.Tensor:
            rows = [_SlotRow(self.engine, admitted[i], self.sampling) for i in chosen]
            ids = [row.request.input_ids for row in rows]
            own = [len(prompt) for prompt in ids]
            last = [range(length - 1, length) for length in own]
            changed = own if self.hook else None
            self._set_arm_generators(rows)
            filled, logits = prefill(self.engine.model, ids, last, changed)
            self.cache.write(len(self.rows), filled, own)
            self.rows += rows
            return logits

        at_once = batch_tokens(self.engine.model.device.type)
        parts = in_batches(lengths, fill, at_once)
        return torch.cat([logits for _, logits in parts])

    def _step(self) -> torch.Tensor:
        """Feed each row a token; return the logits (rows, vocabulary) of the next ones
        in float32.
        """
        model = self.engine.model
        self._set_arm_generators(self.rows)
        tokens = torch.tensor([row.feed.pop(0) for row in self.rows])
        positions = self.cache.next_positions(len(tokens), model.device)
        with attending(model.get_decoder(), step=Step(positions)):
            output = model(
                input_ids=tokens[:, None].to(model.device),
                position_ids=positions[:, None],
                past_key_values=self.cache,
                use_cache=True,
            )
        return output.logits[:, -1].float()

    def _advance(self, begin: int, logits: torch.Tensor) -> Iterator[Completion]:
        """Give the rows from a slot on their next tokens, from logits (N,
        vocabulary).

        Yields the completions of rows that finish.
        """
        # No token is chosen for a row that still has tokens to feed.
        new = self.rows[begin:]
        ready = [place for place, row in enumerate(new) if not row.feed]
        draws = [new[place].draws for place in ready]
        if len(ready) < len(new):
            logits = logits[ready]
        tokens = choose(logits, self.sampling, draws)

        # From the last slot on, because the last row moves into a slot that is freed.
        for place, token in sorted(zip(ready, tokens, strict=True), reverse=True):
            row = new[place]
            if row.take(token):
                yield row.completion()
                self._leave(begin + place)

    def _leave(self, slot: int) -> None:
        """Free a slot and move the last row into it."""
        last = self.rows.pop()
        if slot < len(self.rows):
            self.cache.move(len(self.rows), slot)
            self.rows[slot] = last


def choose(
    logits: torch.Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Return the next token of each row of logits (N, vocabulary).

    It is the most probable one at temperature 0, otherwise a draw from the nucleus
    `top_p`. Each row draws from its generator, so that it does not depend on its batch.
    Raises InputError for NaN.
    """
    if sampling.temperature == 0:
        tokens = logits.argmax(-1)
        largest = logits.gather(1, tokens[:, None])[:, 0]
        return _token_numbers(tokens, largest.isnan())

    # Drawn while the device still computes the logits.
    draws = torch.tensor(
        [torch.rand((), generator=own, dtype=torch.float64) for own in generators],
        pin_memory=logits.is_cuda,
    ).to(logits.device, non_blocking=True)
    probabilities = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True)
        outside = ranked.cumsum(-1) - ranked >= sampling.top_p
        outside = outside.scatter(1, order, outside)
        probabilities = probabilities.masked_fill(outside, 0)
    tokens, total = _tokens_at(probabilities, draws)
    return _token_numbers(tokens, total.isnan())


def _tokens_at(
    probabilities: torch.Tensor, draws: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the token (N,) at which the cumulative sum of each row's probabilities (N,
    vocabulary) exceeds that share (N,) of their total, and the total.

    Sums are in float64 and in the vocabulary's order, which does not depend on a
    batch's last digits, unlike an order by probability. The first sum is over blocks of
    tokens, the second within the block that contains the share.
    """
    if missing := -probabilities.shape[1] % SUMMED_TOKENS:
        probabilities = torch.nn.functional.pad(probabilities, (0, missing))
    blocks = probabilities.unflatten(1, (-1, SUMMED_TOKENS))
    reached = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    total = reached[:, -1:]
    block, rest = _first_above(reached, draws[:, None] * total)
    inside = blocks.take_along_dim(block[:, :, None], 1)[:, 0].double().cumsum(-1)
    place, _ = _first_above(inside, rest)
    return (block * SUMMED_TOKENS + place)[:, 0], total[:, 0]


def _first_above(
    sums: torch.Tensor, bounds: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the index at which each row of increasing sums (N, M) first exceeds its
    bound (N, 1), and how far the bound exceeds the sum before.

    If rounding puts a bound at or above the last sum, the last index counts.
    """
    largest = sums[:, -1:]
    bounds = bounds.minimum(largest.nextafter(torch.zeros_like(largest)))
    place = torch.searchsorted(sums, bounds, right=True).clamp_(max=sums.shape[1] - 1)
    before = torch.nn.functional.pad(sums, (1, 0)).gather(1, place)
    return place, bounds - before


def _token_numbers(tokens: torch.Tensor, is_nan: torch.Tensor) -> list[int]:
    """Return tokens as numbers; raise InputError if one comes from NaN.

    It synchronises with the device once.
    """
    numbers = tokens.masked_fill(is_nan, -1).tolist()
    if -1 in numbers:
        raise overflow_error()
    return numbers
