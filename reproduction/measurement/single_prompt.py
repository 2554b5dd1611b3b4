"""Measure the attention that every token of a single prompt receives, and how an
insertion changes it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr

from lib.attention.received import received_attention
from lib.models.loading import Loaded
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from reproduction.measurement.attention_changes import (
    Prompts,
    averaged_tokens,
    lambda_of,
)


def received_by(loaded: Loaded, prompt: Prompt, layers: Sequence[int]) -> np.ndarray:
    """Return the attention that each token of one prompt receives, (L, H, T); NaN for
    the last one.
    """
    received = received_attention(loaded.model, prompt.input_ids, layers)
    return received[0].cpu().numpy()


class PromptChanges(NamedTuple):
    """Received attention in one prompt without and with an insertion, by the T tokens
    of the prompt with it.
    """

    prompt: Prompt  # with the insertion
    before: np.ndarray  # without it, (L, H, T), NaN at inserted and merged tokens
    after: np.ndarray  # with it, (L, H, T)
    ratios: np.ndarray  # lambda, (L, H)


def changes_in_prompt(
    loaded: Loaded,
    problem: str,
    filler: Filler,
    layers: Sequence[int],
    format: str = "plain",
) -> PromptChanges:
    """Return the received attention in the prompt of a problem without and with a
    filler.

    layers: counted from 1. Raises InputError if the prompt cannot be built.
    """
    plain = build_prompt(loaded.tokenizer, problem, "none", format=format)
    prompt = build_prompt(
        loaded.tokenizer, problem, "mless", format=format, filler=filler
    )
    after = received_by(loaded, prompt, layers)
    before = np.full_like(after, np.nan)
    without = received_by(loaded, plain, layers)
    before[..., prompt.original] = without[..., prompt.counterparts]
    inner, _ = averaged_tokens(prompt)
    old, new = (torch.from_numpy(received[..., inner]) for received in (before, after))
    return PromptChanges(prompt, before, after, lambda_of(old, new).numpy())


def measure_tokens(
    loaded: Loaded, prompts: Prompts, layers: Sequence[int]
) -> xr.Dataset:
    """Return the variables `tokens` (reproduction.measurement.dataset): the attention
    that every token of one problem's prompts receives in every head of these layers.
    """
    examples = [prompt for of in prompts.values() for prompt in of.values()]
    by_condition = []
    for prompt, parts in zip(examples, comparable_parts(examples), strict=True):
        received = received_by(loaded, prompt, layers)
        tokens = xr.Dataset(coords={"token": range(len(prompt))})
        tokens["received"] = (("layer", "head", "token"), received)
        tokens["part"] = ("token", np.array(parts, object))
        by_condition.append(tokens)
    nothing = {"part": ""}  # the part of tokens beyond the end of a shorter prompt
    together = xr.concat(by_condition, "condition", join="outer", fill_value=nothing)
    return together.assign_coords(
        condition=list(prompts), layer=list(layers), head=range(1, loaded.heads + 1)
    )


def comparable_parts(prompts: Sequence[Prompt]) -> list[list[str]]:
    """Return the parts of each prompt's tokens, in which an original token that another
    prompt lacks is "merged", so that the others are the same tokens in all prompts.

    prompts: of one problem, under several conditions.
    """
    everywhere = set.intersection(*({*p.counterparts.tolist()} for p in prompts))
    by_prompt = []
    for prompt in prompts:
        parts = prompt.parts
        twins = zip(prompt.original.tolist(), prompt.counterparts.tolist(), strict=True)
        for index, twin in twins:
            if twin not in everywhere:
                parts[index] = "merged"
        by_prompt.append(parts)
    return by_prompt
