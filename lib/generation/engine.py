"""Decode many prompts at once with a transformers model: a finished row leaves, a waiting prompt takes its place.

No row is padded on the left, nothing is concatenated or repeated for grouped heads. Tokens that are given, such as an
elicitation, are fed through the same steps from the kept cache. A step reads all weights once, so its floor is their
bytes for few rows and their multiplications for many; large batches pay.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import psutil
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel

from lib.arm.activations import activation_module
from lib.arm.moving import Installed, installed
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.interface import Completion, Request, Sampling, Writer
from lib.generation.step import SlotCache, Steps, on_device
from lib.grading.answer import last_box
from lib.models.loading import load
from lib.prompts.batches import is_out_of_memory

PREFILL_TOKENS = 8192  # padded tokens of one prefill: bounds its memory
ALIKE = 0.75  # a prompt is prefilled beside one at most so much longer: bounds what padding costs


@dataclass
class _Row:
    request: Request
    feed: list[int]  # tokens that must go in before the next one is chosen
    draws: torch.Generator
    noise: torch.Generator  # what ARM draws from
    written: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)  # what follows the elicitation
    finish: str = ""


@dataclass
class _Batch:
    """The rows at work, in the cache's first slots, and what holds for all of them."""

    steps: Steps
    sampling: Sampling
    elicit: list[int]  # the elicitation's tokens
    hook: Installed | None  # ARM
    rows: list[_Row] = field(default_factory=list)

    @property
    def cache(self) -> SlotCache:
        return self.steps.cache

    @property
    def free(self) -> int:
        return self.cache.slots - len(self.rows)

    def leave(self, slot: int) -> None:
        """Let a row go, and the last one take its slot."""
        last = self.rows.pop()
        if slot != len(self.rows):
            self.cache.move(len(self.rows), slot)
            self.rows[slot] = last


