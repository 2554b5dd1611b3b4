"""What every engine has in common: a `Writer` completes requests with its model."""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from lib.arm.activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.requests import (
    Completion,
    Request,
    Sampling,
    positions_after,
)
from lib.generation.stops import stop_tokens
from lib.grading.answer import last_box

# Batches of a chunk: at its end a batch is no longer full, and a run that is stopped
# loses what it had of one.
CHUNK_BATCHES = 4
# Prompts of a batch, for this purpose, where it is as large as memory allows.
ROOMY_BATCH = 256


@dataclass
class Answer:
    """An answer as an engine writes it, token by token."""

    written: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)  # what ended it: none at the limit
    elicited: list[int] = field(default_factory=list)  # behind the elicitation


class Writer(ABC):
    """What every engine knows of its model.

    That is: which tokens end an answer, how much room there is, how an answer reads.
    Without a `batch_size` it answers as many prompts at once as memory allows. `status`
    is what a progress line says of workers, `failed` the reason of each prompt that
    they gave up, by key.
    """

    status = ""

    def __init__(self, loaded, batch_size: int | None):
        self.loaded = loaded
        self.model = loaded.model
        self.tokenizer = loaded.tokenizer
        self.batch_size = batch_size
        self.stops = stop_tokens(self.model, self.tokenizer)
        self.failed: dict[str, str] = {}

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Return one completion for each request as it finishes, in any order.

        Raises InputError at the call, before the first completion, for a prompt that
        the context has no room for, and for ARM that the engine cannot run.
        """
        following = positions_after(self.tokenizer, sampling)
        longest = max((len(request.input_ids) for request in requests), default=0)
        positions = longest + following
        if positions > self.loaded.context:
            raise InputError(
                f"{self.loaded.name} has room for {self.loaded.context} tokens, not for"
                f" a prompt of {longest} and {following} that may follow"
            )
        # The engine takes one setting of ARM after the other.
        by_arm: dict[Arm | None, list[Request]] = {}
        for request in requests:
            by_arm.setdefault(request.arm, []).append(request)
        for arm in filter(None, by_arm):
            self._accept(arm)
        return itertools.chain.from_iterable(
            self._stream(alike, sampling, positions) for alike in by_arm.values()
        )

    def _accept(self, arm: Arm) -> None:
        """Raise InputError where ARM cannot work."""
        activation_module(self.model, arm.layer)
        if arm.per_tensor:
            raise InputError(
                "answers take ARM's statistics of a sequence, not of a batch:"
                " statistics='sequence'"
            )

    @abstractmethod
    def _stream(
        self, requests: list[Request], sampling: Sampling, positions: int
    ) -> Iterator[Completion]:
        """Yield a completion for each request, all of one setting of ARM; none takes
        more positions.
        """

    @functools.cached_property
    def processor(self) -> str:
        """What this engine computes on."""
        return processor_name(self.loaded.device)

    def _decode(self, ids: list[int]) -> str:
        """Return tokens as text, also special ones: what begins another turn is one."""
        return self.tokenizer.decode(ids)

    def _closes_a_box(self, before: str, tokens: list[int]) -> bool:
        """Say whether tokens behind a text leave a box closed."""
        return last_box(before + self._decode(tokens)) is not None

    def _completion(
        self, request: Request, sampling: Sampling, answer: Answer
    ) -> Completion:
        """Return an answer as text, with the elicitation where that was appended."""
        text = self._decode(answer.written)
        if answer.elicited:
            text += sampling.elicit + self._decode(answer.elicited)
        return Completion(
            key=request.key,
            text=text,
            finish_reason="stop" if answer.end else "length",
            prompt_tokens=len(request.input_ids),
            completion_tokens=len(answer.written) + len(answer.elicited),
            elicited=bool(answer.elicited),
            token_ids=(*answer.written, *answer.end),
            processor=self.processor,
        )


def chunk_size(batch_size: int | None) -> int:
    """Return how many prompts go together where completions come chunk by chunk."""
    return CHUNK_BATCHES * (batch_size or ROOMY_BATCH)


def processor_name(device: str) -> str:
    """Return the name of a device of this machine, as rows keep it."""
    if device == "cpu":
        return f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(device)
