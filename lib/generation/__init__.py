"""Prompts in, completions out, through one small interface with two engines, here or in
many processes.

An engine is a module with a `Writer` named `Engine(loaded, batch_size, **options)`,
whose `load` gives what it asks of a model in this process. Its `_accept` refuses what
it cannot run, and its `_stream` writes.
"""

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lib.arm.activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError


@dataclass(frozen=True)
class Request:
    """One prompt to complete; `seed` alone decides its random draws, whatever it is
    batched with.

    `resumed_tokens` are tokens of an answer that was cut: it goes on behind them, and its text
    and length include them.
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
    """How to continue: greedy at temperature 0; `elicit` is appended to an answer
    without a box (Kojima 2022).
    """

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    elicit: str = ""
    elicit_tokens: int = 12


@dataclass(frozen=True)
class Completion:
    """What a model wrote: `finish_reason` is stop, length (token limit) or context (no
    room left for it).

    `token_ids` are the answer's tokens before an elicitation, with the one that ended
    it, which the text leaves out and `completion_tokens` does not count.
    """

    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    elicited: bool = False
    token_ids: tuple[int, ...] = ()


class Writer(ABC):
    """What every engine knows of its model: the tokens that end an answer, the room
    there is, how an answer reads.
    """

    def __init__(self, loaded, batch_size: int):
        self.loaded, self.model, self.tokenizer = loaded, loaded.model, loaded.tokenizer
        self.batch_size = batch_size
        declared = self.model.generation_config.eos_token_id
        stops = declared if isinstance(declared, list) else [declared]
        self.stops = {*stops, self.tokenizer.eos_token_id} - {None}

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Return one completion for each request as it finishes, in any order.

        One whose context has no room comes back empty. Raises InputError at the call
        where the engine cannot run ARM.
        """
        elicit = (
            self.tokenizer(sampling.elicit, add_special_tokens=False)["input_ids"]
            if sampling.elicit
            else []
        )
        extra = (
            sampling.max_new_tokens + len(elicit) + sampling.elicit_tokens
        )  # positions that may follow a prompt
        fits: dict[Arm | None, list[Request]] = {}
        cramped = []
        for request in requests:
            if len(request.input_ids) + extra <= self.loaded.context:
                fits.setdefault(request.arm, []).append(request)
            else:
                cramped.append(
                    Completion(request.key, "", "context", len(request.input_ids), 0)
                )
        longest = {
            arm: max(len(request.input_ids) for request in some) + extra
            for arm, some in fits.items()
        }
        for arm, positions in longest.items():
            self._accept(arm, positions)

        def completions() -> Iterator[Completion]:
            yield from cramped
            for arm, some in fits.items():
                yield from self._stream(some, sampling, elicit, longest[arm])

        return completions()

    def _accept(self, arm: Arm | None, positions: int) -> None:
        """Raise InputError where ARM cannot work; its prompts, with what follows, take
        so many positions at most.
        """
        if arm:
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
        elicit: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        """Yield a completion for each request, all of one setting of ARM; `elicit`: the
        elicitation's tokens.
        """

    def _bytes_per_position(self) -> int:
        """Return the size of one position's keys and values in all layers."""
        config = self.model.config.get_text_config()
        width = (
            getattr(config, "head_dim", None)
            or config.hidden_size // config.num_attention_heads
        )
        heads = (
            getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        )
        return 2 * config.num_hidden_layers * heads * width * self.model.dtype.itemsize

    def _decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def _completion(
        self,
        request: Request,
        sampling: Sampling,
        finish: str,
        written: list[int],
        end: list[int],
        after: list[int],
    ) -> Completion:
        """Return what was written up to its `end`, the token that stopped it, if one
        did, with the elicitation and what came `after` that, if anything.
        """
        text = self._decode(written) + (
            sampling.elicit + self._decode(after) if after else ""
        )
        return Completion(
            request.key,
            text,
            finish,
            len(request.input_ids),
            len(written) + len(after),
            bool(after),
            (*written, *end),
        )


def engine_class(name: str):
    """Return the class of an engine; raises InputError when what it needs is not
    installed.
    """
    return importlib.import_module(f"lib.generation.{name}").Engine


def workers_class():
    """Return the class `Workers`; raises InputError when Ray is not installed."""
    return importlib.import_module("lib.generation.workers").Workers


def make_engine(name: str, loaded, batch_size: int, options: dict[str, int]):
    """Return the engine called `name`, ready for prompts; raises InputError for an
    option that it does not have.
    """
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)[2:]
    if missing := [option for option in options if option not in known]:
        raise InputError(
            f"engine {name} has no option {missing[0]!r}: choose from"
            f" {', '.join(known) or '(none)'}"
        )
    return engine(loaded, batch_size, **options)