class Engine(Writer):
    """Continuous batches on one device; greedy output in float32 does not depend on their composition."""

    load = staticmethod(load)

    def complete(self, requests: Sequence[Request], sampling: Sampling, arm: Arm | None = None) -> Iterator[Completion]:
        """Return one completion for each request as it finishes; one without room in the context comes back empty.

        Out of memory halves the batch and starts what was unfinished again, with the same draws. With `arm` the model
        is changed from the first completion to the last. Raises InputError for a layer that ARM cannot work on, at
        once, and when one prompt alone does not fit.
        """
        if arm:
            activation_module(self.model, arm.layer)
        return self._complete(requests, sampling, arm)

    def _complete(self, requests: Sequence[Request], sampling: Sampling, arm: Arm | None) -> Iterator[Completion]:
        plan = self._plan(requests, sampling)
        yield from plan.cramped
        unfinished, slots = {request.key: request for request in plan.fits}, self.batch_size
        with installed(self.model, **arm.model_dump()) if arm else contextlib.nullcontext() as hook:
            while unfinished:
                batch = None  # one that ran out of memory
                capacity = max(len(r.input_ids) for r in unfinished.values()) + plan.extra
                slots = min(slots, len(unfinished), self._room(capacity))
                try:
                    # What ARM draws in code mode comes from each row's own generator, which no graph holds.
                    steps = Steps(self.model, slots, capacity, eager=bool(arm) and arm.mode == "code")
                    batch = _Batch(steps, sampling, plan.elicit, hook)
                    for completion in self._run(list(unfinished.values()), batch):
                        del unfinished[completion.key]
                        yield completion
                except (MemoryError, RuntimeError) as error:
                    if not is_out_of_memory(error):
                        raise
                    if slots == 1:
                        raise InputError(f"one prompt of {capacity} tokens does not fit into memory") from error
                    slots //= 2
                    print(f"out of memory: going on with {slots} prompts at once", file=sys.stderr)

    def _room(self, capacity: int) -> int:
        """Return how many rows of `capacity` positions may be kept in half of the memory that is free now."""
        cuda = self.model.device.type == "cuda"
        torch.cuda.empty_cache()  # else what an earlier batch gave back counts as taken
        free = torch.cuda.mem_get_info(self.model.device)[0] if cuda else psutil.virtual_memory().available
        return max(1, free // 2 // (self._bytes_per_position() * capacity))

    def _run(self, requests: list[Request], batch: _Batch) -> Iterator[Completion]:
        # Neighbours share their beginning (instruction and filler), which is then computed once; with ARM their length.
        waiting = sorted(requests, key=lambda r: (len(r.fed) if batch.hook else 0, r.fed))
        while waiting or batch.rows:
            # A prefill stops everybody: wait until it serves a good part of the batch.
            if waiting and batch.free >= min(len(waiting), max(1, batch.cache.slots // 4)):
                first = self._admit(batch, waiting)
                if first:
                    yield from self._advance(batch, list(first), torch.stack(list(first.values())))
            if batch.rows:
                yield from self._advance(batch, range(len(batch.rows)), self._step(batch))

    @torch.inference_mode()
    def _admit(self, batch: _Batch, waiting: list[Request]) -> dict[int, torch.Tensor]:
        """Prefill waiting prompts into the free slots; return the logits (vocabulary,) of each that is in whole.

        A prompt's last token is left to the next step, but ARM's statistics ask for all of it, and those of a whole
        tensor for no padding.
        """
        hook, first = batch.hook, {}
        admitted = [waiting.pop() for _ in range(min(batch.free, len(waiting)))]
        admitted.sort(key=lambda request: len(request.fed))
        while admitted:
            longest = len(admitted[-1].fed)
            shortest = longest if hook and hook.settings.per_tensor else ALIKE * longest
            group = [r for r in admitted if len(r.fed) >= shortest][-max(1, PREFILL_TOKENS // longest) :]
            del admitted[-len(group) :]
            new = [self._row(request, hook) for request in group]
            prefilled, logits = self._prefill_whole(new, hook) if hook else (self._prefill(new), ())
            first |= dict(enumerate(logits, len(batch.rows)))
            batch.cache.write(len(batch.rows), prefilled, [len(row.request.fed) - len(row.feed) for row in new])
            batch.rows += new
        return first

    def _row(self, request: Request, hook: Installed | None) -> _Row:
        draws, noise = (torch.Generator(place).manual_seed(request.seed) for place in ("cpu", self.model.device))
        # Under ARM the prompt goes in whole, and what was begun token by token, as it was written.
        feed = list(request.begun) if hook else [request.fed[-1]]
        return _Row(request, feed, draws, noise, list(request.begun))

    def _prefill_whole(self, new: list[_Row], hook: Installed) -> tuple[DynamicCache, torch.Tensor]:
        """Run whole prompts through the changed model; return the cache and the next logits (B, vocabulary)."""
        prompts, cache = [torch.tensor(row.request.input_ids) for row in new], DynamicCache()
        ids = pad_sequence(prompts, batch_first=True).to(self.model.device)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=ids.device)
        real = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]).long()  # which ARM's hook reads too
        rows = torch.arange(len(new), device=ids.device)
        with hook.rows([row.noise for row in new], prompt=True), logits_at(self.model, rows, lengths - 1):
            output = self.model(input_ids=ids, attention_mask=real, past_key_values=cache, use_cache=True)
        return cache, output.logits[0].float()

    def _prefill(self, new: list[_Row]) -> DynamicCache:
        """Run all but the last token of the prompts through the model, what all of them begin with only once."""
        prompts = [row.request.fed[:-1] for row in new]
        decoder, device, cache = self.model.get_decoder(), self.model.device, DynamicCache()
        shared = list(os.path.commonprefix(prompts))  # noqa: RUF071 (it compares any sequences, here of ids)
        if shared:
            decoder(input_ids=torch.tensor([shared], device=device), past_key_values=cache, use_cache=True)
            cache.batch_repeat_interleave(len(prompts))
        rest = [torch.tensor(prompt[len(shared) :], dtype=torch.long) for prompt in prompts]
        padded = pad_sequence(rest, batch_first=True).to(device)
        if padded.shape[1] or not shared:
            padded = padded if padded.shape[1] else padded.new_zeros(len(prompts), 1)
            decoder(input_ids=padded, past_key_values=cache, use_cache=True)
        return cache

    def _step(self, batch: _Batch) -> torch.Tensor:
        """Feed one token to every row and return the logits (rows, vocabulary) of the next."""
        rows, hook = batch.rows, batch.hook
        with hook.rows([row.noise for row in rows], prompt=False) if hook else contextlib.nullcontext():
            return batch.steps([row.feed.pop(0) for row in rows])

    def _advance(self, batch: _Batch, slots: Sequence[int], logits: torch.Tensor) -> Iterator[Completion]:
        """Give rows that have nothing left to feed their next tokens, and yield those that finish.

        `logits` (N, vocabulary) are of the rows in these `slots`.
        """
        ready = [place for place, slot in enumerate(slots) if not batch.rows[slot].feed]
        if not ready:
            return
        chosen = [slots[place] for place in ready]
        logits = logits if len(ready) == len(slots) else logits[torch.tensor(ready, device=logits.device)]
        tokens = choose(logits, batch.sampling, [batch.rows[slot].draws for slot in chosen])
        for slot, token in sorted(zip(chosen, tokens, strict=True), reverse=True):
            row = batch.rows[slot]
            if self._take(row, token, batch.sampling, batch.elicit):
                yield self._completion(row.request, batch.sampling, row.finish, row.written, row.after)
                batch.leave(slot)

    def _take(self, row: _Row, token: int, sampling: Sampling, elicit: list[int]) -> bool:
        """Take the next token of a row; return whether the row is finished."""
        stopped = token in self.stops
        if row.finish:  # the elicitation is in
            if stopped:
                return True
            row.after.append(token)
            row.feed = [token]
            closed = last_box(sampling.elicit + self._decode(row.after)) is not None
            return closed or len(row.after) == sampling.elicit_tokens
        if not stopped:
            row.written.append(token)
        row.feed = [] if stopped else [token]
        if not stopped and len(row.written) < sampling.max_new_tokens:
            return False
        row.finish = "stop" if stopped else "length"
        if not elicit or last_box(self._decode(row.written)) is not None:
            return True
        row.feed += elicit
        return False


@contextlib.contextmanager
def logits_at(model: PreTrainedModel, rows: torch.Tensor, places: torch.Tensor) -> Iterator[None]:
    """Let a model's forwards give logits (1, N, vocabulary) of these rows' places (N,) alone, of whole batches."""
    head = cast(torch.nn.Module, model.get_output_embeddings())
    handle = head.register_forward_pre_hook(lambda _, given: (given[0][rows, places][None],))
    try:
        yield
    finally:
        handle.remove()


def choose(logits: torch.Tensor, sampling: Sampling, draws: Sequence[torch.Generator]) -> list[int]:
    """Return the next token of each row of logits (N, vocabulary): the largest, or a draw from the nucleus `top_p`.

    Each row draws one number from its own generator, so that it does not depend on its batch; all rows wait for the
    device once.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    probabilities = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True)
        outside = ranked.cumsum(-1) - ranked >= sampling.top_p
        probabilities = probabilities.masked_fill(outside.scatter(1, order, outside), 0)
    # In the vocabulary's order, which the last digits of a batch do not change as they do the order of like ones.
    reached = probabilities.double().cumsum(-1)
    drawn = torch.cat([torch.rand(1, generator=own, dtype=torch.float64) for own in draws])[:, None]
    return torch.searchsorted(reached, on_device(drawn, logits.device) * reached[:, -1:], right=True)[:, 0].tolist()
