"""How insertions and ARM change the MLP activations of the problem's tokens: over all problems, layer by layer.

A problem runs under every condition, one at a time, and is reduced as it runs: what is held does not grow with the
number of problems. Only the problem's tokens count: they are the same in every condition, and what stands before
an insertion cannot change with it in a causal model.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from lib.arm.activations import BIN_EDGES, MEASURES, histogram, measure, near_zero_bound, watched
from lib.arm.hook import installed
from lib.arm.settings import Arm, uses_arm
from lib.errors import InputError
from lib.measurement.dilution import Report, measurement_settings
from lib.measurement.kept import kept
from lib.measurement.token_classes import NAMES, token_classes
from lib.models.loading import Loaded
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem


@dataclass(frozen=True)
class Redistribution:
    """Per condition: `measures` (N, L, 6) in the order of MEASURES, `classes` (N, L, 4) shares near zero in the
    order of token_classes.NAMES (NaN without such tokens), `counts` (L, bins) of BIN_EDGES over all problems.

    Against none, per condition: `shape` and `elements` (N, L), the cosine between its change of the histogram, and
    of the single activations, and the change that the first inserting condition makes.
    """

    measures: dict[str, np.ndarray]
    classes: dict[str, np.ndarray]
    counts: dict[str, np.ndarray]
    shape: dict[str, np.ndarray]
    elements: dict[str, np.ndarray]
    layers: list[int]  # counted from 1


@dataclass
class _Reference:
    """What the conditions of one problem and layer are compared with."""

    bound: torch.Tensor
    activation: torch.Tensor
    counts: torch.Tensor
    change: torch.Tensor | None = None  # of the activations, by the first inserting condition
    shift: torch.Tensor | None = None  # of the histogram


def measure_redistribution(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int],
    *,
    arm: Arm | None = None,
    format: str = "plain",
    filler: Filler | None = None,
    seed: int = 0,
    folder: Path | None = None,
    report: Report = lambda done, total: None,
) -> Redistribution:
    """Measure none and `conditions`, of which one may be arm; the near-zero bound of a prompt is that of none.

    `arm` are ARM's settings, whose c gives the bound too. Costs one forward up to the deepest layer per prompt, kept in
    `folder`. Raises InputError for no problems, a model whose MLP cannot be watched, and activations that are NaN.
    """
    if not problems:
        raise InputError("no problems to measure activations on")
    arm, names = arm or Arm(), ["none", *(name for name in conditions if name != "none")]
    settings = measurement_settings(loaded, problems, format, filler)
    settings |= {"activations": names, "layers": list(layers), "arm": asdict(arm), "seed": seed}

    def compute() -> dict[str, np.ndarray]:
        found = _empty(names, len(problems), len(layers))
        for index, problem in enumerate(problems):
            references: dict[int, _Reference] = {}
            for name in names:
                prompt = build_prompt(loaded.tokenizer, problem.problem, name, format=format, filler=filler)
                changed = _arm_of(loaded, name, arm, seed + index)
                with changed:
                    _run(loaded, prompt, layers, _Reader(found, name, index, layers, prompt, references, arm.c))
                _check_finite(found, name, index, layers, f"{loaded.name} under {name} on problem {problem.id}")
            report(index + 1, len(problems))
        return found

    found = kept(folder, settings, compute)
    report(len(problems), len(problems))
    parts = {part: {name: found[f"{part} {name}"] for name in names} for part in PARTS}
    return Redistribution(**parts, layers=list(layers))


PARTS = ("measures", "classes", "counts", "shape", "elements")


def _empty(names: Sequence[str], problems: int, layers: int) -> dict[str, np.ndarray]:
    """Return NaN arrays, and zero counts, for every part and condition."""
    found = {}
    for name in names:
        found[f"measures {name}"] = np.full((problems, layers, len(MEASURES)), np.nan)
        found[f"classes {name}"] = np.full((problems, layers, len(NAMES)), np.nan)
        found[f"counts {name}"] = np.zeros((layers, len(BIN_EDGES) - 1), dtype=np.int64)
        found[f"shape {name}"] = np.full((problems, layers), np.nan)
        found[f"elements {name}"] = np.full((problems, layers), np.nan)
    return found


def _arm_of(loaded: Loaded, condition: str, arm: Arm, seed: int):
    if not uses_arm(condition):
        return contextlib.nullcontext()
    return installed(loaded.model, seed=seed, **asdict(arm))


def _run(loaded: Loaded, prompt: Prompt, layers: Sequence[int], see: Callable) -> None:
    decoder = loaded.model.get_decoder()
    with torch.inference_mode(), watched(loaded.model, layers, see, stop=True):
        decoder(input_ids=prompt.input_ids[None].to(loaded.model.device), use_cache=False)


class _Reader:
    """Takes in one prompt's activations, a layer at a time."""

    def __init__(self, found: dict, name: str, index: int, layers, prompt: Prompt, references: dict, c: float):
        self.found, self.name, self.index, self.layers = found, name, index, list(layers)
        self.references, self.c = references, c
        span = prompt.spans["problem"]
        inserted = prompt.spans["inserted"]
        self.tokens = [i for i in range(span.start, span.stop) if not inserted.start <= i < inserted.stop]
        named = token_classes(prompt.text, prompt.offsets)
        self.classes = [[row for row, i in enumerate(self.tokens) if named[i] == name] for name in NAMES]

    def __call__(self, layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
        gate, activation = gate[0, self.tokens], activation[0, self.tokens].float()
        if self.name == "none":
            bound = near_zero_bound(activation, self.c)
            self.references[layer] = _Reference(bound, activation, histogram(activation))
        reference, at = self.references[layer], (self.index, self.layers.index(layer))
        self._put("measures", at, measure(gate, activation, reference.bound))
        near = (activation.abs() <= reference.bound).float().mean(-1)  # (n,)
        for k, rows in enumerate(self.classes):
            if rows:
                self.found[f"classes {self.name}"][(*at, k)] = float(near[rows].mean())
        counts = histogram(activation)
        self.found[f"counts {self.name}"][at[1]] += counts.cpu().numpy()
        if self.name != "none":
            change, shift = activation - reference.activation, (counts - reference.counts).float()
            if reference.change is None:
                reference.change, reference.shift = change, shift
            self._put("elements", at, _cosine(change, reference.change))
            self._put("shape", at, _cosine(shift, reference.shift))

    def _put(self, part: str, at: tuple[int, int], values: torch.Tensor) -> None:
        self.found[f"{part} {self.name}"][at] = values.cpu().numpy()


def _cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0)


def _check_finite(found: dict, name: str, index: int, layers: Sequence[int], where: str) -> None:
    """Raise InputError naming the first layer, the model, the condition and the problem that gave NaN."""
    bad = ~np.isfinite(found[f"measures {name}"][index]).all(-1)
    if bad.any():
        raise InputError(f"{where} gives NaN activations in layer {layers[int(bad.argmax())]}")
