"""How insertions change what the original tokens receive, and what the inserted ones receive: over all problems.

For a problem, a layer and a head, lambda is the mean received attention of the original tokens with the
insertion over the same without (the paper's W' = lambda W, Sec. 3). The first token is left out because it takes
most of the mass whatever follows, the last because no later token looks at it.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import Observation, observe
from lib.errors import InputError
from lib.measurement.kept import kept, labelled
from lib.models.loading import Loaded
from lib.prompts.batches import in_batches, pad
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem, digest

TEXTS = {
    "lambda": ("1", "level over baseline (W' = lambda W, Sec. 3)"),
    "level": ("1", "mean received attention of the original tokens with the insertion, first and last left out"),
    "baseline": ("1", "the same without the insertion"),
    "irregularity": ("1", "standard deviation over the original tokens of log(received with / without) (Fig. 9)"),
    "unevenness": ("1", "standard deviation over mean of what each original token receives"),
    "mass": ("1", "share of their attention that the original tokens after the insertion give it"),
    "flatness": ("1", "standard deviation over mean of what each inserted token receives (Figs. 10 and 11)"),
    "dispersion": ("1", "RMS distance of the inserted tokens' values to their mean over that to the origin"),
    "portion": ("1", "what an inserted token receives over what an original one does (Fig. 13)"),
}
# The number of a problem, its prompt, received (L, H, 2, T) and values, L times (K, T, D).
Seen = tuple[int, Prompt, torch.Tensor, list[torch.Tensor]]


def measure_dilution(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int] | None = None,
    *,
    format: str = "plain",
    filler: Filler | None = None,
    folder: Path | None = None,
    observing: Callable[..., Observation] = observe,
) -> xr.Dataset:
    """Measure `conditions` against none: the variables of TEXTS over (condition, problem, layer, head).

    `layers` None: all that are loaded. Each finished condition is kept in `folder`, a file of its own. Costs one
    forward up to the deepest layer per prompt. Raises InputError for an empty problem set, a prompt too long for
    the model, and weights that give no finite attention (naming the problem).
    """
    if not problems:
        raise InputError("no problems to measure attention on")
    layers = list(layers or range(1, loaded.layers + 1))
    settings = measurement_settings(loaded, problems, format, filler)

    def seen(condition: str) -> Iterator[Seen]:
        prompts = prompts_of(loaded, problems, condition, format, filler)
        text = f"{loaded.name}, attention under {condition} in {len(layers)} layers"
        return _seen(loaded, problems, prompts, layers, observing, text)

    @functools.cache
    def without() -> dict[int, torch.Tensor]:
        return {i: _original(prompt, received) for i, prompt, received, _ in seen("none")}

    def measured(condition: str) -> xr.Dataset:
        rows, baseline = np.full((len(TEXTS), len(problems), len(layers), loaded.heads), np.nan), without()
        for i, prompt, received, values in seen(condition):
            rows[:, i] = _summary(baseline[i], received, values, prompt)
        found = {name: (("problem", "layer", "head"), row) for name, row in zip(TEXTS, rows, strict=True)}
        coords = {"condition": condition, "problem": [problem.id for problem in problems], "layer": layers}
        return labelled("dilution", found, coords | {"head": range(1, loaded.heads + 1)}, TEXTS, settings)

    parts = []
    for condition in conditions:
        name = f"dilution-{loaded.name}-{condition}-layers{layers[0]}-{layers[-1]}"
        asked = settings | {"condition": condition, "layers": layers}
        parts.append(kept(folder, name, asked, functools.partial(measured, condition)))
    return xr.concat(parts, "condition")


def prompts_of(
    loaded: Loaded, problems: Sequence[Problem], condition: str, format: str, filler: Filler | None
) -> list[Prompt]:
    """Return the prompt of each problem under a condition; several measurements ask for the same."""
    return _prompts(loaded.tokenizer, tuple(problems), condition, format, filler)


@functools.lru_cache(maxsize=8)
def _prompts(tokenizer, problems: tuple[Problem, ...], condition: str, format: str, filler: Filler | None):
    return [build_prompt(tokenizer, p.problem, condition, format=format, filler=filler) for p in problems]


def measurement_settings(loaded: Loaded, problems: Sequence[Problem], format: str, filler: Filler | None) -> dict:
    """Return everything but the condition that decides what is measured on these problems."""
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
        "device": loaded.device,
        "n": len(problems),
        "problems": digest(problems),
        "format": format,
        "filler": (filler or Filler()).model_dump_json(),
    }


def _seen(
    loaded: Loaded,
    problems: Sequence[Problem],
    prompts: Sequence[Prompt],
    layers: Sequence[int],
    observing: Callable[..., Observation],
    text: str,
) -> Iterator[Seen]:
    """Yield what each prompt shows, the longest first.

    Of the two means of received attention the first is over all later tokens, the second over the later original ones.
    """

    def run(indices: list[int]) -> Observation:
        ids, lengths = pad([prompts[i].input_ids for i in indices])
        queries = torch.ones(len(indices), 2, ids.shape[1], dtype=torch.bool)  # all tokens; the original ones
        for row, i in enumerate(indices):
            queries[row, 1, prompts[i].spans["inserted"]] = False
        return observing(loaded.model, ids, layers, lengths, queries=queries, values=True)

    with progress.bar(text, len(prompts)) as bar:
        for indices, observation in in_batches([len(prompt) for prompt in prompts], run):
            received = observation.received.cpu()
            for row, i in enumerate(indices):
                if not _original(prompts[i], received[row]).isfinite().all():
                    raise InputError(f"{loaded.name} gives NaN attention on problem {problems[i].id}")
                yield i, prompts[i], received[row], [layer[row].float().cpu() for layer in observation.values]
            bar.update(len(indices))


def _original(prompt: Prompt, received: torch.Tensor) -> torch.Tensor:
    """Return what the original tokens but the first and last receive of all later ones, (L, H, n)."""
    return received[:, :, 0, prompt.original[1:-1]]


def _summary(before: torch.Tensor, received: torch.Tensor, values: list[torch.Tensor], prompt: Prompt) -> np.ndarray:
    """Return TEXTS (9, L, H) of one prompt from its original tokens without the insertion, and a `Seen`."""
    span, heads = prompt.spans["inserted"], received.shape[1]
    original, inserted = _original(prompt, received), received[:, :, 0, span]
    level, baseline = original.mean(-1), before.mean(-1)
    dispersion = torch.stack([_dispersion(v[:, span]).repeat_interleave(heads // len(v)) for v in values])
    found = {
        "lambda": level.double() / baseline.double(),
        "level": level,
        "baseline": baseline,
        "irregularity": (original.double() / before).log().std(-1, correction=0),
        "unevenness": original.std(-1, correction=0) / level,
        "mass": received[:, :, 1, span].sum(-1),
        "flatness": inserted.std(-1, correction=0) / inserted.mean(-1),
        "dispersion": dispersion,
        "portion": inserted.mean(-1) / level,
    }
    return np.stack([found[name].numpy() for name in TEXTS])


def _dispersion(values: torch.Tensor) -> torch.Tensor:
    """Return (K,): root mean square distance of the vectors (K, n, D) to their mean over that to the origin."""
    spread = (values - values.mean(1, keepdim=True)).square().sum((1, 2))
    return (spread / values.square().sum((1, 2))).sqrt()
