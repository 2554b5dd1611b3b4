"""Why layer 1 dilutes: new terms in the softmax, or distance; and whether its output is an affine map of the old.

An insertion does two things at once: it adds terms to every later softmax, and it moves the problem away from
the instruction in rotary position. In layer 1, where nothing else has changed yet, positions separate the two:

    both      the prompt with the insertion
    terms     the same, but the instruction moves along: its distance to the problem stays what it was
    distance  the old tokens alone, the problem at the positions it has in `both`

All three are compared with the prompt as it was. The mean runs over later original tokens only, since inserted
ones exist in two of the four; lambda as the paper plots it also averages over what inserted tokens look at.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import Observation, observe
from lib.errors import InputError
from lib.measurement.dilution import measurement_settings, prompts_of
from lib.measurement.kept import kept, labelled
from lib.models.loading import Loaded
from lib.prompts.batches import in_batches, pad
from lib.prompts.building import Prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

CAUSES = ("both", "terms", "distance")
TEXTS = {
    "lambda": ("1", "mean received attention of the original tokens from later original ones, over that without"),
    "shifted": ("1", "R2 of new = old + sigma for the head's outputs, one sigma per prompt and head"),
    "affine": ("1", "R2 of new = lambda * old + sigma, one lambda and one sigma per prompt and head (Eq. 2)"),
    "line": ("1", "R2 of new = lambda * old + a coefficient per token times one direction, lambda as above"),
    "softmax": ("1", "R2 of new = lambda * old + (1 - lambda) v, one v, each token's lambda what its softmax leaves"),
    "direction": ("1", "share of the squares of the remainders new - lambda * old along one line through zero"),
    "component": ("1", "share of the remainders' variance in its first principal component"),
}
AFFINE = ("shifted", "affine", "line", "softmax", "direction", "component")
CONDITION = "mless"


def measure_causes(
    loaded: Loaded,
    problems: Sequence[Problem],
    *,
    format: str = "plain",
    filler: Filler | None = None,
    folder: Path | None = None,
) -> xr.Dataset:
    """Measure the slashes in layer 1 in four forwards of one layer per problem; kept in `folder`.

    The variables of TEXTS over (problem, head), lambda over (cause, problem, head); the others describe the outputs of
    the original tokens after the insertion.
    """
    if not problems:
        raise InputError("no problems to measure attention on")
    settings = measurement_settings(loaded, problems, format, filler) | {"condition": CONDITION, "layer": 1}

    def compute() -> xr.Dataset:
        before, after = (prompts_of(loaded, problems, name, format, filler) for name in ("none", CONDITION))
        found = _measure(loaded, before, after)
        ratio = np.stack([found.pop(cause) for cause in CAUSES]) / found.pop("old")
        arrays: dict[str, tuple] = {name: (("problem", "head"), values) for name, values in found.items()}
        arrays["lambda"] = ("cause", "problem", "head"), ratio
        coords = {"cause": list(CAUSES), "problem": [p.id for p in problems], "head": range(1, loaded.heads + 1)}
        return labelled("causes", arrays, coords, TEXTS, settings)

    return kept(folder, f"causes-{loaded.name}-{CONDITION}", settings, compute)


def _measure(loaded: Loaded, before: list[Prompt], after: list[Prompt]) -> dict[str, np.ndarray]:
    """Return arrays (N, H): the mean received attention `old` and under each of CAUSES, and AFFINE."""
    names = ("old", *CAUSES, *AFFINE)
    found = {name: np.full((len(before), loaded.heads), np.nan) for name in names}

    def run(indices: list[int]) -> dict[str, Observation]:
        old, new = [before[i] for i in indices], [after[i] for i in indices]
        spans = [prompt.spans["inserted"] for prompt in new]
        apart = [_moved(len(p), slice(s.start, None), s.stop - s.start) for p, s in zip(old, spans, strict=True)]
        close = [_moved(len(p), slice(s.start), s.stop - s.start) for p, s in zip(new, spans, strict=True)]
        return {
            "old": _forward(loaded, old),
            "both": _forward(loaded, new),
            "terms": _forward(loaded, new, close),
            "distance": _forward(loaded, old, apart),
        }

    with progress.bar(f"{loaded.name}, causes in layer 1", len(before)) as bar:
        for indices, seen in in_batches([len(prompt) for prompt in after], run):
            for row, i in enumerate(indices):
                for name, observation in seen.items():
                    original = (before if name in ("old", "distance") else after)[i].original
                    found[name][i] = observation.received[row, 0, :, 0, original[1:-1]].mean(-1).cpu().numpy()
                start, last = after[i].spans["inserted"].start, len(before[i])
                old = seen["old"].outputs[0][row, start:last]
                new = seen["both"].outputs[0][row, after[i].original[start:].to(loaded.device)]
                left = _left(loaded, after[i])
                for name, values in zip(AFFINE, _affine(old.float().cpu(), new.float().cpu(), left), strict=True):
                    found[name][i] = values.numpy()
            bar.update(len(indices))
    return found


def _moved(tokens: int, part: slice, shift: int) -> torch.Tensor:
    """Return the positions 0 to tokens - 1 with one part of them moved by `shift`."""
    positions = torch.arange(tokens)
    positions[part] += shift
    return positions


def _forward(loaded: Loaded, prompts: list[Prompt], positions: list[torch.Tensor] | None = None) -> Observation:
    """Observe layer 1 with original tokens as the only queries that count."""
    ids, lengths = pad([prompt.input_ids for prompt in prompts])
    queries = torch.zeros(len(prompts), 1, ids.shape[1], dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        queries[row, 0, prompt.original] = True
    given = None if positions is None else pad(positions)[0]
    return observe(loaded.model, ids, [1], lengths, positions=given, queries=queries, outputs=True)


def _left(loaded: Loaded, prompt: Prompt) -> torch.Tensor:
    """Return (H, n), what the softmax of each token after the insertion leaves for others than the inserted tokens."""
    span = prompt.spans["inserted"]
    later = prompt.original[span.start :]
    queries = torch.nn.functional.one_hot(later, len(prompt))[None].bool()  # (1, n, T): a set of its own for each
    seen = observe(loaded.model, prompt.input_ids, [1], queries=queries)
    return 1 - seen.received[0, 0, :, :, span].sum(-1).double().cpu()


def _affine(old: torch.Tensor, new: torch.Tensor, left: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the measures AFFINE, (H,) each, of head outputs (n, H, D) before and after, and `left` (H, n)."""
    old, new = old.transpose(0, 1).double(), new.transpose(0, 1).double()  # (H, n, D)
    about, wanted = old - old.mean(1, keepdim=True), new - new.mean(1, keepdim=True)
    total = wanted.square().sum((1, 2))
    scale = (about * wanted).sum((1, 2)) / about.square().sum((1, 2))  # least squares lambda
    affine = 1 - (wanted - scale[:, None, None] * about).square().sum((1, 2)) / total
    shifted = 1 - (wanted - about).square().sum((1, 2)) / total
    sigma = new - scale[:, None, None] * old
    direction, component = _first_share(sigma), _first_share(sigma - sigma.mean(1, keepdim=True))
    line = 1 - (1 - direction) * sigma.square().sum((1, 2)) / total
    taken, rest = 1 - left[..., None], new - left[..., None] * old
    value = (taken * rest).sum(1, keepdim=True) / taken.square().sum(1, keepdim=True)  # least squares v
    softmax = 1 - (rest - taken * value).square().sum((1, 2)) / total
    return shifted, affine, line, softmax, direction, component


def _first_share(vectors: torch.Tensor) -> torch.Tensor:
    """Return (H,): the share of the squares of vectors (H, n, D) along their best line through zero."""
    strengths = torch.linalg.svdvals(vectors).square()
    return strengths[:, 0] / strengths.sum(1)
