"""How insertions change what the original tokens receive, and what is received instead.

For a problem, a layer and a head, lambda is the mean received attention of the original
tokens with the insertion over the same without (the paper's W' = lambda W, Sec. 3). The
first token is left out because it takes most of the mass whatever follows, the last
because no later token looks at it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import (
    Observation,
    observe,
    received_attention,
)
from lib.errors import InputError
from lib.measurement.variables import stacked, to_dataset
from lib.models.loading import Loaded
from lib.prompts.batches import batch_tokens, in_batches, pad
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

# Of which tokens lambda is told.
SPANS = ["original", "problem", "instruction"]
# Which later tokens attend to them: every one, or those that both prompts have.
QUERIES = ["all", "original"]
ALL, ORIGINAL = 0, 1  # their places
Prompts = dict[str, dict[str, Prompt]]  # by condition, none first, and by problem


def prompts_of(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    format: str = "plain",
    filler: Filler | None = None,
) -> Prompts:
    """Return the prompts of all problems under none and these conditions."""
    prompts: Prompts = {}
    for condition in dict.fromkeys(["none", *conditions]):
        prompts[condition] = {}
        for problem in problems:
            prompts[condition][problem.id] = build_prompt(
                loaded.tokenizer,
                problem.problem,
                condition,
                format=format,
                filler=filler,
            )
    return prompts


class Seen(NamedTuple):
    """What one forward showed of the tokens of a prompt."""

    problem: str
    # What the original tokens but the first and last receive, (L, H, R, n).
    original: torch.Tensor
    # What the inserted tokens receive, (L, H, R, n).
    inserted: torch.Tensor
    # The values of the inserted tokens, L times (K, n, D).
    values: list[torch.Tensor]


def measure_attention(
    loaded: Loaded,
    prompts: Prompts,
    layers: Sequence[int] | None = None,
    observing: Callable[..., Observation] = observe,
) -> xr.Dataset:
    """Return the variables `attention` of each condition against none.

    `layers` None: all that are loaded. Costs one forward up to the deepest layer per
    prompt. Raises InputError for a prompt too long for the model and for weights that
    give no finite attention, naming the problem.
    """
    layers = list(layers or range(1, loaded.layers + 1))
    plain = prompts["none"]
    conditions = [condition for condition in prompts if condition != "none"]
    coords = {
        "condition": conditions,
        "problem": list(plain),
        "layer": layers,
        "head": range(1, loaded.heads + 1),
        "span": SPANS,
        "query": QUERIES,
    }
    # By problem: what the original tokens but the first and last receive under none.
    before: dict[str, torch.Tensor] = {}
    for seen in _observed(loaded, "none", plain, layers, observing):
        before[seen.problem] = seen.original[:, :, ALL]

    by_condition = []
    for condition in conditions:
        by_problem: dict[str, dict[str, np.ndarray]] = {}
        of_condition = prompts[condition]
        for seen in _observed(loaded, condition, of_condition, layers, observing):
            parts = plain[seen.problem].parts[1:-1]
            variables = _compared(parts, before[seen.problem], seen)
            by_problem[seen.problem] = variables
        in_order = [by_problem[problem] for problem in plain]
        by_condition.append(stacked(in_order))
    return to_dataset("attention", stacked(by_condition), coords)


def _observed(
    loaded: Loaded,
    condition: str,
    prompts: Mapping[str, Prompt],
    layers: Sequence[int],
    observing: Callable[..., Observation],
) -> Iterator[Seen]:
    """Yield what each problem's prompt shows, the longest prompts first."""
    problems = list(prompts)

    def run(indices: list[int]) -> Observation:
        batch = [prompts[problems[i]] for i in indices]
        tokens, lengths = pad([prompt.input_ids for prompt in batch])
        queries = _query_sets(batch, tokens.shape[1])
        return observing(
            loaded.model, tokens, layers, lengths, queries=queries, values=True
        )

    stage = f"{loaded.name}, attention under {condition} in {len(layers)} layers"
    lengths = [len(prompt) for prompt in prompts.values()]
    batches = in_batches(lengths, run, batch_tokens(loaded.device))
    with progress.bar(stage, len(problems)) as bar:
        for indices, observation in batches:
            for row, i in enumerate(indices):
                seen = _seen(problems[i], prompts[problems[i]], observation, row)
                if not seen.original.isfinite().all():
                    raise InputError(
                        f"{loaded.name} gives NaN attention on problem {seen.problem}"
                    )
                yield seen
                bar.update()


def _query_sets(batch: Sequence[Prompt], tokens: int) -> torch.Tensor:
    """Return (B, R, T), which tokens of prompts are queries of each kind of QUERIES."""
    queries = torch.ones((len(batch), len(QUERIES), tokens), dtype=torch.bool)
    for row, prompt in enumerate(batch):
        queries[row, ORIGINAL, prompt.spans["inserted"]] = False
    return queries


def _seen(problem: str, prompt: Prompt, observation: Observation, row: int) -> Seen:
    """Return what a row of a batch shows of a problem's prompt."""
    received = observation.received[row]  # (L, H, R, T)
    inserted = prompt.spans["inserted"]
    original = received[..., prompt.original[1:-1]]
    values = [of_layer[row][:, inserted] for of_layer in observation.values]
    return Seen(problem, original, received[..., inserted], values)


