"""How insertions change what the original tokens receive, and what is received instead.

For a problem, a layer and a head, lambda is the mean received attention of the original
tokens with the insertion over the same without (the paper's W' = lambda W, Sec. 3). The
first token is left out because it takes most of the mass whatever follows, the last
because no later token looks at it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import (
    Observation,
    observe,
    observe_uniform,
    received_attention,
)
from lib.errors import InputError
from lib.measurement.plan import EMPTY, VARIABLES, to_dataset
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


def measure_attention(
    loaded: Loaded,
    prompts: Prompts,
    layers: Sequence[int] | None = None,
    observing: Callable[..., Observation] = observe,
) -> Iterator[xr.Dataset]:
    """Yield for each condition against none the variables `attention`.

    They are over (condition, problem, layer, head). `layers` None: all that are loaded.
    Costs one forward up to the deepest layer per prompt. Raises InputError for a prompt
    too long for the model and for weights that give no finite attention, naming the
    problem.
    """
    layers = list(layers or range(1, loaded.layers + 1))
    coords = {
        "problem": list(prompts["none"]),
        "layer": layers,
        "head": range(1, loaded.heads + 1),
        "span": SPANS,
        "query": QUERIES,
    }
    # By problem: what the original tokens but the first and last receive under none.
    before: dict[str, torch.Tensor] = {}
    for condition, by_problem in prompts.items():
        stage = f"{loaded.name}, attention under {condition} in {len(layers)} layers"
        rows: dict[str, dict[str, np.ndarray]] = {}
        with progress.bar(stage, len(by_problem)) as bar:
            for problem, received, values in _observed(
                loaded, by_problem, layers, observing
            ):
                prompt = by_problem[problem]
                original = received[..., prompt.original[1:-1]]  # (L, H, R, n)
                if not original.isfinite().all():
                    raise InputError(
                        f"{loaded.name} gives NaN attention on problem {problem}"
                    )
                if condition == "none":
                    before[problem] = original[:, :, ALL]
                else:
                    inserted = prompt.spans["inserted"]
                    rows[problem] = _compared(
                        prompts["none"][problem].parts[1:-1],
                        before[problem],
                        original,
                        received[..., inserted],
                        [of_layer[:, inserted] for of_layer in values],
                    )
                bar.update()

        if condition != "none":
            arrays = {}
            for name in VARIABLES["attention"]:
                stacked = np.stack([rows[problem][name] for problem in by_problem])
                arrays[name] = stacked[None]  # of this condition
            yield to_dataset("attention", arrays, {"condition": [condition]} | coords)


def _observed(
    loaded: Loaded,
    prompts: Mapping[str, Prompt],
    layers: Sequence[int],
    observing: Callable[..., Observation],
) -> Iterator[tuple[str, torch.Tensor, list[torch.Tensor]]]:
    """Yield each problem with what its prompt's tokens receive, and with its values.

    Received attention is (L, H, R, T), from QUERIES; the values are L times (K, T, D).
    The longest prompts come first.
    """
    problems = list(prompts)

    def run(indices: list[int]) -> Observation:
        batch = [prompts[problems[i]] for i in indices]
        tokens, lengths = pad([prompt.input_ids for prompt in batch])
        shape = (len(batch), len(QUERIES), tokens.shape[1])
        queries = torch.ones(shape, dtype=torch.bool)
        for row, prompt in enumerate(batch):
            queries[row, ORIGINAL, prompt.spans["inserted"]] = False
        return observing(
            loaded.model, tokens, layers, lengths, queries=queries, values=True
        )

    lengths = [len(prompt) for prompt in prompts.values()]
    for indices, seen in in_batches(lengths, run, batch_tokens(loaded.device)):
        for row, i in enumerate(indices):
            values = [of_layer[row] for of_layer in seen.values]
            yield problems[i], seen.received[row], values


def _compared(
    parts: list[str],
    before: torch.Tensor,
    after: torch.Tensor,
    inserted: torch.Tensor,
    values: list[torch.Tensor],
) -> dict[str, np.ndarray]:
    """Return the variables `attention` of one prompt against that without insertion.

    parts: those that the original tokens are of; before, after: what they receive
    without (L, H, n) and with the insertion (L, H, R, n); inserted: what its tokens
    receive (L, H, R, n); values: their values, L times (K, n, D).
    """
    # From all later tokens, (L, H, n).
    to_original = after[:, :, ALL]
    to_inserted = inserted[:, :, ALL]
    baseline = before.mean(-1)
    level = to_original.mean(-1)
    log_ratio = (to_original.double() / before).log()
    variables = {
        "lambda": level.double() / baseline.double(),
        "level": level,
        "baseline": baseline,
        "irregularity": log_ratio.std(-1, correction=0),
        "unevenness": to_original.std(-1, correction=0) / level,
        "mass": inserted[:, :, ORIGINAL].sum(-1),
        "flatness": to_inserted.std(-1, correction=0) / to_inserted.mean(-1),
        "dispersion": _dispersion(values, heads=after.shape[1]),
        "portion": to_inserted.mean(-1) / level,
        "lambda_by_span": _lambda_by_span(parts, before, after),
    }
    return {name: tensor.cpu().numpy() for name, tensor in variables.items()}


def _dispersion(values: list[torch.Tensor], heads: int) -> torch.Tensor:
    """Return (L, H), how far values lie from their mean, over how far from zero.

    values: L times (K, n, D); each of the K key heads serves as many of the heads.
    """
    by_layer = []
    for of_layer in values:
        vectors = of_layer.float()
        away = (vectors - vectors.mean(1, keepdim=True)).square().sum((1, 2))
        share = away / vectors.square().sum((1, 2))
        by_layer.append(share.sqrt().repeat_interleave(heads // len(vectors)))
    return torch.stack(by_layer)


def _lambda_by_span(
    parts: list[str], before: torch.Tensor, after: torch.Tensor
) -> torch.Tensor:
    """Return lambda (L, H, span, query) of SPANS and QUERIES, NaN without any token.

    The parameters are those of `_compared`.
    """
    by_span = []
    for span in SPANS:
        inside = torch.tensor([span in ("original", part) for part in parts])
        old = before[:, :, None, inside].double().mean(-1)
        new = after[..., inside].double().mean(-1)
        by_span.append(new / old)
    return torch.stack(by_span, 2)


def measure_tokens(
    loaded: Loaded, prompts: Prompts, layers: Sequence[int]
) -> xr.Dataset:
    """Return the variables `tokens` of one problem.

    They are what every token receives of every head of these layers.
    """
    by_condition = []
    for by_problem in prompts.values():
        (prompt,) = by_problem.values()
        received = received_attention(loaded.model, prompt.input_ids, layers)[0]
        uniform = observe_uniform(loaded.model, prompt.input_ids, [1])
        texts = [prompt.text[start:stop] for start, stop in prompt.offsets]
        arrays = {
            "received": (("layer", "head", "token"), received.cpu().numpy()),
            "even": ("token", uniform.received[0, 0, 0, 0].cpu().numpy()),
            "text": ("token", np.array(texts, object)),
            "part": ("token", np.array(prompt.parts, object)),
        }
        by_condition.append(xr.Dataset(arrays, {"token": range(len(prompt))}))
    together = xr.concat(by_condition, "condition", join="outer", fill_value=EMPTY)
    return together.assign_coords(
        condition=list(prompts), layer=list(layers), head=range(1, loaded.heads + 1)
    )
