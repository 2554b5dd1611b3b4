"""The interface of all engines, a `Writer` that turns requests into completions; and
what engines share: the tokens that end an answer, and the `Row` of a running answer,
which decides the tokens that the model reads next and whether a box is elicited.

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

from lib.arm.mlp_activations import activation_module
from lib.arm.settings import Arm
from lib.errors import InputError, unknown
from lib.grading.extraction import last_box

# Batches per chunk: at the end of a chunk batches are no longer full, and an
# interrupted run loses its current chunk.
CHUNK_BATCHES = 4
# Prompts per batch that are assumed if only memory limits the batch.
UNLIMITED_BATCH = 256
# The engines: modules of this package, whose names end in _engine.
ENGINES = ("transformers", "vllm")
# A conversation whose template shows what ends a turn.
QUESTION = "What is the answer?"
THOUGHT = "Six times seven comes to mind."
ANSWER = "The answer is forty-two."


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


def stop_tokens(model: PreTrainedModel, tokenizer: Any) -> set[int]:
    """Return the tokens that end an answer: those of the generation config and the
    tokenizer, and the end of a turn in the chat template.

    Base models may have a chat template without declaring its end of a turn. Without
    that token they would continue with another turn.
    """
    declared = model.generation_config.eos_token_id
    several = declared if isinstance(declared, list) else [declared]
    return {*several, tokenizer.eos_token_id, *turn_end(tokenizer)} - {None}


def turn_end(tokenizer: Any) -> list[int]:
    """Return the special token that the chat template puts after an assistant's last
    turn, as a list; empty if there is none.

    If the template leaves the last turn open, the token after an earlier turn is
    returned. A token that the template also puts between thought and answer is never
    returned, because it would end the answer before it begins.
    """
    if not tokenizer.chat_template:
        return []
    question = {"role": "user", "content": QUESTION}
    # Templates read a thought from either field.
    thought = {"thinking": THOUGHT, "reasoning_content": THOUGHT}
    answer = {"role": "assistant", "content": ANSWER, **thought}
    # The assistant's turn as the last one, then followed by another turn.
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


def elicitation_tokens(tokenizer: Any, sampling: Sampling) -> list[int]:
    """Return the tokens of `sampling.elicit`; empty if nothing is elicited."""
    if not sampling.elicit:
        return []
    return _tokens(tokenizer, sampling.elicit)


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


class Row:
    """A running request, whose answer is written token by token.

    After the prompt, the engine passes the tokens in `feed` to the model, chooses the
    next token, and adds it with `take`, until that returns True.
    """

    def __init__(self, writer: Writer, request: Request, sampling: Sampling):
        self.writer = writer
        self.request = request
        self.sampling = sampling
        self.written: list[int] = []
        self.end: list[int] = []  # the end token; empty if the answer has none
        self.elicited: list[int] = []  # the tokens generated after the elicitation
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

        A coroutine: for each next token it yields the tokens that the model reads
        before, and receives the token that was chosen.
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
        """Return tokens as text, including special tokens: one of them may start
        another turn, whose text the grader must not read.
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
