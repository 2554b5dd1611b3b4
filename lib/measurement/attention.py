"""How insertions change what the original tokens receive, what the inserted ones
receive, and why layer 1 dilutes.

For a problem, a layer and a head, lambda is the mean received attention of the original
tokens with the insertion over the same without (the paper's W' = lambda W, Sec. 3). The
first token is left out because it takes most of the mass whatever follows, the last
because no later token looks at it.
"""

from collections.abc import Callable, Iterator, Sequence

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
from lib.measurement.plan import CAUSES, EMPTY, to_dataset
from lib.models.loading import Loaded
from lib.prompts.batches import batch_tokens, in_batches, pad
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

SPANS = ["original", "problem", "instruction"]  # the tokens whose lambda is told
QUERIES = [
    "all",
    "original",
]  # later tokens that attend to them: every one, or those that both prompts have
Prompts = dict[str, dict[str, Prompt]]  # by condition, none first, and problem


def prompts_of(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    format: str = "plain",
    filler: Filler | None = None,
) -> Prompts:
    """Return the prompts of all problems under none and these conditions."""

    def built(problem: Problem, condition: str) -> Prompt:
        return build_prompt(
            loaded.tokenizer, problem.problem, condition, format=format, filler=filler
        )

    return {
        name: {p.id: built(p, name) for p in problems}
        for name in dict.fromkeys(["none", *conditions])
    }


def measure_attention(
    loaded: Loaded,
    prompts: Prompts,
    layers: Sequence[int] | None = None,
    observing: Callable[..., Observation] = observe,
) -> Iterator[xr.Dataset]:
    """Yield for each condition against none the variables `attention` over (condition,
    problem, layer, head).

    `layers` None: all that are loaded. Costs one forward up to the deepest layer per
    prompt. Raises InputError for a prompt too long for the model and for weights that
    give no finite attention, naming the problem.
    """
    layers, ids = list(layers or range(1, loaded.layers + 1)), list(prompts["none"])
    before: dict[int, tuple[torch.Tensor, list[str]]] = {}
    coords = {
        "problem": ids,
        "layer": layers,
        "head": range(1, loaded.heads + 1),
        "span": SPANS,
        "query": QUERIES,
    }
    for condition, by_problem in prompts.items():
        given, found = list(by_problem.values()), {}

        def run(indices: list[int], given: list[Prompt] = given) -> Observation:
            tokens, lengths = pad([given[i].input_ids for i in indices])
            queries = torch.ones(
                len(indices), len(QUERIES), tokens.shape[1], dtype=torch.bool
            )
            for row, i in enumerate(indices):
                queries[row, 1, given[i].spans["inserted"]] = False
            return observing(
                loaded.model, tokens, layers, lengths, queries=queries, values=True
            )

        with progress.bar(
            f"{loaded.name}, attention under {condition} in {len(layers)} layers",
            len(ids),
        ) as bar:
            for indices, seen in in_batches(
                [len(one) for one in given], run, batch_tokens(loaded.device)
            ):
                for row, i in enumerate(indices):
                    received, span = seen.received[row], given[i].spans["inserted"]
                    original = received[..., given[i].original[1:-1]]  # (L, H, 2, n)
                    if not original.isfinite().all():
                        raise InputError(
                            f"{loaded.name} gives NaN attention on problem {ids[i]}"
                        )
                    if condition == "none":
                        before[i] = original[:, :, 0], given[i].parts[1:-1]
                    else:
                        values = [layer[row, :, span].float() for layer in seen.values]
                        found[i] = _compared(
                            *before[i], original, received[..., span], values
                        )
                bar.update(len(indices))
        if found:
            arrays = {
                name: np.stack([found[i][name] for i in range(len(ids))])[None]
                for name in found[0]
            }
            yield to_dataset("attention", arrays, {"condition": [condition]} | coords)


