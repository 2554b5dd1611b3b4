"""What every engine has in common: a `Writer` completes requests with its model."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import torch
from transformers import PretrainedConfig

from lib.arm.activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.requests import (
    Completion,
    Request,
    Sampling,
    elicitation_tokens,
    positions_after,
)


@dataclass
class Answer:
    """An answer as an engine writes it, token by token."""

    written: list[int]
    end: list[int]  # the token that ended it, none at the token limit
    elicited: list[int]  # what was written behind the elicitation
    finish_reason: str = ""  # empty while it goes on


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
