"""How insertions and ARM change the MLP activations of the problem's tokens.

Only the problem's tokens count: they are the same in every condition, and what stands
before an insertion cannot change with it in a causal model. The paper does not list its
classes of tokens (Fig. 7). Here they are read from the text, so that every tokenizer is
judged by the same characters: a token belongs to the class of the first character in it
that is not a space.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.arm.activations import (
    ACTIVATION_MEASURES,
    BIN_EDGES,
    histogram,
    measures_of,
    near_zero_bound,
    watched,
)
from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.attention.function import on_device
from lib.errors import InputError
from lib.measurement.attention import Prompts
from lib.measurement.variables import OTHERS, stacked, to_dataset
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import parse_condition

CONJUNCTIONS = (
    "and|or|nor|but|yet|so|if|then|else|unless|until|when|whenever|while|whereas|where"
    "|because|since|although|though|whether|that|than|as|before|after|once|therefore"
    "|thus|hence|given|such"
)
# LaTeX commands stand beside the signs that they print.
OPERATOR_COMMANDS = (
    "times|cdot|div|pm|mp|frac|dfrac|tfrac|sqrt|le|leq|ge|geq|lt|gt|ne|neq|equiv|approx"
    "|sim|in|notin|subset|cup|cap|sum|prod|int|lim|log|ln|sin|cos|tan|to|pmod|bmod|mod"
    "|mid|circ|oplus"
)
CLASS_PATTERNS = {
    "digits": re.compile(r"\d+"),
    "operators": re.compile(
        rf"\\(?:{OPERATOR_COMMANDS})(?![a-zA-Z])"
        r"|[-+*/=<>^!|%±×÷·∓≤≥≠≈√∑∏∫−]"
    ),
    "conjunctions": re.compile(rf"(?<![\\\w])(?:{CONJUNCTIONS})(?!\w)", re.IGNORECASE),
}
TOKEN_CLASSES = (*CLASS_PATTERNS, OTHERS)


def token_classes(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """Return the class, of TOKEN_CLASSES, of each token; spaces alone are others.

    offsets: the (start, stop) of the tokens in the text.
    """
    by_character = [OTHERS] * len(text)
    for name, pattern in CLASS_PATTERNS.items():
        for match in pattern.finditer(text):
            length = match.end() - match.start()
            by_character[match.start() : match.end()] = [name] * length

    classes = []
    for start, stop in offsets:
        visible = [i for i in range(start, stop) if not text[i].isspace()]
        classes.append(by_character[visible[0]] if visible else OTHERS)
    return classes


def measure_activations(
    loaded: Loaded,
    prompts: Prompts,
    layers: Sequence[int] | None = None,
    *,
    arm: Arm | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Return the variables `activations` of prompts under none and other conditions.

    What counts as near zero is decided under none. A problem is reduced as it runs:
    what is held does not grow with their number. `arm` are ARM's settings, whose c
    gives the bound too; `layers` None: all that are loaded. Costs one forward up to the
    deepest layer per prompt. Raises InputError for a model whose MLP cannot be watched,
    and activations that are NaN.
    """
    arm = arm or Arm()
    layers = list(layers or range(1, loaded.layers + 1))
    problems = list(prompts["none"])

    by_problem = []
    # Sums of whole numbers, as float64 since a network may lack them.
    counts = np.zeros(())
    stage = f"{loaded.name}, activations in {len(layers)} layers"
    with progress.bar(stage, len(problems)) as bar:
        for index, problem in enumerate(problems):
            variables = _measure_problem(
                loaded, prompts, problem, layers, arm, seed + index
            )
            counts = counts + variables.pop("counts")
            by_problem.append(variables)
            bar.update()

    arrays = stacked(by_problem, axis=1)
    arrays["counts"] = counts
    bin_starts = BIN_EDGES[:-1].double().numpy()
    coords = {
        "condition": list(prompts),
        "problem": problems,
        "layer": layers,
        "measure": list(ACTIVATION_MEASURES),
        "class": list(TOKEN_CLASSES),
        "bin": bin_starts.round(6),
    }
    return to_dataset("activations", arrays, coords)


