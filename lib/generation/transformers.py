"""Decode many prompts at once with a transformers model: a finished row leaves, a
waiting prompt takes its place.

No row is padded on the left, nothing is concatenated or repeated for grouped heads.
Tokens that are given, such as an elicitation, are fed through the same steps from the
kept cache. A step reads all weights once, so its floor is their bytes for few rows and
their multiplications for many; large batches pay.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import psutil
import torch
from transformers import DynamicCache, PreTrainedModel

from lib.arm.moving import Installed, installed
from lib.errors import InputError
from lib.generation import Completion, Request, Sampling, Writer
from lib.generation.step import Steps, on_device
from lib.grading.answer import last_box
from lib.models.loading import load
from lib.prompts.batches import batch_tokens, in_batches, is_out_of_memory, pad


class _Row:
    def __init__(self, request: Request, device: torch.device):
        self.request, self.written, self.finish = (
            request,
            list(request.resumed_tokens),
            "",
        )
        self.feed: list[
            int
        ] = []  # tokens that must go in before the next one is chosen
        self.end: list[int] = []  # the token that stopped it, if one did
        self.after: list[int] = []  # what follows the elicitation
        # What tokens are drawn from, and what ARM draws from.
        self.draws, self.noise = (
            torch.Generator(place).manual_seed(request.seed)
            for place in ("cpu", device)
        )


class Engine(Writer):
    """Continuous batches on one device; greedy output in float32 does not depend on
    their composition.

    Out of memory halves the batch and starts what was unfinished again, with the same
    draws, down to one prompt.
    """

    load = staticmethod(load)

    def _stream(
        self,
        requests: list[Request],
        sampling: Sampling,
        elicit: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        arm, slots, unfinished = (
            requests[0].arm,
            self.batch_size,
            {request.key: request for request in requests},
        )
        with (
            installed(self.model, **arm.model_dump())
            if arm
            else contextlib.nullcontext() as hook
        ):
            while unfinished:
                batch = None  # one that ran out of memory
                slots = min(slots, len(unfinished), self._room(positions))
                try:
                    # What ARM draws in code mode comes from each row's own generator,
                    # which no graph holds.
                    eager = arm is not None and arm.mode == "code"
                    batch = _Batch(
                        self,
                        Steps(self.model, slots, positions, eager=eager),
                        sampling,
                        elicit,
                        hook,
                    )
                    for completion in batch.run(list(unfinished.values())):
                        del unfinished[completion.key]
                        yield completion
                except (MemoryError, RuntimeError, InputError) as error:
                    # Of a prompt that no prefill has room for while this many slots
                    # take it, an InputError tells.
                    if not is_out_of_memory(error.__cause__ or error):
                        raise
                    if slots == 1:
                        raise InputError(
                            f"one prompt of {positions} tokens does not fit into memory"
                        ) from error
                    slots //= 2
                    print(
                        f"out of memory: going on with {slots} prompts at once",
                        file=sys.stderr,
                    )

    def _room(self, positions: int) -> int:
        """Return how many rows of so many positions may be kept in half of the memory
        that is free now.
        """
        cuda = self.model.device.type == "cuda"
        torch.cuda.empty_cache()  # else what an earlier batch gave back counts as taken
        free = (
            torch.cuda.mem_get_info(self.model.device)[0]
            if cuda
            else psutil.virtual_memory().available
        )
        return max(1, free // 2 // (self._bytes_per_position() * positions))


@dataclass
class _Batch:
    """The rows at work, in the first slots of a cache."""

    engine: Engine
    steps: Steps
    sampling: Sampling
    elicit: list[int]  # the elicitation's tokens
    hook: Installed | None  # ARM
    rows: list[_Row] = field(default_factory=list)

    def run(self, requests: list[Request]) -> Iterator[Completion]:
        # Neighbours share their beginning (instruction and filler), which is then
        # computed once; with ARM their length.
        waiting = sorted(
            requests,
            key=lambda r: (len(r.input_tokens) if self.hook else 0, r.input_tokens),
        )
        slots = self.steps.cache.slots
        while waiting or self.rows:
            free = slots - len(self.rows)
            # A prefill stops everybody: wait until it serves a good part of the batch.
            if waiting and free >= min(len(waiting), max(1, slots // 4)):
                yield from self._advance(
                    *self._admit(
                        [waiting.pop() for _ in range(min(free, len(waiting)))]
                    )
                )
            if self.rows:
                self._draw(self.rows)
                logits = self.steps([row.feed.pop(0) for row in self.rows])
                yield from self._advance(range(len(self.rows)), logits)

    def _draw(self, rows: list[_Row]) -> None:
        if self.hook:
            self.hook.generators = [row.noise for row in rows]

    @torch.inference_mode()
    def _admit(self, admitted: list[Request]) -> tuple[range, torch.Tensor]:
        """Prefill prompts into free slots; return these and the logits (N, vocabulary)
        of the next tokens.
        """
        model, begin, logits = self.engine.model, len(self.rows), []

        def fill(
            chosen: list[int],
        ) -> tuple[list[_Row], list[int], DynamicCache, torch.Tensor]:
            new = [_Row(admitted[i], model.device) for i in chosen]
            lengths = [len(row.request.input_tokens) for row in new]
            last = [range(length - 1, length) for length in lengths]
            self._draw(new)
            filled, found = prefill(
                model,
                [row.request.input_tokens for row in new],
                last,
                lengths if self.hook else None,
            )
            return new, lengths, filled, found

        tokens = batch_tokens(model.device.type)
        for _, (new, lengths, filled, found) in in_batches(
            [len(r.input_tokens) for r in admitted], fill, tokens
        ):
            self.steps.cache.write(len(self.rows), filled, lengths)
            self.rows += new
            logits.append(found)
        return range(begin, len(self.rows)), torch.cat(logits)

    def _advance(self, slots: range, logits: torch.Tensor) -> Iterator[Completion]:
        """Give the rows in these slots, of logits (N, vocabulary), their next tokens;
        yield those that finish.
        """
        ready = [
            place for place, slot in enumerate(slots) if not self.rows[slot].feed
        ]  # nothing is left to feed
        if not ready:
            return
        logits = (
            logits
            if len(ready) == len(slots)
            else logits[torch.tensor(ready, device=logits.device)]
        )
        chosen = [slots[place] for place in ready]
        tokens = choose(
            logits, self.sampling, [self.rows[slot].draws for slot in chosen]
        )
        for slot, token in sorted(zip(chosen, tokens, strict=True), reverse=True):
            row = self.rows[slot]
            if self._take(row, token):
                yield self.engine._completion(
                    row.request,
                    self.sampling,
                    row.finish,
                    row.written,
                    row.end,
                    row.after,
                )
                last = self.rows.pop()
                if slot < len(self.rows):  # whose slot the last one takes
                    self.steps.cache.move(len(self.rows), slot)
                    self.rows[slot] = last

    def _take(self, row: _Row, token: int) -> bool:
        """Take the next token of a row; return whether the row is finished."""
        stopped, sampling, decode = (
            token in self.engine.stops,
            self.sampling,
            self.engine._decode,
        )
        if row.finish:  # the elicitation is in
            if stopped:
                return True
            row.after.append(token)
            row.feed = [token]
            return (
                last_box(sampling.elicit + decode(row.after)) is not None
                or len(row.after) == sampling.elicit_tokens
            )
        if not stopped:
            row.written.append(token)
            row.feed = [token]
            if len(row.written) < sampling.max_new_tokens:
                return False
        row.finish = "stop" if stopped else "length"
        row.end = [token] if stopped else []
        row.feed += self.elicit
        return not self.elicit or last_box(decode(row.written)) is not None


@torch.inference_mode()
def prefill(
    model: PreTrainedModel,
    rows: Sequence[list[int]],
    places: Sequence[range],
    changed: list[int] | None = None,
) -> tuple[DynamicCache, torch.Tensor]:
    """Run rows of ids through a model; return the cache, and logits (N, vocabulary) in
    float32 at each row's `places`.

    What all begin with is computed once, but where ARM is at work, on as many first
    tokens of each as `changed` says.
    """
    cache, device = DynamicCache(), model.device
    before = [row[: wanted.start] for row, wanted in zip(rows, places, strict=True)]
    shared = [] if changed else list(os.path.commonprefix(before))  # noqa: RUF071 (of any sequences, here ids)
    if shared:
        ids = torch.tensor([shared], device=device)
        model.get_decoder()(input_ids=ids, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(rows))
    ids = pad([torch.tensor(row[len(shared) :]) for row in rows])[0].to(device)
    mask = None
    if (
        changed
    ):  # ARM reads it; of attention it hides padding alone, which nothing real looks at
        mask = (
            (torch.arange(ids.shape[1]) < torch.tensor(changed)[:, None])
            .long()
            .to(device)
        )
    at = [
        (i, place - len(shared)) for i, wanted in enumerate(places) for place in wanted
    ]
    with logits_at(model, *torch.tensor(at, device=device).T):
        output = model(
            input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True
        )
    return cache, output.logits[0].float()


@contextlib.contextmanager
def logits_at(
    model: PreTrainedModel, rows: torch.Tensor, places: torch.Tensor
) -> Iterator[None]:
    """Let a model's forwards give logits (1, N, vocabulary) of these rows' places (N,)
    alone, of whole batches.
    """
    head = cast(torch.nn.Module, model.get_output_embeddings())
    handle = head.register_forward_pre_hook(
        lambda _, given: (given[0][rows, places][None],)
    )
    try:
        yield
    finally:
        handle.remove()


def choose(
    logits: torch.Tensor, sampling: Sampling, draws: Sequence[torch.Generator]
) -> list[int]:
    """Return the next token of each row of logits (N, vocabulary): the largest, or a
    draw from the nucleus `top_p`.

    Each row draws from its own generator, so that it does not depend on its batch; all
    wait for the device once.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    probabilities = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True)
        outside = ranked.cumsum(-1) - ranked >= sampling.top_p
        probabilities = probabilities.masked_fill(outside.scatter(1, order, outside), 0)
    # In the vocabulary's order, which the last digits of a batch do not change as they
    # do the order of like ones.
    reached = probabilities.double().cumsum(-1)
    drawn = torch.cat(
        [torch.rand(1, generator=own, dtype=torch.float64) for own in draws]
    )[:, None]
    return torch.searchsorted(
        reached, on_device(drawn, logits.device) * reached[:, -1:], right=True
    )[:, 0].tolist()
