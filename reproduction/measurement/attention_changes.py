"""Measure how insertions change the attention that the original tokens receive.

The attention that a token receives is the mean of what later tokens give it. For a
problem, a layer and a head, lambda is the mean received attention of the original
tokens with the insertion, divided by the same mean without it (the paper's W' = lambda
W, Sec. 3). The first token is left out, because it receives most of the attention in
any case, and the last, because no later token attends to it.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.model_properties import longest_context
from lib.attention.received import Observation, observe
from lib.errors import InputError
from lib.models.loading import Loaded
from lib.prompts.batches import batch_tokens, in_batches, pad
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem
from reproduction.measurement.dataset import stacked, to_dataset

# Token groups for which lambda is reported.
SPANS = ["original", "problem", "instruction"]
# The sets of later tokens over which received attention is averaged: all of them, or
# only the original ones.
QUERIES = ["all", "original"]
ALL, ORIGINAL = 0, 1  # indices in QUERIES
Prompts = dict[str, dict[str, Prompt]]  # by condition, none first, and by problem


def prompts_of(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    format: str = "plain",
    filler: Filler | None = None,
) -> Prompts:
    """Return the prompts of all problems under `none` and these conditions.

    Raises InputError for a prompt that is longer than the model's context.
    """
    context = longest_context(loaded.model.config.get_text_config())
    prompts: Prompts = {}
    for condition in dict.fromkeys(["none", *conditions]):
        prompts[condition] = {}
        for problem in problems:
            prompt = build_prompt(
                loaded.tokenizer,
                problem.problem,
                condition,
                format=format,
                filler=filler,
            )
            if context and len(prompt) > context:
                raise InputError(
                    f"problem {problem.id}, {condition}: {loaded.name} has room for"
                    f" {context} tokens, not for a prompt of {len(prompt)}:"
                    " leave this problem out"
                )
            prompts[condition][problem.id] = prompt
    return prompts


def measure_attention(
    loaded: Loaded,
    prompts: Prompts,
    layers: Sequence[int],
    uniform: bool = False,
) -> xr.Dataset:
    """Return the variables `attention` (reproduction.measurement.dataset) of each
    condition, compared with `none`.

    layers: counted from 1. uniform: that of uniform attention. Costs one forward pass
    up to the deepest layer per prompt. Raises InputError for a prompt that is too long
    for the model, and for attention that is not finite.
    """
    plain = prompts["none"]
    conditions = [condition for condition in prompts if condition != "none"]
    coords = {
        "condition": conditions,
        "problem": list(plain),
        "layer": list(layers),
        "head": range(1, loaded.heads + 1),
        "span": SPANS,
        "query": QUERIES,
    }
    # Attention that all tokens receive under `none`, (L, H, T), by problem.
    before: dict[str, torch.Tensor] = {}
    for problem, received, _ in _observed(loaded, "none", plain, layers, uniform):
        before[problem] = received[:, :, ALL]

    by_condition = []
    for condition in conditions:
        by_problem: dict[str, dict[str, np.ndarray]] = {}
        batch = prompts[condition]
        observed = _observed(loaded, condition, batch, layers, uniform)
        for problem, received, values in observed:
            _, twins = averaged_tokens(batch[problem])  # the same tokens under none
            parts = [plain[problem].parts[index] for index in twins]
            same = before[problem][..., twins]
            changes = _compared(batch[problem], parts, same, received, values)
            by_problem[problem] = changes
        in_order = [by_problem[problem] for problem in plain]
        by_condition.append(stacked(in_order))
    return to_dataset("attention", stacked(by_condition), coords)


def _observed(
    loaded: Loaded,
    condition: str,
    prompts: Mapping[str, Prompt],
    layers: Sequence[int],
    uniform: bool,
) -> Iterator[tuple[str, torch.Tensor, list[torch.Tensor]]]:
    """Yield the id of each problem, the longest prompts first, with the attention that
    the tokens of its prompt receive, (L, H, R, T), and their value vectors, L times (K,
    T, D).
    """
    problems = list(prompts)

    def run(indices: list[int]) -> Observation:
        batch = [prompts[problems[i]] for i in indices]
        tokens, lengths = pad([prompt.input_ids for prompt in batch])
        queries = _query_sets(batch, tokens.shape[1])
        return observe(
            loaded.model, tokens, layers, lengths, queries=queries, uniform=uniform
        )

    several = f"{len(layers)} layers" if len(layers) > 1 else "1 layer"
    stage = f"{loaded.name}, attention under {condition} in {several}"
    lengths = [len(prompt) for prompt in prompts.values()]
    batches = in_batches(lengths, run, batch_tokens(loaded.device))
    with progress.bar(stage, len(problems)) as bar:
        for indices, observation in batches:
            for row, i in enumerate(indices):
                problem = problems[i]
                received = observation.received[row]
                averaged, _ = averaged_tokens(prompts[problem])
                if not received[..., averaged].isfinite().all():
                    raise InputError(
                        f"{loaded.name} gives NaN attention on problem {problem}"
                    )
                yield problem, received, [of[row] for of in observation.values]
                bar.update()


def _query_sets(batch: Sequence[Prompt], tokens: int) -> torch.Tensor:
    """Return which tokens of each prompt are in each of QUERIES, (B, R, T) bool."""
    queries = torch.zeros((len(batch), len(QUERIES), tokens), dtype=torch.bool)
    for row, prompt in enumerate(batch):
        queries[row, ALL] = True
        queries[row, ORIGINAL, prompt.original] = True
    return queries


def _compared(
    prompt: Prompt,
    parts: list[str],
    before: torch.Tensor,
    received: torch.Tensor,
    values: list[torch.Tensor],
) -> dict[str, np.ndarray]:
    """Return the variables `attention` of one prompt with an insertion, compared with
    the prompt without it.

    parts: the part of the prompt (instruction or problem) of each of n original tokens.
    before: the attention that they receive without the insertion, (L, H, n).
    """
    inserted = prompt.spans["inserted"]
    after = received[..., averaged_tokens(prompt)[0]]  # (L, H, R, n)
    # Received from all later tokens, (L, H, n).
    to_original = after[:, :, ALL]
    to_inserted = received[:, :, ALL, inserted]

    # Mean and standard deviation of received attention over original tokens, and over
    # inserted ones, (L, H).
    level = to_original.mean(-1)
    deviation = to_original.std(-1, correction=0)
    inserted_level = to_inserted.mean(-1)
    inserted_deviation = to_inserted.std(-1, correction=0)

    log_ratio = (to_original.double() / before).log()
    variables: dict[str, torch.Tensor] = {}
    variables["lambda"] = lambda_of(before, to_original)
    variables["irregularity"] = log_ratio.std(-1, correction=0)
    variables["unevenness"] = deviation / level
    variables["mass"] = received[:, :, ORIGINAL, inserted].sum(-1)
    variables["flatness"] = inserted_deviation / inserted_level
    variables["dispersion"] = _dispersion(
        [of_layer[:, inserted] for of_layer in values], heads=before.shape[1]
    )
    variables["portion"] = inserted_level / level
    variables["lambda_over_heads"] = _lambda_over_heads(parts, before, after)
    return {name: tensor.cpu().numpy() for name, tensor in variables.items()}


def averaged_tokens(prompt: Prompt) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices (n,) of the original tokens over which lambda averages, all
    but the first and the last, and their indices in the prompt without the insertion.

    Another choice needs a new version of `attention` in `dataset.VERSIONS`, so that
    older numbers are measured again.
    """
    return prompt.original[1:-1], prompt.counterparts[1:-1]


def lambda_of(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Return lambda, (L, H), given the attention that the same tokens receive before
    (without) and after (with) an insertion, (L, H, n) each.
    """
    return after.mean(-1).double() / before.mean(-1).double()


def _dispersion(values: list[torch.Tensor], heads: int) -> torch.Tensor:
    """Return the RMS distance of value vectors from their mean, divided by their RMS
    distance from zero, (L, H).

    values: L times (K, n, D); each of the K key heads serves H / K heads.
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
    """Return lambda by SPANS and QUERIES, (L, span, query); NaN for a span without
    tokens.

    It is a ratio of means over heads, because a single head that gives a span almost no
    attention would dominate a mean of ratios. parts: as in `_compared`. before, after:
    received attention without (L, H, n) and with the insertion (L, H, R, n).
    """
    by_span = []
    for span in SPANS:
        inside = torch.tensor([span in ("original", part) for part in parts])
        old = before[..., inside].double().mean((1, -1))  # (L,)
        new = after[..., inside].double().mean((1, -1))  # (L, R)
        by_span.append(new / old[:, None])
    return torch.stack(by_span, 1)
