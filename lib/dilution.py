"""How much less attention the original tokens receive when tokens are inserted: lambda, over all problems.

For a problem, a layer and a head, lambda is the mean received attention of the original tokens with the
insertion over the same without (the paper's W' = lambda W, Sec. 3). The first token is left out because it takes
most of the mass whatever follows, the last because no later token looks at it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lib.attention import received_attention
from lib.errors import InputError
from lib.problems import Problem
from lib.prompts import Filler, Prompt, build_prompt, pad

BATCH_TOKENS = 8192  # padded tokens of one forward


@dataclass(frozen=True)
class Dilution:
    """Per condition: `ratio` lambda (N, L, H), `flatness` std / mean inside the inserted span (N, L, H)."""

    ratio: dict[str, np.ndarray]
    flatness: dict[str, np.ndarray]
    layers: list[int]  # counted from 1


def measure_dilution(
    loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int],
    *,
    format: str = "plain",
    filler: Filler | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Dilution:
    """Measure lambda and flatness of `conditions` against none; `report` gets prompts done and in all.

    Costs one forward up to the deepest layer per prompt. Raises InputError for an empty problem set, a prompt
    too long for the model, and weights that give no finite attention (naming the problem).
    """
    if not problems:
        raise InputError("no problems to measure attention on")
    names = ["none", *conditions]
    prompts = {
        name: [build_prompt(loaded.tokenizer, p.problem, name, format=format, filler=filler) for p in problems]
        for name in names
    }
    level, flat, done = {}, {}, 0
    for name in names:
        rows = np.full((2, len(problems), len(layers), loaded.heads), np.nan)
        for indices in _batches(prompts[name]):
            batch = [prompts[name][i] for i in indices]
            ids, lengths = pad([prompt.input_ids for prompt in batch])
            received = received_attention(loaded.model, ids, layers, lengths).cpu()
            for i, prompt, row in zip(indices, batch, received, strict=True):
                rows[:, i] = _summary(row, prompt)
                if not np.isfinite(rows[0, i]).all():
                    raise InputError(f"{loaded.name} gives NaN attention on problem {problems[i].id}")
            done += len(indices)
            report(done, len(names) * len(problems))
        level[name], flat[name] = rows
    ratio = {name: level[name] / level["none"] for name in conditions}
    return Dilution(ratio, {name: flat[name] for name in conditions}, list(layers))


def _batches(prompts: Sequence[Prompt]) -> Iterator[list[int]]:
    """Group prompts of like length so that padding is little and a batch holds at most BATCH_TOKENS."""
    batch: list[int] = []
    for i in sorted(range(len(prompts)), key=lambda i: len(prompts[i])):
        if batch and (len(batch) + 1) * len(prompts[i]) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    yield batch


def _summary(received: torch.Tensor, prompt: Prompt) -> np.ndarray:
    """Return (2, L, H): mean over the original tokens, coefficient of variation over the inserted ones."""
    original = received[..., prompt.original[1:-1]].mean(-1)
    inserted = received[..., prompt.spans["inserted"]]
    flatness = inserted.std(-1, correction=0) / inserted.mean(-1) if inserted.shape[-1] else original * torch.nan
    return torch.stack([original, flatness]).double().numpy()
