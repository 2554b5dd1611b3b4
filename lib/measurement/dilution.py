"""How insertions change what the original tokens receive, and what the inserted ones receive: over all problems.

For a problem, a layer and a head, lambda is the mean received attention of the original tokens with the
insertion over the same without (the paper's W' = lambda W, Sec. 3). The first token is left out because it takes
most of the mass whatever follows, the last because no later token looks at it.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from lib.attention.received import Observation, observe
from lib.errors import InputError
from lib.measurement.kept import kept
from lib.models.loading import Loaded
from lib.prompts.batches import in_batches, pad
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem, digest

MEASURES = ("level", "mass", "flatness", "dispersion", "portion", "unevenness")
Report = Callable[[int, int], None]  # prompts done, and in all


@dataclass(frozen=True)
class Dilution:
    """Per condition arrays (N, L, H): problems, layers asked for, heads.

    ratio: lambda; mass: the share of their attention that the tokens after the insertion give it; flatness:
    standard deviation over mean of what each inserted token receives; dispersion: how far their value vectors
    lie from their mean, 0 (all equal) to 1; portion: what an inserted token receives over what an original one
    does; unevenness: the flatness of the original tokens.
    """

    ratio: dict[str, np.ndarray]
    mass: dict[str, np.ndarray]
    flatness: dict[str, np.ndarray]
    dispersion: dict[str, np.ndarray]
    portion: dict[str, np.ndarray]
    unevenness: dict[str, np.ndarray]
    layers: list[int]  # counted from 1


def measure_dilution(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int],
    *,
    format: str = "plain",
    filler: Filler | None = None,
    folder: Path | None = None,
    report: Report = lambda done, total: None,
) -> Dilution:
    """Measure `conditions` against none; each finished condition is kept in `folder`.

    Costs one forward up to the deepest layer per prompt. Raises InputError for an empty problem set, a prompt
    too long for the model, and weights that give no finite attention (naming the problem).
    """
    if not problems:
        raise InputError("no problems to measure attention on")
    names, measured = ["none", *conditions], {}
    settings = measurement_settings(loaded, problems, format, filler) | {"layers": list(layers)}
    for index, name in enumerate(names):
        done = index * len(problems)
        measured[name] = kept(
            folder,
            settings | {"condition": name},
            lambda name=name, done=done: _measure(
                loaded,
                problems,
                [build_prompt(loaded.tokenizer, p.problem, name, format=format, filler=filler) for p in problems],
                layers,
                lambda part, done=done: report(done + part, len(names) * len(problems)),
            ),
        )
        report((index + 1) * len(problems), len(names) * len(problems))
    ratio = {name: measured[name]["level"] / measured["none"]["level"] for name in conditions}
    return Dilution(ratio, *({name: measured[name][m] for name in conditions} for m in MEASURES[1:]), list(layers))


def measurement_settings(loaded: Loaded, problems: Sequence[Problem], format: str, filler: Filler | None) -> dict:
    """Return everything but the condition that decides what is measured on these problems."""
    return {
        "model": loaded.revision,
        "dtype": loaded.dtype,
        "problems": digest(problems),
        "format": format,
        "filler": asdict(filler or Filler()),
    }


def _measure(
    loaded: Loaded,
    problems: Sequence[Problem],
    prompts: Sequence[Prompt],
    layers: Sequence[int],
    report: Callable[[int], None],
) -> dict[str, np.ndarray]:
    rows = np.full((len(MEASURES), len(problems), len(layers), loaded.heads), np.nan)
    done = 0

    def run(indices: list[int]) -> Observation:
        ids, lengths = pad([prompts[i].input_ids for i in indices])
        queries = torch.ones(len(indices), 2, ids.shape[1], dtype=torch.bool)  # all tokens; the original ones
        for row, i in enumerate(indices):
            queries[row, 1, prompts[i].spans["inserted"]] = False
        return observe(loaded.model, ids, layers, lengths, queries=queries, keep=True)

    for indices, seen in in_batches([len(prompt) for prompt in prompts], run):
        received = seen.received.cpu()
        for row, i in enumerate(indices):
            values = [layer[row].float().cpu() for layer in seen.values]
            rows[:, i] = _summary(received[row], values, prompts[i])
            if not np.isfinite(rows[0, i]).all():
                raise InputError(f"{loaded.name} gives NaN attention on problem {problems[i].id}")
        done += len(indices)
        report(done)
    return dict(zip(MEASURES, rows, strict=True))


def _summary(received: torch.Tensor, values: list[torch.Tensor], prompt: Prompt) -> np.ndarray:
    """Return MEASURES (6, L, H) of one prompt from received (L, H, 2, T) and, per layer, values (K, T, D).

    Of the two means the first is over all later tokens, the second over the later original ones.
    """
    span = prompt.spans["inserted"]
    original, inserted = received[:, :, 0, prompt.original[1:-1]], received[:, :, 0, span]
    level = original.mean(-1)
    if not inserted.shape[-1]:
        return torch.stack([level, *[level * torch.nan] * (len(MEASURES) - 1)]).numpy()
    heads = received.shape[1]
    dispersion = [_dispersion(v[:, span]).repeat_interleave(heads // len(v)) for v in values]
    flatness, unevenness = (part.std(-1, correction=0) / part.mean(-1) for part in (inserted, original))
    mass, portion = received[:, :, 1, span].sum(-1), inserted.mean(-1) / level
    return torch.stack([level, mass, flatness, torch.stack(dispersion), portion, unevenness]).numpy()


def _dispersion(values: torch.Tensor) -> torch.Tensor:
    """Return (K,): root mean square distance of the vectors (K, n, D) to their mean over that to the origin."""
    spread = (values - values.mean(1, keepdim=True)).square().sum((1, 2))
    return (spread / values.square().sum((1, 2))).sqrt()