def _compared(
    before: torch.Tensor,
    parts: list[str],
    after: torch.Tensor,
    inserted: torch.Tensor,
    values: list[torch.Tensor],
) -> dict[str, np.ndarray]:
    """Return `attention`, (L, H) each, of one prompt against what its original tokens,
    of these parts, had (L, H, n).

    after, inserted: what these tokens receive (L, H, 2, n), from QUERIES; values: of
    the inserted, L times (K, n, D).
    """
    level, baseline, given = after[:, :, 0].mean(-1), before.mean(-1), inserted[:, :, 0]
    dispersion, by_span = [], []
    for vectors in values:
        away = (vectors - vectors.mean(1, keepdim=True)).square().sum(
            (1, 2)
        ) / vectors.square().sum((1, 2))
        dispersion.append(away.sqrt().repeat_interleave(after.shape[1] // len(vectors)))
    for span in SPANS:  # NaN of one without tokens
        meant = torch.tensor([span in ("original", part) for part in parts])
        by_span.append(
            after[..., meant].double().mean(-1)
            / before[:, :, None, meant].double().mean(-1)
        )
    found = {
        "lambda": level.double() / baseline.double(),
        "level": level,
        "baseline": baseline,
        "irregularity": (after[:, :, 0].double() / before).log().std(-1, correction=0),
        "unevenness": after[:, :, 0].std(-1, correction=0) / level,
        "mass": inserted[:, :, 1].sum(-1),
        "flatness": given.std(-1, correction=0) / given.mean(-1),
        "dispersion": torch.stack(dispersion),
        "portion": given.mean(-1) / level,
        "lambda_by_span": torch.stack(by_span, 2),
    }
    return {name: numbers.cpu().numpy() for name, numbers in found.items()}


def measure_causes(loaded: Loaded, prompts: Prompts) -> xr.Dataset:
    """Return the variables `causes` of the slashes in layer 1, in four forwards of one
    layer per problem.

    An insertion adds terms to every later softmax, and moves the problem away from the
    instruction in rotary position: `both` is the prompt with it; in `terms` the
    instruction moves along, so that its distance stays; `distance` has the old tokens
    alone, the problem at its positions in `both`. Means run over later original tokens,
    which all have.
    """
    before, after = (list(prompts[name].values()) for name in ("none", "mless"))
    rows: list[dict[str, np.ndarray]] = [{} for _ in before]

    def run(indices: list[int]) -> dict[str, Observation]:
        old, new, apart, close = (
            [before[i] for i in indices],
            [after[i] for i in indices],
            [],
            [],
        )
        for span, *lengths in (
            (two.spans["inserted"], len(one), len(two))
            for one, two in zip(old, new, strict=True)
        ):
            places, moved = map(torch.arange, lengths)
            apart.append(places + (span.stop - span.start) * (places >= span.start))
            close.append(moved + (span.stop - span.start) * (moved < span.start))
        asked = {
            "old": (old, None),
            "both": (new, None),
            "terms": (new, close),
            "distance": (old, apart),
        }
        return {name: _in_layer_1(loaded, *given) for name, given in asked.items()}

    with progress.bar(f"{loaded.name}, causes in layer 1", len(before)) as bar:
        for indices, seen in in_batches(
            [len(prompt) for prompt in after], run, batch_tokens(loaded.device)
        ):
            for row, i in enumerate(indices):
                for name, observation in seen.items():
                    original = (before if name in ("old", "distance") else after)[
                        i
                    ].original[1:-1]
                    rows[i][name] = (
                        observation.received[row, 0, :, 0, original]
                        .mean(-1)
                        .double()
                        .cpu()
                        .numpy()
                    )
                span = after[i].spans["inserted"]
                later = after[i].original[
                    span.start :
                ]  # the tokens after the insertion
                # A set of queries for each: what its softmax leaves for others than the
                # inserted tokens, (H, n).
                queries = torch.nn.functional.one_hot(later, len(after[i]))[None].bool()
                given = observe(
                    loaded.model, after[i].input_ids, [1], queries=queries
                ).received[0, 0, :, :, span]
                old, new = (
                    seen[name].outputs[0][row].float().cpu() for name in ("old", "both")
                )
                rows[i] |= affine_fits(
                    old[span.start : len(before[i])],
                    new[later],
                    1 - given.sum(-1).double().cpu(),
                )
            bar.update(len(indices))
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    arrays["cause_lambda"] = np.stack(
        [arrays.pop(cause) for cause in CAUSES]
    ) / arrays.pop("old")
    coords = {
        "cause": list(CAUSES),
        "problem": list(prompts["none"]),
        "head": range(1, loaded.heads + 1),
    }
    return to_dataset("causes", arrays, coords)


def _in_layer_1(
    loaded: Loaded, prompts: list[Prompt], positions: list[torch.Tensor] | None
) -> Observation:
    """Observe layer 1 with original tokens as the only queries that count."""
    ids, lengths = pad([prompt.input_ids for prompt in prompts])
    queries = torch.zeros(len(prompts), 1, ids.shape[1], dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        queries[row, 0, prompt.original] = True
    given = None if positions is None else pad(positions)[0]
    return observe(
        loaded.model, ids, [1], lengths, positions=given, queries=queries, outputs=True
    )


def affine_fits(
    old: torch.Tensor, new: torch.Tensor, left: torch.Tensor
) -> dict[str, np.ndarray]:
    """Return how well maps of heads' outputs (n, H, D) before give those after, (H,)
    each, as VARIABLES says.

    left: (H, n), what each token's softmax leaves for others than the inserted tokens.
    """
    old, new = old.transpose(0, 1).double(), new.transpose(0, 1).double()  # (H, n, D)
    about, wanted = old - old.mean(1, keepdim=True), new - new.mean(1, keepdim=True)
    total = wanted.square().sum((1, 2))
    scale = (about * wanted).sum((1, 2)) / about.square().sum(
        (1, 2)
    )  # least squares lambda
    sigma = new - scale[:, None, None] * old
    direction, component = (
        _first_share(sigma),
        _first_share(sigma - sigma.mean(1, keepdim=True)),
    )
    taken, rest = 1 - left[..., None], new - left[..., None] * old
    value = (taken * rest).sum(1, keepdim=True) / taken.square().sum(
        1, keepdim=True
    )  # least squares v
    found = {
        "shifted": 1 - (wanted - about).square().sum((1, 2)) / total,
        "affine": 1
        - (wanted - scale[:, None, None] * about).square().sum((1, 2)) / total,
        "line": 1 - (1 - direction) * sigma.square().sum((1, 2)) / total,
        "softmax": 1 - (rest - taken * value).square().sum((1, 2)) / total,
        "direction": direction,
        "component": component,
    }
    return {name: numbers.numpy() for name, numbers in found.items()}


def _first_share(vectors: torch.Tensor) -> torch.Tensor:
    """Return (H,): the share of the squares of vectors (H, n, D) along their best line
    through zero.
    """
    strengths = torch.linalg.svdvals(vectors).square()
    return strengths[:, 0] / strengths.sum(1)


def measure_tokens(
    loaded: Loaded, prompts: Prompts, layers: Sequence[int]
) -> xr.Dataset:
    """Return the variables `tokens` of one problem: what every token receives of every
    head of these layers.
    """
    found = []
    for (prompt,) in (by_problem.values() for by_problem in prompts.values()):
        received = (
            received_attention(loaded.model, prompt.input_ids, layers)[0].cpu().numpy()
        )
        even = (
            observe_uniform(loaded.model, prompt.input_ids, [1])
            .received[0, 0, 0, 0]
            .cpu()
            .numpy()
        )
        texts = [prompt.text[start:stop] for start, stop in prompt.offsets]
        arrays = {
            "received": (("layer", "head", "token"), received),
            "even": ("token", even),
        }
        arrays |= {
            "text": ("token", np.array(texts, object)),
            "part": ("token", np.array(prompt.parts, object)),
        }
        found.append(xr.Dataset(arrays, {"token": range(len(prompt))}))
    joined = xr.concat(found, "condition", join="outer", fill_value=EMPTY)
    return joined.assign_coords(
        condition=list(prompts), layer=list(layers), head=range(1, loaded.heads + 1)
    )
