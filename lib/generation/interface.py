"""What goes into an engine and what comes out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """One prompt to complete; `seed` alone decides its random draws, whatever it is batched with."""

    key: str
    input_ids: list[int]
    seed: int = 0


@dataclass(frozen=True)
class Sampling:
    """How to continue: greedy at temperature 0; `elicit` is appended to an answer without a box (Kojima 2022)."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    elicit: str | None = None
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