def _compared(
    parts: list[str], before: torch.Tensor, seen: Seen
) -> dict[str, np.ndarray]:
    """Return the variables `attention` of one prompt against that without insertion.

    parts: those that the original tokens are of; before: what they receive without
    (L, H, n); seen: the prompt with the insertion.
    """
    # From all later tokens, (L, H, n).
    to_original = seen.original[:, :, ALL]
    to_inserted = seen.inserted[:, :, ALL]

    # What a token of either kind receives, and how unevenly, (L, H).
    level = to_original.mean(-1)
    deviation = to_original.std(-1, correction=0)
    inserted_level = to_inserted.mean(-1)
    inserted_deviation = to_inserted.std(-1, correction=0)

    log_ratio = (to_original.double() / before).log()
    variables: dict[str, torch.Tensor] = {}
    variables["lambda"] = level.double() / before.mean(-1).double()
    variables["irregularity"] = log_ratio.std(-1, correction=0)
    variables["unevenness"] = deviation / level
    variables["mass"] = seen.inserted[:, :, ORIGINAL].sum(-1)
    variables["flatness"] = inserted_deviation / inserted_level
    variables["dispersion"] = _dispersion(seen.values, heads=before.shape[1])
    variables["portion"] = inserted_level / level
    variables["lambda_over_heads"] = _lambda_over_heads(parts, before, seen.original)
    return {name: tensor.cpu().numpy() for name, tensor in variables.items()}


def _dispersion(values: list[torch.Tensor], heads: int) -> torch.Tensor:
    """Return (L, H), how far values lie from their mean, over how far from zero.

    values: L times (K, n, D); each of the K key heads serves as many of the heads.
    """
    by_layer = []
    for of_layer in values:
        vectors = of_layer.float()
        from_mean = vectors - vectors.mean(1, keepdim=True)
        from_zero = vectors.square().sum((1, 2))
        share = from_mean.square().sum((1, 2)) / from_zero
        heads_of_a_key_head = heads // len(vectors)
        by_layer.append(share.sqrt().repeat_interleave(heads_of_a_key_head))
    return torch.stack(by_layer)


def _lambda_over_heads(
    parts: list[str], before: torch.Tensor, after: torch.Tensor
) -> torch.Tensor:
    """Return lambda of SPANS and QUERIES, (L, span, query), NaN of a span without any
    token.

    It is a ratio of means over heads, since one head that gives a span next to nothing
    would decide a mean of ratios. parts: those that the original tokens are of; before,
    after: what they receive without (L, H, n) and with the insertion (L, H, R, n).
    """
    by_span = []
    for span in SPANS:
        inside = torch.tensor([span in ("original", part) for part in parts])
        old = before[..., inside].double().mean((1, -1))  # (L,)
        new = after[..., inside].double().mean((1, -1))  # (L, R)
        by_span.append(new / old[:, None])
    return torch.stack(by_span, 1)


def received_by(loaded: Loaded, prompt: Prompt, layers: Sequence[int]) -> np.ndarray:
    """Return what the tokens of one prompt receive, (L, H, T)."""
    received = received_attention(loaded.model, prompt.input_ids, layers)
    return received[0].cpu().numpy()


class OnePrompt(NamedTuple):
    """What an insertion changes in one prompt; arrays have its tokens as T."""

    prompt: Prompt
    before: np.ndarray  # received without it, (L, H, T), NaN at the inserted tokens
    after: np.ndarray  # received with it, (L, H, T)
    ratios: np.ndarray  # lambda, (L, H)


def on_one_prompt(
    loaded: Loaded, plain: Prompt, prompt: Prompt, layers: Sequence[int]
) -> OnePrompt:
    """Return what a prompt's insertion changes, against the plain one."""
    after = received_by(loaded, prompt, layers)
    before = np.full_like(after, np.nan)
    before[..., prompt.original] = received_by(loaded, plain, layers)
    inner = prompt.original[1:-1]
    ratios = after[..., inner].mean(-1) / before[..., inner].mean(-1)
    return OnePrompt(prompt, before, after, ratios)


def measure_tokens(
    loaded: Loaded, prompts: Prompts, layers: Sequence[int]
) -> xr.Dataset:
    """Return the variables `tokens` of one problem.

    They are what every token receives of every head of these layers.
    """
    by_condition = []
    for by_problem in prompts.values():
        (prompt,) = by_problem.values()
        received = received_by(loaded, prompt, layers)
        tokens = xr.Dataset(coords={"token": range(len(prompt))})
        tokens["received"] = (("layer", "head", "token"), received)
        tokens["part"] = ("token", np.array(prompt.parts, object))
        by_condition.append(tokens)
    nothing = {"part": ""}  # beyond the end of a shorter prompt
    together = xr.concat(by_condition, "condition", join="outer", fill_value=nothing)
    return together.assign_coords(
        condition=list(prompts), layer=list(layers), head=range(1, loaded.heads + 1)
    )
