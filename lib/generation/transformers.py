"""Answer many prompts at once with a transformers model, in continuous batches.

A finished row leaves and a waiting prompt takes its place. No row is padded on the
left, nothing is concatenated or repeated for grouped heads. Tokens that are given, such
as an elicitation, are fed through the same steps from the kept cache. A step reads all
weights once, so its floor is their bytes for few rows and their multiplications for
many; large batches pay.
"""

import contextlib
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import torch
from transformers import DynamicCache

from lib.arm.moving import Installed, installed
from lib.attention.function import attending, without_attention
from lib.attention.steps import Step
from lib.errors import InputError
from lib.generation.next_token import choose
from lib.generation.prefill import prefill
from lib.generation.requests import Completion, Request, Sampling
from lib.generation.slots import SlotCache, bytes_per_position
from lib.generation.writer import Answer, Writer
from lib.models.loading import with_weights
from lib.models.memory import free_memory
from lib.prompts.batches import batch_tokens, in_batches, is_out_of_memory

# Of the memory that is free, what the cache of all rows may take. On a GPU prefills
# need the rest of it, on a CPU all else that the machine does.
CACHE_SHARE = {"cuda": 0.8, "cpu": 0.5}


class Engine(Writer):
    """Continuous batches on one device.

    Greedy output in float32 does not depend on their composition. Out of memory halves
    the batch and starts what was unfinished again, with the same draws, down to one
    prompt.
    """

    load = staticmethod(with_weights)

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
        batch_class = _Batch
        if without_attention(self.model):
            batch_class = _Alone
            slots = 1
        with contextlib.ExitStack() as stack:
            hook = None
            if arm:
                hook = stack.enter_context(installed(self.model, **arm.model_dump()))
            while unfinished:
                slots = min(slots, len(unfinished), self._room(positions))
                cache = SlotCache(slots, positions)
                batch = batch_class(self, cache, sampling, elicitation, hook)
                try:
                    for completion in batch.run(list(unfinished.values())):
                        del unfinished[completion.key]
                        yield completion
                except (MemoryError, RuntimeError, InputError) as error:
                    slots = _fewer(slots, positions, error)
                # Before the next ones are made, nothing may hold the cache.
                del batch, cache

    def _writing(
        self, answer: Answer, sampling: Sampling, elicitation: list[int]
    ) -> Generator[list[int], int, None]:
        """Write an answer, then what is elicited from one without a box.

        Yields the tokens to feed before each next one is chosen, and is sent that.
        """
        feed: list[int] = []
        while not answer.end and len(answer.written) < sampling.max_new_tokens:
            token = yield feed
            if token in self.stops:
                answer.end = [token]
                feed = []
            else:
                answer.written.append(token)
                feed = [token]
        answer.finish_reason = "stop" if answer.end else "length"
        if not elicitation or self._closes_a_box("", answer.written):
            return

        feed = [*feed, *elicitation]
        while len(answer.elicited) < sampling.elicit_tokens:
            token = yield feed
            if token in self.stops:
                return
            answer.elicited.append(token)
            feed = [token]
            if self._closes_a_box(sampling.elicit, answer.elicited):
                return

    def _room(self, positions: int) -> int:
        """Return how many rows of so many positions fit into free memory."""
        kind = self.model.device.type
        if kind == "cuda":
            # Else what an earlier batch gave back would count as taken.
            torch.cuda.empty_cache()
            free, _ = torch.cuda.mem_get_info(self.model.device)
        else:
            free = free_memory()
        row = bytes_per_position(self.model) * positions
        return max(1, int(free * CACHE_SHARE[kind] // row))


def _fewer(slots: int, positions: int, error: Exception) -> int:
    """Return with how many slots to go on after memory ran out; else raise."""
    # A prompt that no prefill has room for while this many slots take it raises an
    # InputError.
    if not is_out_of_memory(error.__cause__ or error):
        raise error
    if slots == 1:
        raise InputError(
            f"one prompt of {positions} tokens does not fit into memory"
        ) from error
    print(f"out of memory: going on with {slots // 2} prompts at once", file=sys.stderr)
    return slots // 2


class _Row:
    """A request at work.

    `writing` gives the tokens to `feed` before the next one is chosen, and takes that.
    """

    def __init__(self, request: Request, answer: Answer, writing, device: torch.device):
        self.request = request
        self.answer = answer
        self.writing: Generator[list[int], int, None] = writing
        self.feed: list[int] = next(writing)
        # What its tokens are drawn from, and what ARM draws from.
        self.draws = torch.Generator("cpu").manual_seed(request.seed)
        self.noise = torch.Generator(device).manual_seed(request.seed)

    def take(self, token: int) -> bool:
        """Take the next token of the answer; return whether that is finished."""
        try:
            self.feed = self.writing.send(token)
        except StopIteration:
            return True
        return False


@dataclass
class _Batch:
    """The rows at work, in the first slots of a cache."""

    engine: Engine
    cache: SlotCache
    sampling: Sampling
    elicitation: list[int]  # its tokens
    hook: Installed | None  # ARM
    rows: list[_Row] = field(default_factory=list)

    def run(self, requests: list[Request]) -> Iterator[Completion]:
        """Yield a completion for each request as it finishes."""
        slots = self.cache.slots
        waiting = sorted(requests, key=self._order)
        while waiting or self.rows:
            # A prefill stops everybody: wait until it serves a good part of the batch.
            free = slots - len(self.rows)
            if waiting and free >= min(len(waiting), max(1, slots // 4)):
                begin = len(self.rows)
                admitted = [waiting.pop() for _ in range(min(free, len(waiting)))]
                yield from self._advance(begin, self._admit(admitted))
            if self.rows:
                yield from self._advance(0, self._step())

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
    def _admit(self, admitted: list[Request]) -> torch.Tensor:
        """Prefill prompts into free slots; return the logits (N, vocabulary) of their
        next tokens.
        """
        model = self.engine.model
        lengths = [len(request.input_tokens) for request in admitted]

        def fill(
            chosen: list[int],
        ) -> tuple[list[_Row], DynamicCache, torch.Tensor]:
            rows = [self._row(admitted[i]) for i in chosen]
            ids = [row.request.input_tokens for row in rows]
            last = [range(len(tokens) - 1, len(tokens)) for tokens in ids]
            self._let_arm_draw(rows)
            changed = [lengths[i] for i in chosen] if self.hook else None
            return rows, *prefill(model, ids, last, changed)

        parts = []
        at_once = batch_tokens(model.device.type)
        for chosen, (rows, filled, logits) in in_batches(lengths, fill, at_once):
            slot = len(self.rows)
            self.cache.write(slot, filled, [lengths[i] for i in chosen])
            self.rows += rows
            parts.append(logits)
        return torch.cat(parts)

    def _row(self, request: Request) -> _Row:
        """Return a request at work, behind what it resumes."""
        answer = Answer(list(request.resumed_tokens), [], [])
        engine = self.engine
        writing = engine._writing(answer, self.sampling, self.elicitation)
        return _Row(request, answer, writing, engine.model.device)

    @torch.inference_mode()
    def _step(self) -> torch.Tensor:
        """Feed each row a token; return the logits (rows, vocabulary) of the next ones
        in float32.
        """
        model = self.engine.model
        self._let_arm_draw(self.rows)
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
        """Give the rows from a slot on, of logits (N, vocabulary), their next tokens.

        Yields the completions of those that finish.
        """
        # Of a row with tokens left to feed, none is chosen.
        new = self.rows[begin:]
        ready = [place for place, row in enumerate(new) if not row.feed]
        if not ready:
            return
        if len(ready) < len(new):
            logits = logits[torch.tensor(ready, device=logits.device)]
        draws = [new[place].draws for place in ready]
        tokens = choose(logits, self.sampling, draws)

        # From the last slot on, since the last row takes the place of one that leaves.
        for place, token in sorted(zip(ready, tokens, strict=True), reverse=True):
            row = new[place]
            if row.take(token):
                yield self.engine._completion(row.request, self.sampling, row.answer)
                self._leave(begin + place)

    def _leave(self, slot: int) -> None:
        """Free a slot and let the last row take it."""
        last = self.rows.pop()
        if slot < len(self.rows):
            self.cache.move(len(self.rows), slot)
            self.rows[slot] = last


@dataclass
class _Alone(_Batch):
    """One row at work, of a model of which some layers keep something else than keys
    and values: it goes through the family's own forward, with a cache of its own.
    """

    own: DynamicCache | None = None

    def _admit(self, admitted: list[Request]) -> torch.Tensor:
        """Read one prompt; return the logits (1, vocabulary) of its next token."""
        (request,) = admitted
        config = self.engine.model.config.get_text_config()
        self.own = DynamicCache(config=config)
        self.rows.append(self._row(request))
        return self._forward(request.input_tokens)

    def _step(self) -> torch.Tensor:
        """Feed the row a token; return the logits (1, vocabulary) of the next one."""
        return self._forward([self.rows[0].feed.pop(0)])

    @torch.inference_mode()
    def _forward(self, tokens: list[int]) -> torch.Tensor:
        model = self.engine.model
        self._let_arm_draw(self.rows)
        ids = torch.tensor([tokens], device=model.device)
        output = model(input_ids=ids, past_key_values=self.own, use_cache=True)
        return output.logits[:, -1].float()
