"""What a reader may look at head by head: λ over problems, and what every token of one prompt receives.

An explorer is a Dataset of one model with the dimensions condition (none first), layer, head and token:

    received         (condition, layer, head, token) float32, NaN for the last token and beyond the prompt
    even             (condition, token) what attention spread evenly over all earlier tokens would give
    text, part       (condition, token) the tokens, and which part of the prompt each is of; "" beyond the prompt
    ratio, low, high (condition, layer, head) λ with its interval over `n` problems, NaN for none
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.attention.received import received_attention
from lib.models.loading import Loaded
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

LAMBDA = {"lambda": "ratio", "low": "low", "high": "high"}


def explore(
    loaded: Loaded, problem: Problem, lambdas: pd.DataFrame, *, format: str = "plain", filler: Filler | None = None
) -> xr.Dataset:
    """Return the explorer of one model on one problem; lambdas: its rows of `heads_table`, with the insertions to show.

    Costs a forward up to the deepest layer per condition. Raises InputError for a prompt too long for the model.
    """
    conditions = ["none", *dict.fromkeys(lambdas.condition)]
    layers = sorted(set(lambdas.layer))
    prompts = [build_prompt(loaded.tokenizer, problem.problem, c, format=format, filler=filler) for c in conditions]
    longest = max(map(len, prompts))
    received = np.full((len(prompts), len(layers), loaded.heads, longest), np.nan, dtype="float32")
    for row, prompt in zip(received, prompts, strict=True):
        row[..., : len(prompt)] = received_attention(loaded.model, prompt.input_ids, layers)[0].cpu().numpy()
    by_token = {
        "even": [_padded(even_attention(len(prompt)), longest, np.nan) for prompt in prompts],
        "text": [_padded(_texts(prompt), longest, "") for prompt in prompts],
        "part": [_padded(_parts(prompt), longest, "") for prompt in prompts],
    }
    explorer = xr.Dataset(
        {"received": (("condition", "layer", "head", "token"), received)}
        | {name: (("condition", "token"), np.array(rows)) for name, rows in by_token.items()},
        {"condition": conditions, "layer": layers, "head": range(1, loaded.heads + 1)},
        {"model": loaded.name, "revision": loaded.revision, "dtype": loaded.dtype, "problem": problem.id}
        | {"n": int(lambdas.n.iloc[0])},
    )
    ratios = lambdas.set_index(["condition", "layer", "head"])[list(LAMBDA)].rename(columns=LAMBDA).to_xarray()
    return explorer.merge(ratios.reindex(condition=conditions))


def even_attention(tokens: int) -> np.ndarray:
    """Return (T,) what each token would receive if every token attended evenly to itself and all before it."""
    shares = 1 / np.arange(1, tokens + 1)
    later = shares.sum() - shares.cumsum()
    return np.append(later[:-1] / np.arange(tokens - 1, 0, -1), np.nan)


def _texts(prompt: Prompt) -> list[str]:
    return [prompt.text[start:stop] for start, stop in prompt.offsets]


def _parts(prompt: Prompt) -> list[str]:
    parts = np.full(len(prompt), "template", dtype=object)
    for name, span in sorted(prompt.spans.items(), key=lambda item: item[0] == "inserted"):  # it lies in another
        parts[span] = name
    return list(parts)


def _padded(values: Sequence, length: int, filler: object) -> list:
    return [*values, *[filler] * (length - len(values))]
