"""The interface of all engines: a `Writer` with a model turns requests into
completions. The `Row` of a request decides how its answer continues and what ends it.

    writer = engine_class("transformers")(loaded, batch_size=8)
    completions = writer.complete([Request("key", input_ids)], Sampling(512))
"""

import importlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from lib.arm.activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.grading.extraction import last_box

# Batches per chunk: at the end of a chunk batches are no longer full, and an
# interrupted run loses its current chunk.
CHUNK_BATCHES = 4
# Assumed prompts per batch if it is as large as memory allows.
ROOMY_BATCH = 256
# A conversation whose template shows what ends a turn.
QUESTION = "What is the answer?"
THOUGHT = "Six times seven comes to mind."
ANSWER = "The answer is forty-two."


@dataclass(frozen=True)
class Request:
    """One prompt to complete.

    Only its `seed` decides its draws, whatever its batch.
    """

    key: str
    input_ids: list[int]
    seed: int = 0
    arm: Arm | None = None  # settings of ARM for this request


@dataclass(frozen=True)
class Sampling:
    """The decoding settings: greedy at temperature 0, otherwise sampled.

    `elicit` is appended to an answer without a box, which then continues for a few
    tokens (Kojima et al. 2022).
    """

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    elicit: str = ""
    elicit_tokens: int = 12


@dataclass(frozen=True)
class Completion:
    """The text that a model wrote.

    `finish_reason` is stop or length (the token limit). `token_ids` are the answer's
    tokens before an elicitation, including the end token, which the text omits and
    `completion_tokens` does not count. `processor` is the device that computed it,
    possibly on another machine.
    """

    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    elicited: bool = False
    token_ids: tuple[int, ...] = ()
    processor: str = ""


def elicitation_tokens(tokenizer: Any, sampling: Sampling) -> list[int]:
    """Return the tokens of the text that is appended to an answer without a box."""
    return _tokens(tokenizer, sampling.elicit) if sampling.elicit else []


def positions_after(tokenizer: Any, sampling: Sampling) -> int:
    """Return the maximum number of positions that an answer may use after its
    prompt.
    """
    elicitation = elicitation_tokens(tokenizer, sampling)
    if not elicitation:
        return sampling.max_new_tokens
    return sampling.max_new_tokens + len(elicitation) + sampling.elicit_tokens


class Row:
    """A running request, whose answer is written token by token.

    `feed` are the tokens to give to the model before it chooses the next one, which
    `take` receives.
    """

    def __init__(self, writer: "Writer", request: Request, sampling: Sampling):
        self.writer = writer
        self.request = request
        self.sampling = sampling
        self.written: list[int] = []
        self.end: list[int] = []  # the end token, if the answer has one
        self.elicited: list[int] = []  # after the elicitation
        self.writing = self._write()
        self.feed = next(self.writing)

    def take(self, token: int) -> bool:
        """Add the next token of the answer; return whether the answer is finished."""
        try:
            self.feed = self.writing.send(token)
        except StopIteration:
            return True
        return False

    def _write(self) -> Generator[list[int], int, None]:
        """Write the answer, then elicit a box if it has none.

        Yields the tokens to feed before each next token, and receives that token.
        """
        sampling = self.sampling
        stops = self.writer.stops
        feed: list[int] = []
        while not self.end and len(self.written) < sampling.max_new_tokens:
            token = yield feed
            if token in stops:
                self.end = [token]
                feed = []
            else:
                self.written.append(token)
                feed = [token]
        if not sampling.elicit or self._closes_a_box("", self.written):
            return

        feed = [*feed, *elicitation_tokens(self.writer.tokenizer, sampling)]
        while len(self.elicited) < sampling.elicit_tokens:
            token = yield feed
            if token in stops:
                return
            self.elicited.append(token)
            feed = [token]
            if self._closes_a_box(sampling.elicit, self.elicited):
                return

    def _text(self, ids: list[int]) -> str:
        """Return tokens as text, including special tokens, since one of them may start
        another turn.
        """
        return self.writer.tokenizer.decode(ids)

    def _closes_a_box(self, before: str, tokens: list[int]) -> bool:
        """Return whether tokens after a text close a box."""
        return last_box(before + self._text(tokens)) is not None

    def completion(self) -> Completion:
        """Return the answer as text, with the elicitation if one was appended."""
        text = self._text(self.written)
        if self.elicited:
            text += self.sampling.elicit + self._text(self.elicited)
        return Completion(
            key=self.request.key,
            text=text,
            finish_reason="stop" if self.end else "length",
            prompt_tokens=len(self.request.input_ids),
            completion_tokens=len(self.written) + len(self.elicited),
            elicited=bool(self.elicited),
            token_ids=(*self.written, *self.end),
            processor=processor_name(self.writer.loaded.device),
        )


