"""The interface of all engines: a `Writer` turns requests into completions.

writer = engine_class("transformers")(loaded, batch_size=8)
completions = writer.complete([Request("key", input_ids)], Sampling(512))
"""

import importlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lib.arm.mlp_activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError, unknown
from lib.generation.stop_tokens import stop_tokens

# Batches per chunk: at the end of a chunk batches are no longer full, and an
# interrupted run loses its current chunk.
CHUNK_BATCHES = 4
# Prompts per batch that are assumed if only memory limits the batch.
UNLIMITED_BATCH = 256
# The engines: modules of this package, whose names end in _engine.
ENGINES = ("transformers", "vllm")


@dataclass(frozen=True)
class Request:
    """One prompt to complete.

    Its random draws depend only on its `seed`, and not on its batch.
    """

    key: str  # returned in its completion
    input_ids: list[int]
    seed: int = 0
    arm: Arm | None = None  # None: without ARM


@dataclass(frozen=True)
class Sampling:
    """The decoding settings: greedy at temperature 0, otherwise sampled.

    An answer without a closed \\boxed{...} is elicited: `elicit` is appended to it, and
    the model continues for at most `elicit_tokens` (Kojima et al. 2022).
    """

    max_new_tokens: int  # 0: the answer is only elicited
    temperature: float = 0.0
    top_p: float = 1.0  # probability of the nucleus from which tokens are drawn
    elicit: str = ""  # "": nothing is elicited
    elicit_tokens: int = 12


@dataclass(frozen=True)
class Completion:
    """The answer of a model to a request."""

    key: str  # of the request
    text: str  # with the elicitation and its continuation, without the end token
    finish_reason: str  # of the part before an elicitation: stop, or length (the limit)
    prompt_tokens: int
    # Generated tokens, without the end token and without the text of the elicitation.
    completion_tokens: int
    elicited: bool = False
    # The tokens before an elicitation, with the end token if there is one.
    token_ids: tuple[int, ...] = ()
    processor: str = ""  # name of the device that computed it, maybe in another machine


def elicitation_tokens(tokenizer: Any, sampling: Sampling) -> list[int]:
    """Return the tokens of `sampling.elicit`; empty if nothing is elicited."""
    if not sampling.elicit:
        return []
    return tokenizer(sampling.elicit, add_special_tokens=False)["input_ids"]


def positions_after(tokenizer: Any, sampling: Sampling) -> int:
    """Return the maximum number of positions that an answer may use after its
    prompt.
    """
    elicitation = elicitation_tokens(tokenizer, sampling)
    if not elicitation:
        return sampling.max_new_tokens
    return sampling.max_new_tokens + len(elicitation) + sampling.elicit_tokens


class Writer(ABC):
    """The base class of engines: it checks requests, and knows the tokens that end an
    answer.

    loaded: a model as the engine's `load` returns it (`lib.models.loading.Loaded`).
    batch_size: prompts that run at once; None: as many as fit into memory. gpus: the
    number of GPUs over which vLLM spreads the model.
    """

    def __init__(self, loaded, batch_size: int | None, gpus: int = 1):
        self.loaded = loaded
        self.model = loaded.model
        self.tokenizer = loaded.tokenizer
        self.batch_size = batch_size
        self.gpus = gpus
        self.stops = stop_tokens(self.model, self.tokenizer)

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Return an iterator over a completion for each request, in the order in which
        they finish.

        Raises InputError at the call, before anything is generated: for settings that
        generate no token, for a prompt that does not fit into the context, and for ARM
        settings that the engine cannot run.
        """
        elicits = sampling.elicit and sampling.elicit_tokens
        if sampling.max_new_tokens < 1 and not elicits:
            raise InputError(
                f"max_new_tokens is {sampling.max_new_tokens} and nothing is elicited,"
                " so there is nothing to generate: set max_new_tokens to at least 1"
            )
        following = positions_after(self.tokenizer, sampling)
        longest = max((len(request.input_ids) for request in requests), default=0)
        positions = longest + following
        if positions > self.loaded.context:
            raise InputError(
                f"{self.loaded.name} has room for {self.loaded.context} tokens, not for"
                f" a prompt of {longest} and {following} that may follow"
            )
        # ARM changes the model for a complete batch, so each batch has one setting.
        by_arm: dict[Arm | None, list[Request]] = {}
        for request in requests:
            by_arm.setdefault(request.arm, []).append(request)
        for arm in filter(None, by_arm):
            self._accept(arm)
        return itertools.chain.from_iterable(
            self._stream(group, sampling, positions) for group in by_arm.values()
        )

    def _accept(self, arm: Arm) -> None:
        """Raise InputError if the engine cannot run ARM with these settings."""
        activation_module(self.model, arm.layer)

    @abstractmethod
    def _stream(
        self, requests: list[Request], sampling: Sampling, positions: int
    ) -> Iterator[Completion]:
        """Yield a completion for each of these requests, which share one setting of
        ARM.

        positions: the maximum length of a prompt with its answer, in tokens.
        """


def chunk_size(batch_size: int | None) -> int:
    """Return the number of prompts that vLLM or a worker receives at once."""
    return CHUNK_BATCHES * (batch_size or UNLIMITED_BATCH)


def processor_name(device: str) -> str:
    """Return the name of a device of this machine, as stored in rows."""
    if device == "cpu":
        return f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(device)


def engine_class(name: str):
    """Return the class `Engine` of an engine.

    Raises InputError for a name that is not in ENGINES, and if the engine's packages
    are not installed.
    """
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    engine = importlib.import_module(f"lib.generation.{name}_engine").Engine
    engine.require_installed()
    return engine
