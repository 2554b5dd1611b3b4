"""Answer many prompts with a transformers model by continuous batching.

When a row is finished, the last row moves into its slot, and once a quarter of the
slots is free, waiting prompts take them. No row is padded on the left, and keys are
neither concatenated nor repeated for grouped heads. The tokens of an elicitation, the
text appended to an answer without a result (`Sampling.elicit`), pass through the same
decoding steps, one token per step, so that the cache is reused. Each step reads all
weights once, so large batches are efficient: with few rows, a step takes the time of
reading the weights.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from lib.arm.redistribution import Installed, installed
from lib.attention.custom_attention import attending
from lib.attention.query_blocks import Step
from lib.generation.engine_interface import Completion, Request, Sampling, Writer
from lib.generation.key_value_caches import SlotCache, overflow_error, prefill
from lib.generation.running_answer import Row
from lib.models.available_memory import free_memory
from lib.models.loading import with_weights
from lib.prompts.batches import batch_tokens, in_batches

# Share of the free memory that the cache may use. The rest is for prefills on a GPU,
# and for other programs on a CPU.
CACHE_SHARE = {"cuda": 0.8, "cpu": 0.5}


class Engine(Writer):
    """Continuous batches on one device.

    Greedy output in float32 does not depend on the batches.
    """

    load = staticmethod(with_weights)

    @staticmethod
    def require_installed() -> None:
        """Do nothing, because this package requires transformers."""

    @torch.inference_mode()
    def _stream(
        self, requests: list[Request], sampling: Sampling, positions: int
    ) -> Iterator[Completion]:
        arm = requests[0].arm
        active = installed(self.model, arm) if arm else contextlib.nullcontext()
        rows = min(len(requests), self._rows_that_fit(positions))
        cache = SlotCache(min(self.batch_size or rows, rows), positions)
        with active as hook:
            yield from _Batch(self, sampling, cache, hook).run(requests)

    def _rows_that_fit(self, positions: int) -> int:
        """Return how many rows of this many positions fit into the cache's share of the
        free memory; at least 1.
        """
        device = self.model.device
        available = free_memory(str(device)) * CACHE_SHARE[device.type]
        return max(1, int(available // (self.bytes_per_position * positions)))

    @functools.cached_property
    def bytes_per_position(self) -> int:
        """The bytes of one position's keys and values in all layers, measured in a
        forward pass of one token.
        """
        one, _ = prefill(self.model, [[0]], [range(1)])
        return sum(keys.nbytes + values.nbytes for keys, values, _ in one)


class _SlotRow(Row):
    """A running request with its random generators.

    `draws` chooses its tokens, on the CPU so that they are the same on every device;
    `noise` is ARM's, on the model's device.
    """

    def __init__(self, engine: Engine, request: Request, sampling: Sampling):
        super().__init__(engine, request, sampling)
        self.draws = torch.Generator("cpu").manual_seed(request.seed)
        self.noise = torch.Generator(engine.model.device).manual_seed(request.seed)


@dataclass
class _Batch:
    """The running rows and their cache: row i is in slot i."""

    engine: Engine
    sampling: Sampling
    cache: SlotCache
    hook: Installed | None  # ARM; None: not active
    rows: list[_SlotRow] = field(default_factory=list)

    def run(self, requests: list[Request]) -> Iterator[Completion]:
        """Yield a completion for each request as it finishes."""
        slots = self.cache.slots
        # Sorting makes prompts with a common prefix neighbours, so that one prefill
        # computes the prefix once.
        waiting = sorted(requests, key=lambda request: request.input_ids)
        while waiting or self.rows:
            # No row continues during a prefill, so prompts wait until a quarter of the
            # slots is free.
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
        """Prefill N prompts into the first free slots; return the logits (N,
        vocabulary) of the new rows' next tokens, in the order of `rows`.
        """
        lengths = [len(request.input_ids) for request in admitted]

        def fill(chosen: list[int]) -> torch.Tensor:
            rows = [_SlotRow(self.engine, admitted[i], self.sampling) for i in chosen]
            ids = [row.request.input_ids for row in rows]
            sizes = [len(prompt) for prompt in ids]
            last = [range(size - 1, size) for size in sizes]
            self._set_arm_generators(rows)
            if self.hook:
                self.hook.lengths = sizes
            filled, logits = prefill(self.engine.model, ids, last, self.hook)
            self.cache.write(len(self.rows), filled, sizes)
            self.rows += rows
            return logits

        padded_tokens = batch_tokens(self.engine.model.device.type)
        parts = in_batches(lengths, fill, padded_tokens)
        return torch.cat([logits for _, logits in parts])

    def _step(self) -> torch.Tensor:
        """Run a decoding step with the next token of each row's `feed`; return the
        logits (rows, vocabulary) of the tokens after them, in float32.
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
        """Choose the next tokens of the N rows from slot `begin` on, given their logits
        (N, vocabulary).

        Yields the completions of rows that finish, and frees their slots.
        """
        # No token is chosen for a row that still has tokens to feed.
        rows = self.rows[begin:]
        ready = [index for index, row in enumerate(rows) if not row.feed]
        draws = [rows[index].draws for index in ready]
        if len(ready) < len(rows):
            logits = logits[ready]
        tokens = choose(logits, self.sampling, draws)

        # In descending order, because the last row moves into a slot that is freed.
        for index, token in sorted(zip(ready, tokens, strict=True), reverse=True):
            row = rows[index]
            if row.take(token):
                yield row.completion()
                self._leave(begin + index)

    def _leave(self, slot: int) -> None:
        """Free a slot and move the last row into it."""
        last = self.rows.pop()
        if slot < len(self.rows):
            self.cache.move(len(self.rows), slot)
            self.rows[slot] = last


def choose(
    logits: torch.Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Return the next token of each of N rows of logits (N, vocabulary).

    At temperature 0 this is the most probable token, otherwise a draw from the most
    probable tokens that together have the probability `top_p`. Each row has a
    generator, so that its draws do not depend on its batch. Raises InputError for NaN.
    """
    if sampling.temperature == 0:
        tokens = logits.argmax(-1)
        largest = logits.gather(1, tokens[:, None])[:, 0]
        return _token_numbers(tokens, largest.isnan())

    # Drawn on the CPU while the device still computes the logits.
    draws = torch.tensor(
        [torch.rand((), generator=each, dtype=torch.float64) for each in generators],
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
    """Return the tokens (N,) that uniform draws (N,) from [0, 1) select, and the sums
    (N,) of the probabilities (N, vocabulary), which need not be 1.

    A draw selects the token at which the cumulative sum first exceeds that share of the
    total (inverse transform sampling). Probabilities are summed in float64 in the
    vocabulary's order: an order by probability would depend on rounding, which differs
    between batches.
    """
    sums = probabilities.cumsum(-1, dtype=torch.float64)
    total = sums[:, -1:]
    # A bound that reaches the total by rounding is lowered below it, so that the sums
    # increase at the token.
    below_total = total.nextafter(torch.zeros_like(total))
    bounds = (draws[:, None] * total).minimum(below_total)
    tokens = torch.searchsorted(sums, bounds, right=True)
    return tokens.clamp_(max=sums.shape[1] - 1)[:, 0], total[:, 0]


def _token_numbers(tokens: torch.Tensor, is_nan: torch.Tensor) -> list[int]:
    """Return tokens (N,) as numbers; raise InputError if one was chosen from NaN.

    Both need the device's results, so they synchronise with the device only once.
    """
    numbers = tokens.masked_fill(is_nan, -1).tolist()
    if -1 in numbers:
        raise overflow_error()
    return numbers
