"""What goes into an engine, what comes out, and what the engines share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Request:
    """One prompt to complete; `seed` alone decides its random draws, whatever it is batched with.

    `begun` are tokens of an answer that was cut: it goes on behind them, and its text and length include them.
    """

    key: str
    input_ids: list[int]
    seed: int = 0
    begun: tuple[int, ...] = ()

    @property
    def fed(self) -> list[int]:
        """All tokens that go in before a new one is chosen."""
        return [*self.input_ids, *self.begun]


@dataclass(frozen=True)
class Sampling:
    """How to continue: greedy at temperature 0; `elicit` is appended to an answer without a box (Kojima 2022)."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    elicit: str = ""
    elicit_tokens: int = 12


@dataclass(frozen=True)
class Completion:
    """What a model wrote: `finish_reason` is stop, length (token limit) or context (no room left for it)."""

    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    elicited: bool = False


class Plan(NamedTuple):
    """How a call begins: who fits, who comes back at once, and what a prompt may be followed by."""

    fits: list[Request]
    cramped: list[Completion]  # empty, for prompts without room in the context
    elicit: list[int]  # the elicitation's tokens
    extra: int  # positions that follow a prompt at most


class Writer:
    """What every engine knows of its model: the tokens that end an answer, the room there is, how an answer reads."""

    def __init__(self, loaded, batch_size: int):
        self.loaded, self.model, self.tokenizer = loaded, loaded.model, loaded.tokenizer
        self.batch_size = batch_size
        declared = self.model.generation_config.eos_token_id
        stops = declared if isinstance(declared, list) else [declared]
        self.stops = {*stops, self.tokenizer.eos_token_id} - {None}

    def _plan(self, requests: Sequence[Request], sampling: Sampling) -> Plan:
        elicit = self.tokenizer(sampling.elicit, add_special_tokens=False)["input_ids"] if sampling.elicit else []
        extra = sampling.max_new_tokens + len(elicit) + sampling.elicit_tokens
        fits, cramped = [], []
        for request in requests:
            if len(request.input_ids) + extra <= self.loaded.context:
                fits.append(request)
            else:
                cramped.append(Completion(request.key, "", "context", len(request.input_ids), 0))
        return Plan(fits, cramped, elicit, extra)

    def _bytes_per_position(self) -> int:
        """Return the size of one position's keys and values in all layers."""
        config = self.model.config.get_text_config()
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        return 2 * config.num_hidden_layers * heads * width * self.model.dtype.itemsize

    def _decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def _completion(
        self, request: Request, sampling: Sampling, finish: str, written: list[int], after: list[int]
    ) -> Completion:
        """Return what was written, with the elicitation and what came `after` it, if anything."""
        text = self._decode(written) + (sampling.elicit + self._decode(after) if after else "")
        return Completion(request.key, text, finish, len(request.input_ids), len(written) + len(after), bool(after))