class Writer(ABC):
    """The common part of engines: the tokens that end an answer, and the available
    context.

    Without a `batch_size`, as many prompts run at once as memory allows; `gpus` is the
    number of GPUs that it may use.
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
        """Return one completion for each request as it finishes, in any order.

        Raises InputError at the call, before the first completion, for a prompt that
        does not fit into the context, and for ARM settings that the engine cannot run.
        """
        following = positions_after(self.tokenizer, sampling)
        longest = max((len(request.input_ids) for request in requests), default=0)
        positions = longest + following
        if positions > self.loaded.context:
            raise InputError(
                f"{self.loaded.name} has room for {self.loaded.context} tokens, not for"
                f" a prompt of {longest} and {following} that may follow"
            )
        # The engine runs one setting of ARM after the other.
        by_arm: dict[Arm | None, list[Request]] = {}
        for request in requests:
            by_arm.setdefault(request.arm, []).append(request)
        for arm in filter(None, by_arm):
            self._accept(arm)
        return itertools.chain.from_iterable(
            self._stream(alike, sampling, positions) for alike in by_arm.values()
        )

    def _accept(self, arm: Arm) -> None:
        """Raise InputError if the engine cannot run ARM with these settings."""
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
        """Yield a completion for each request, all with one setting of ARM; none uses
        more positions.
        """


def chunk_size(batch_size: int | None) -> int:
    """Return the number of prompts per chunk."""
    return CHUNK_BATCHES * (batch_size or ROOMY_BATCH)


def processor_name(device: str) -> str:
    """Return the name of a device of this machine, as stored in rows."""
    if device == "cpu":
        return f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    return torch.cuda.get_device_name(device)


def stop_tokens(model: PreTrainedModel, tokenizer: Any) -> set[int]:
    """Return the tokens that end an answer.

    Base models may have a chat template without declaring the end of its turns: without
    that token they would continue with another turn.
    """
    declared = model.generation_config.eos_token_id
    several = declared if isinstance(declared, list) else [declared]
    return {*several, tokenizer.eos_token_id, *turn_end(tokenizer)} - {None}


def turn_end(tokenizer: Any) -> list[int]:
    """Return the special token that the chat template puts after an assistant's last
    turn, as a list; empty if there is none.

    An earlier turn may end with another token, which the model also writes after its
    thought and before its answer. It is used if the template leaves the last turn open.
    A token between thought and answer never ends an answer.
    """
    if not tokenizer.chat_template:
        return []
    question = {"role": "user", "content": QUESTION}
    # Templates read a thought from either field.
    thought = {"thinking": THOUGHT, "reasoning_content": THOUGHT}
    answer = {"role": "assistant", "content": ANSWER, **thought}
    for turns in ([question, answer], [question, answer, question]):
        try:
            text = tokenizer.apply_chat_template(turns, tokenize=False)
        except Exception:  # a template is a program, which may raise anything
            continue
        before, _, behind = text.partition(ANSWER)
        end = _tokens(tokenizer, behind.lstrip())[:1]
        if end and end[0] in tokenizer.added_tokens_decoder:
            between = _tokens(tokenizer, before.partition(THOUGHT)[2])
            return [] if end[0] in between else end
    return []


def _tokens(tokenizer: Any, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def engine_class(name: str):
    """Return the class of an engine.

    Raises InputError if its packages are not installed.
    """
    return importlib.import_module(f"lib.generation.{name}").Engine
