"""What an engine is asked for and what it gives back: requests in, completions out."""

from dataclasses import dataclass
from typing import Any

from lib.arm.settings import Arm


@dataclass(frozen=True)
class Request:
    """One prompt to complete.

    Its `seed` alone decides what is drawn for it, whatever it is batched with.
    """

    key: str
    input_ids: list[int]
    seed: int = 0
    arm: Arm | None = None  # how ARM changes the model for it


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

    `finish_reason` is stop or length (the token limit). `token_ids` are the answer's
    tokens before an elicitation, with the one that ended it, which the text leaves out
    and `completion_tokens` does not count.
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


def elicitation_tokens(tokenizer: Any, sampling: Sampling) -> list[int]:
    """Return the tokens of the text that is appended to an answer without a box."""
    if not sampling.elicit:
        return []
    return tokenizer(sampling.elicit, add_special_tokens=False)["input_ids"]


def positions_after(tokenizer: Any, sampling: Sampling) -> int:
    """Return how many positions an answer may take behind its prompt."""
    elicitation = elicitation_tokens(tokenizer, sampling)
    if not elicitation:
        return sampling.max_new_tokens
    return sampling.max_new_tokens + len(elicitation) + sampling.elicit_tokens
