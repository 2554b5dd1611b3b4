"""Prompts in, completions out: one small interface, two engines, here or in workers.

An engine is a module with a `Writer` named `Engine(loaded, batch_size, **options)`. Its
`load` turns a model that was loaded without weights into one that the engine can run,
its `_accept` refuses what it cannot run, and its `_stream` writes.

    transformers  the project's own batches; a step of them is in `step`, the cache of
                  the rows in `slots`, prompts go in by `prefill`, tokens are chosen in
                  `drawing`, norms are one kernel each by `norms`
    vllm          the same interface over vLLM; `vllm_arm` is ARM inside its processes
    workers       either of them in many processes, on this machine or a cluster
"""

import functools
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from transformers import PretrainedConfig

from lib.arm.activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError


@dataclass(frozen=True)
class Request:
    """One prompt to complete.

    Its `seed` alone decides what is drawn for it, whatever it is batched with. It may
    resume an answer that was cut: the completion goes on behind `resumed_tokens`, and
    its text and length include them.
    """

    key: str
    input_ids: list[int]
    seed: int = 0
    arm: Arm | None = None  # how ARM changes the model for it
    resumed_tokens: tuple[int, ...] = ()  # none under ARM

    @property
    def input_tokens(self) -> list[int]:
        """All tokens that go in before a new one is chosen."""
        return [*self.input_ids, *self.resumed_tokens]


@dataclass(frozen=True)
class Sampling:
    """How to continue: greedily at temperature 0, else by draws.

    `elicit` is appended to an answer without a box, which then goes on for a few tokens
    (Kojima et al. 2022).
    """

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    elicit: str = ""
    elicit_tokens: int = 12


@dataclass(frozen=True)
class Completion:
    """What a model wrote.

    `finish_reason` is stop, length (the token limit) or context (the model has no room
    for the prompt). `token_ids` are the answer's tokens before an elicitation, with the
    one that ended it, which the text leaves out and `completion_tokens` does not count.
    `processor` is what it was computed on, which may be another machine's.
    """

    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    elicited: bool = False
    token_ids: tuple[int, ...] = ()
    processor: str = ""


@dataclass
class Answer:
    """An answer as an engine writes it, token by token."""

    written: list[int]
    end: list[int]  # the token that ended it, none at the token limit
    elicited: list[int]  # what was written behind the elicitation
    finish_reason: str = ""  # empty while it goes on


def elicitation_tokens(tokenizer: Any, sampling: Sampling) -> list[int]:
    """Return the tokens of the text that is appended to an answer without a box."""
    if not sampling.elicit:
        return []
    return tokenizer(sampling.elicit, add_special_tokens=False)["input_ids"]


def positions_after(tokenizer: Any, sampling: Sampling) -> int:
    """Return how many positions an answer may take behind its prompt."""
    elicitation = len(elicitation_tokens(tokenizer, sampling))
    return sampling.max_new_tokens + elicitation + sampling.elicit_tokens


class Writer(ABC):
    """What every engine knows of its model.

    That is: which tokens end an answer, how much room there is, how an answer reads.
    Without a `batch_size` it answers as many prompts at once as memory allows. `status`
    is what a progress line says of workers, `failed` the reason of each prompt that
    they gave up, by key.
    """

    status = ""
    failed: Mapping[str, str] = MappingProxyType({})

    def __init__(self, loaded, batch_size: int | None):
        self.loaded = loaded
        self.model = loaded.model
        self.tokenizer = loaded.tokenizer
        self.batch_size = batch_size
        declared = self.model.generation_config.eos_token_id
        stops = declared if isinstance(declared, list) else [declared]
        self.stops = {*stops, self.tokenizer.eos_token_id} - {None}

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Return one completion for each request as it finishes, in any order.

        One for which the context has no room comes back empty. Raises InputError at the
        call, before the first completion, where the engine cannot run ARM.
        """
        elicitation = elicitation_tokens(self.tokenizer, sampling)
        following = positions_after(self.tokenizer, sampling)

        # The engine takes one setting of ARM after the other.
        by_arm: dict[Arm | None, list[Request]] = {}
        without_room = []
        for request in requests:
            if len(request.input_ids) + following <= self.loaded.context:
                by_arm.setdefault(request.arm, []).append(request)
            else:
                without_room.append(request)

        positions = {
            arm: max(len(request.input_ids) for request in group) + following
            for arm, group in by_arm.items()
        }
        for arm in by_arm:
            self._accept(arm, positions[arm])

        def completions() -> Iterator[Completion]:
            for request in without_room:
                nothing = Answer([], [], [], finish_reason="context")
                yield self._completion(request, sampling, nothing)
            for arm, group in by_arm.items():
                yield from self._stream(group, sampling, elicitation, positions[arm])

        return completions()

    def _accept(self, arm: Arm | None, positions: int) -> None:
        """Raise InputError where ARM cannot work.

        `positions`: how many a prompt of this setting takes at most, with what follows.
        """
        if arm is None:
            return
        activation_module(self.model, arm.layer)
        if arm.per_tensor:
            raise InputError(
                "answers take ARM's statistics of a sequence, not of a batch:"
                " statistics='sequence'"
            )

    @abstractmethod
    def _stream(
        self,
        requests: list[Request],
        sampling: Sampling,
        elicitation: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        """Yield a completion for each request, all of one setting of ARM."""

    def _bytes_per_position(self) -> int:
        """Return the size of one position's keys and values in all layers."""
        whole = self.model.config.get_text_config()
        # Some families, such as Gemma 4, have heads of another width in some layers.
        layers = getattr(whole, "per_layer_config", None)
        numbers = sum(map(_key_numbers, layers or [whole] * whole.num_hidden_layers))
        return 2 * numbers * self.model.dtype.itemsize

    @functools.cached_property
    def processor(self) -> str:
        """What this engine computes on."""
        return processor_name(self.loaded.device)

    def _decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)

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
            finish_reason=answer.finish_reason,
            prompt_tokens=len(request.input_ids),
            completion_tokens=len(answer.written) + len(answer.elicited),
            elicited=bool(answer.elicited),
            token_ids=(*answer.written, *answer.end),
            processor=self.processor,
        )


def processor_name(device: str) -> str:
    """Return the name of a device of this machine, as rows keep it."""
    if device == "cpu":
        return f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(device)


def _key_numbers(layer: PretrainedConfig) -> int:
    """Return how many numbers the keys of one position have in a layer."""
    heads = getattr(layer, "num_key_value_heads", None) or layer.num_attention_heads
    width = getattr(layer, "head_dim", None)
    return heads * (width or layer.hidden_size // layer.num_attention_heads)


def engine_class(name: str):
    """Return the class of an engine.

    Raises InputError when what it needs is not installed.
    """
    return importlib.import_module(f"lib.generation.{name}").Engine


def workers_class():
    """Return the class `Workers`; raises InputError when Ray is not installed."""
    return importlib.import_module("lib.generation.workers").Workers


def make_engine(name: str, loaded, batch_size: int | None, options: dict[str, int]):
    """Return the engine called `name`, ready for prompts.

    Raises InputError for an option that it does not have.
    """
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)[2:]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"engine {name} has no option {unknown[0]!r}: choose from"
            f" {', '.join(known) or '(none)'}"
        )
    return engine(loaded, batch_size, **options)