def _measure_problem(
    loaded: Loaded,
    prompts: Prompts,
    problem: str,
    layers: Sequence[int],
    arm: Arm,
    seed: int,
) -> dict[str, np.ndarray]:
    """Return the variables of one problem over its conditions, (condition, L, ...)."""
    bounds: dict[int, torch.Tensor] = {}
    by_condition = []
    for condition, by_problem in prompts.items():
        moving: AbstractContextManager = nullcontext()
        if parse_condition(condition).arm:
            moving = installed(loaded.model, seed=seed, **arm.model_dump())
        with moving:
            variables = _measure_prompt(
                loaded, by_problem[problem], layers, bounds, arm.c
            )
        for layer, measures in zip(layers, variables["measures"], strict=True):
            if not np.isfinite(measures).all():
                raise InputError(
                    f"{loaded.name} under {condition} on problem {problem} gives NaN"
                    f" activations in layer {layer}"
                )
        by_condition.append(variables)

    variables = stacked(by_condition)
    variables["shape"] = _likeness(variables["counts"])
    return variables


def _likeness(counts: np.ndarray) -> np.ndarray:
    """Return (condition, L), the cosine between each condition's change of histograms
    from none and that of the first other condition; NaN for none itself.

    counts: (condition, L, bin), none first.
    """
    changes = torch.from_numpy(counts - counts[0]).float()
    cosines = torch.cosine_similarity(changes, changes[1], dim=-1)
    cosines[0] = torch.nan
    return cosines.numpy()


def _measure_prompt(
    loaded: Loaded,
    prompt: Prompt,
    layers: Sequence[int],
    bounds: dict[int, torch.Tensor],
    c: float,
) -> dict[str, np.ndarray]:
    """Return the variables of one prompt but `shape`, each over its layers.

    bounds: by layer what is near zero, put there by the first of a problem's prompts.
    """
    device = loaded.model.device
    places = _problem_tokens(prompt)
    tokens = torch.tensor(places, device=device)
    members = _members_of_classes(prompt, places).to(device)
    by_layer: dict[int, dict[str, torch.Tensor]] = {}

    def see(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
        gate = gate[0, tokens]
        activation = activation[0, tokens].float()
        if layer not in bounds:
            bounds[layer] = near_zero_bound(activation.reshape(1, -1), c)
        bound = bounds[layer]
        by_layer[layer] = {
            "measures": measures_of(gate, activation, bound),
            "classes": _near_by_class(activation, bound, members),
            "counts": histogram(activation),
        }

    input_ids = on_device(loaded.model, prompt.input_ids[None])
    with torch.inference_mode(), watched(loaded.model, layers, see, stop=True):
        decoder = loaded.model.get_decoder()
        decoder(input_ids=input_ids, use_cache=False)

    variables = {}
    for name in by_layer[layers[0]]:
        values = torch.stack([by_layer[layer][name] for layer in layers])
        # A copy for each variable: one for each layer, too, would wait for the device
        # thousands of times.
        variables[name] = values.cpu().numpy()
    return variables


def _near_by_class(
    activation: torch.Tensor, bound: torch.Tensor, members: torch.Tensor
) -> torch.Tensor:
    """Return the share near zero of each of TOKEN_CLASSES, NaN without any token.

    members: (class, n), 1 for a token of the class.
    """
    is_near = activation.abs() <= bound  # (n, F)
    by_token = is_near.float().mean(-1)
    return members @ by_token / members.sum(-1)


def _problem_tokens(prompt: Prompt) -> list[int]:
    """Return where the problem's tokens stand, without what was inserted among them."""
    problem = range(*prompt.spans["problem"].indices(len(prompt)))
    inserted = range(*prompt.spans["inserted"].indices(len(prompt)))
    return [place for place in problem if place not in inserted]


def _members_of_classes(prompt: Prompt, places: Sequence[int]) -> torch.Tensor:
    """Return (class, n), 1 where the token at one of n places is of a class."""
    classes = token_classes(prompt.text, prompt.offsets)
    members = [[classes[place] == name for place in places] for name in TOKEN_CLASSES]
    return torch.tensor(members).float()
