"""How insertions and ARM change the MLP activations of the problem's tokens: over all problems, layer by layer.

A problem runs under every condition, one at a time, and is reduced as it runs: what is held does not grow with the
number of problems. Only the problem's tokens count: they are the same in every condition, and what stands before
an insertion cannot change with it in a causal model.

The paper does not list its classes of tokens (Fig. 7). Here they are read from the text, so that every tokenizer is
judged by the same characters: a token belongs to the class of the first character in it that is not a space.
"""

import contextlib
import re
from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.arm.activations import BIN_EDGES, MEASURES, histogram, measure, near_zero_bound, watched
from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.measurement.attention import prompts_of
from lib.measurement.store import OTHERS, VARIABLES
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem

CONJUNCTIONS = (
    "and|or|nor|but|yet|so|if|then|else|unless|until|when|whenever|while|whereas|where|because|since|although|though|"
    "whether|that|than|as|before|after|once|therefore|thus|hence|given|such"
)
# LaTeX commands stand beside the signs they print.
COMMANDS = (
    "times|cdot|div|pm|mp|frac|dfrac|tfrac|sqrt|le|leq|ge|geq|lt|gt|ne|neq|equiv|approx|sim|in|notin|subset|cup|cap|"
    "sum|prod|int|lim|log|ln|sin|cos|tan|to|pmod|bmod|mod|mid|circ|oplus"
)
CLASSES = {
    "digits": re.compile(r"\d+"),
    "operators": re.compile(rf"\\(?:{COMMANDS})(?![a-zA-Z])|[-+*/=<>^!|%±×÷·∓≤≥≠≈√∑∏∫−]"),
    "conjunctions": re.compile(rf"(?<![\\\w])(?:{CONJUNCTIONS})(?!\w)", re.IGNORECASE),
}
NAMES = (*CLASSES, OTHERS)
DIMS = {name: tuple(about[0].split()[1:]) for name, about in VARIABLES["activations"].items()}  # of one network


def token_classes(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """Return the class, one of NAMES, of each token, given its (start, stop) in the text; spaces alone are others."""
    by_character = [OTHERS] * len(text)
    for name, pattern in CLASSES.items():
        for match in pattern.finditer(text):
            by_character[match.start() : match.end()] = [name] * (match.end() - match.start())
    found = []
    for start, stop in offsets:
        first = next((i for i in range(start, stop) if not text[i].isspace()), None)
        found.append(OTHERS if first is None else by_character[first])
    return found


def measure_activations(
    loaded: Loaded,
    problems: Sequence[Problem],
    conditions: Sequence[str],
    layers: Sequence[int] | None = None,
    *,
    arm: Arm | None = None,
    format: str = "plain",
    filler: Filler | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Measure none and `conditions`, of which one may be arm; the near-zero bound of a prompt is that of none.

    Returns the variables `activations` over (condition, problem, layer) and measure or class, `counts` over
    (condition, layer, bin). `arm` are ARM's settings, whose c gives the bound too; `layers` None: all that are loaded.
    Costs one forward up to the deepest layer per prompt. Raises InputError for a model whose MLP cannot be watched, and
    activations that are NaN.
    """
    arm = arm or Arm()
    coords = {
        "condition": ["none", *conditions],
        "problem": [problem.id for problem in problems],
        "layer": list(layers or range(1, loaded.layers + 1)),
        "measure": list(MEASURES),
        "class": list(NAMES),
        "bin": BIN_EDGES[:-1].double().numpy().round(6),  # where each begins
    }
    prompts = {name: prompts_of(loaded, problems, name, format, filler) for name in coords["condition"]}
    found = _measure(loaded, prompts, coords, arm, seed)
    return xr.Dataset({name: (DIMS[name], values) for name, values in found.items()}, coords)


def _measure(
    loaded: Loaded, prompts: dict[str, list[Prompt]], coords: dict, arm: Arm, seed: int
) -> dict[str, np.ndarray]:
    """Return the arrays of DIMS from the prompts of each condition."""
    names, layers = coords["problem"], coords["layer"]
    found = {part: np.full([len(coords[dim]) for dim in dims], np.nan, "float32") for part, dims in DIMS.items()}
    found["counts"] = np.zeros(found["counts"].shape)  # float64: whole numbers that a network may lack
    with progress.bar(f"{loaded.name}, activations in {len(layers)} layers", len(names)) as bar:
        for index, problem in enumerate(names):
            references: dict[int, _Reference] = {}
            for at, (condition, given) in enumerate(prompts.items()):
                working = installed(loaded.model, seed=seed + index, **arm.model_dump())
                with working if parse_condition(condition).arm else contextlib.nullcontext():
                    reduced = _reduced(loaded, given[index], layers, references, arm.c)
                for layer, measures in zip(layers, reduced["measures"], strict=True):
                    if not np.isfinite(measures).all():
                        where = f"{loaded.name} under {condition} on problem {problem}"
                        raise InputError(f"{where} gives NaN activations in layer {layer}")
                found["counts"][at] += reduced.pop("counts")
                for part, values in reduced.items():
                    found[part][at, index] = values
            bar.update()
    return found


class _Reference:
    """The activations (n, F) of one problem and layer under none, with which its other conditions are compared."""

    def __init__(self, activation: torch.Tensor, c: float):
        self.activation, self.counts = activation, histogram(activation)
        self.bound = near_zero_bound(activation.reshape(1, -1), c)
        self.change: torch.Tensor | None = None  # of the activations, by the first inserting condition
        self.shift: torch.Tensor | None = None  # of the histogram

    def compare(
        self, gate: torch.Tensor, activation: torch.Tensor, rows: list[torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Return the variables of a prompt; `rows` are the tokens of each class."""
        counts, near = histogram(activation), (activation.abs() <= self.bound).float().mean(-1)  # (n,)
        parts = {"counts": counts, "measures": measure(gate, activation, self.bound)}
        parts["classes"] = torch.stack([near[some].mean() for some in rows])
        if activation is not self.activation:
            change, shift = activation - self.activation, (counts - self.counts).float()
            if self.change is None or self.shift is None:
                self.change, self.shift = change, shift
            parts |= {"shape": _cosine(shift, self.shift), "elements": _cosine(change, self.change)}
        return parts


def _reduced(
    loaded: Loaded, prompt: Prompt, layers: Sequence[int], references: dict[int, _Reference], c: float
) -> dict[str, np.ndarray]:
    """Return the variables of one prompt, each over its layers; a problem's first prompt is the others' reference."""
    span, inserted = prompt.spans["problem"], prompt.spans["inserted"]
    places = [i for i in range(span.start, span.stop) if not inserted.start <= i < inserted.stop]
    named, device = token_classes(prompt.text, prompt.offsets), loaded.model.device
    of_class = ([row for row, i in enumerate(places) if named[i] == name] for name in NAMES)
    rows = [torch.tensor(some, dtype=torch.long, device=device) for some in of_class]
    tokens, found = torch.tensor(places, device=device), {}

    def see(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
        gate, activation = gate[0, tokens], activation[0, tokens].float()
        if layer not in references:
            references[layer] = _Reference(activation, c)
        found[layer] = references[layer].compare(gate, activation, rows)

    with torch.inference_mode(), watched(loaded.model, layers, see, stop=True):
        loaded.model.get_decoder()(input_ids=prompt.input_ids[None].to(device), use_cache=False)
    # A copy for each variable: one for each layer, too, would wait for the device thousands of times.
    return {part: torch.stack([found[layer][part] for layer in layers]).cpu().numpy() for part in found[layers[0]]}


def _cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0)
