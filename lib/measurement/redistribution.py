"""How insertions and ARM change the MLP activations of the problem's tokens: over all problems, layer by layer.

A problem runs under every condition, one at a time, and is reduced as it runs: what is held does not grow with the
number of problems. Only the problem's tokens count: they are the same in every condition, and what stands before
an insertion cannot change with it in a causal model.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.arm.activations import BIN_EDGES, MEASURES, histogram, measure, near_zero_bound, watched
from lib.arm.hook import installed
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.measurement.dilution import measurement_settings, prompts_of
from lib.measurement.kept import kept, labelled
from lib.measurement.token_classes import NAMES, token_classes
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem

TEXTS = {
    "measures": ("1", "near zero: share within c * 1.4826 * MAD of none (Sec. 4); norms per token; Gini; variances"),
    "classes": ("1", "share near zero of the problem's tokens of a class (Fig. 7), missing without such tokens"),
    "counts": ("activations", "histogram over all problems (Fig. 4); what lies outside is in the end bins"),
    "shape": ("1", "cosine between the change of the histogram and that by the first inserting condition"),
    "elements": ("1", "cosine between the change of single activations and that by the first inserting condition"),
}
DIMS = {
    "measures": ("condition", "problem", "layer", "measure"),
    "classes": ("condition", "problem", "layer", "class"),
    "counts": ("condition", "layer", "bin"),
    "shape": ("condition", "problem", "layer"),
    "elements": ("condition", "problem", "layer"),
}


def measure_redistribution(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int] | None = None,
    *,
    arm: Arm | None = None,
    format: str = "plain",
    filler: Filler | None = None,
    seed: int = 0,
    folder: Path | None = None,
) -> xr.Dataset:
    """Measure none and `conditions`, of which one may be arm; the near-zero bound of a prompt is that of none.

    Returns the variables of TEXTS over (condition, problem, layer) and measure or class, `counts` over (condition,
    layer, bin). `arm` are ARM's settings, whose c gives the bound too; `layers` None: all that are loaded. Costs one
    forward up to the deepest layer per prompt, kept in `folder`. Raises InputError for no problems, a model whose MLP
    cannot be watched, and activations that are NaN.
    """
    if not problems:
        raise InputError("no problems to measure activations on")
    arm, layers = arm or Arm(), list(layers or range(1, loaded.layers + 1))
    settings = measurement_settings(loaded, problems, format, filler)
    settings |= {"arm": arm.model_dump_json(), "seed": seed}
    coords = {
        "condition": ["none", *conditions],
        "problem": [problem.id for problem in problems],
        "layer": layers,
        "measure": list(MEASURES),
        "class": list(NAMES),
        "bin": BIN_EDGES[:-1].double().numpy().round(6),  # where each begins
    }

    def compute() -> xr.Dataset:
        prompts = {name: prompts_of(loaded, problems, name, format, filler) for name in coords["condition"]}
        found = _measure(loaded, prompts, coords, arm, seed)
        return labelled("redistribution", {part: (DIMS[part], found[part]) for part in DIMS}, coords, TEXTS, settings)

    name, asked = f"redistribution-{loaded.name}-layers{layers[0]}-{layers[-1]}", [coords["condition"], layers]
    return kept(folder, name, settings | {"asked": asked}, compute)


def _measure(
    loaded: Loaded, prompts: dict[str, list[Prompt]], coords: dict, arm: Arm, seed: int
) -> dict[str, np.ndarray]:
    """Return the arrays of DIMS from the prompts of each condition."""
    names, layers = coords["problem"], coords["layer"]
    found = {part: np.zeros([len(coords[dim]) for dim in dims]) * np.nan for part, dims in DIMS.items()}
    found["counts"] = np.zeros(found["counts"].shape, dtype=np.int64)
    with progress.bar(f"{loaded.name}, activations in {len(layers)} layers", len(names)) as bar:
        for index, problem in enumerate(names):
            references: dict[int, _Reference] = {}
            for at, (condition, given) in enumerate(prompts.items()):
                working = installed(loaded.model, seed=seed + index, **arm.model_dump())
                with working if parse_condition(condition).arm else contextlib.nullcontext():
                    reduced = _reduced(loaded, given[index], layers, references, arm.c)
                for place, parts in enumerate(reduced.values()):
                    if not np.isfinite(parts["measures"]).all():
                        where = f"{loaded.name} under {condition} on problem {problem}"
                        raise InputError(f"{where} gives NaN activations in layer {layers[place]}")
                    found["counts"][at, place] += parts.pop("counts")
                    for part, values in parts.items():
                        found[part][at, index, place] = values
            bar.update()
    return found


class _Reference:
    """The activations (n, F) of one problem and layer under none, with which its other conditions are compared."""

    def __init__(self, activation: torch.Tensor, c: float):
        self.activation, self.counts = activation, histogram(activation)
        self.bound = near_zero_bound(activation, c)
        self.change: torch.Tensor | None = None  # of the activations, by the first inserting condition
        self.shift: torch.Tensor | None = None  # of the histogram

    def compare(self, gate: torch.Tensor, activation: torch.Tensor, rows: list[list[int]]) -> dict[str, np.ndarray]:
        """Return TEXTS of a prompt; `rows` are the tokens of each class."""
        counts, near = histogram(activation), (activation.abs() <= self.bound).float().mean(-1)  # (n,)
        parts = {"counts": counts, "measures": measure(gate, activation, self.bound)}
        parts["classes"] = torch.stack([near[some].mean() for some in rows])
        if activation is not self.activation:
            change, shift = activation - self.activation, (counts - self.counts).float()
            if self.change is None or self.shift is None:
                self.change, self.shift = change, shift
            parts |= {"shape": _cosine(shift, self.shift), "elements": _cosine(change, self.change)}
        return {part: values.cpu().numpy() for part, values in parts.items()}


def _reduced(
    loaded: Loaded, prompt: Prompt, layers: Sequence[int], references: dict[int, _Reference], c: float
) -> dict[int, dict[str, np.ndarray]]:
    """Return TEXTS of one prompt by layer; the first prompt of a problem becomes the reference of the others."""
    span, inserted = prompt.spans["problem"], prompt.spans["inserted"]
    tokens = [i for i in range(span.start, span.stop) if not inserted.start <= i < inserted.stop]
    named = token_classes(prompt.text, prompt.offsets)
    rows = [[row for row, i in enumerate(tokens) if named[i] == name] for name in NAMES]
    found = {}

    def see(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
        gate, activation = gate[0, tokens], activation[0, tokens].float()
        if layer not in references:
            references[layer] = _Reference(activation, c)
        found[layer] = references[layer].compare(gate, activation, rows)

    with torch.inference_mode(), watched(loaded.model, layers, see, stop=True):
        loaded.model.get_decoder()(input_ids=prompt.input_ids[None].to(loaded.model.device), use_cache=False)
    return {layer: found[layer] for layer in layers}


def _cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0)
