"""Measure how insertions and ARM change the MLP activations of the problem's tokens,
also by class of tokens.

Only the problem's tokens are measured, because they are the same in every condition;
tokens before an insertion cannot change in a causal model. The paper does not list its
classes of tokens (Fig. 7): here the first character of a token that is not a space
decides whether it is a digit, operator, conjunction or another token, so that the
classes do not depend on the tokenizer.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.arm.mlp_activations import (
    ACTIVATION_MEASURES,
    BIN_EDGES,
    histogram,
    measures_of,
    near_zero_bound,
    watched,
)
from lib.arm.redistribution import installed
from lib.arm.settings import Arm
from lib.attention.model_properties import on_device
from lib.errors import InputError
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import parse_condition
from reproduction.measurement.attention_changes import Prompts
from reproduction.measurement.dataset import OTHERS, stacked, to_dataset

CONJUNCTIONS = (
    "and|or|nor|but|yet|so|if|then|else|unless|until|when|whenever|while|whereas|where"
    "|because|since|although|though|whether|that|than|as|before|after|once|therefore"
    "|thus|hence|given|such"
)
# LaTeX commands that print an operator.
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
    """Return the class of each token, one of TOKEN_CLASSES; tokens of only spaces are
    "others".

    offsets: the (start, stop) of each token in the text, in characters.
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
    layers: Sequence[int],
    arm: Arm,
    seed: int,
) -> xr.Dataset:
    """Return the variables `activations` (reproduction.measurement.dataset) of prompts
    under `none` and the other conditions.

    layers: counted from 1. An activation is near zero if it lies within a bound that is
    computed under `none` with arm.c. The result is reduced problem by problem, so that
    memory does not grow with their number. Costs one forward pass up to the deepest
    layer per prompt. Raises InputError for a model without a known activation module,
    and for activations that are NaN.
    """
    problems = list(prompts["none"])

    by_problem = []
    # Sums of integers, in float64 because other networks may have NaN.
    counts = np.zeros(())
    several = f"{len(layers)} layers" if len(layers) > 1 else "1 layer"
    stage = f"{loaded.name}, activations in {several}"
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
        "layer": list(layers),
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
    """Return the variables of one problem, by name: arrays (condition, L, ...), with
    `none` first.
    """
    bounds: dict[int, torch.Tensor] = {}
    by_condition = []
    for condition, by_problem in prompts.items():
        redistribution: AbstractContextManager = nullcontext()
        if parse_condition(condition).arm:
            redistribution = installed(loaded.model, arm, seed=seed)
        with redistribution:
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
    variables["shape"] = _cosine_to_first_change(variables["counts"])
    return variables


def _cosine_to_first_change(counts: np.ndarray) -> np.ndarray:
    """Return the cosine between the change of the histogram under each condition and
    that under the first condition after `none`, which is mless; (condition, L), NaN for
    `none`.

    counts: (condition, L, bin), with `none` first.
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
    """Return the variables of one prompt except `shape`, by name: arrays (L, ...).

    bounds: the near-zero bound by layer. It is empty for the prompt under `none`, which
    fills it in for the problem's other prompts.
    """
    device = loaded.model.device
    indices = _problem_indices(prompt)
    tokens = torch.tensor(indices, device=device)
    membership = _class_membership(prompt, indices).to(device)
    by_layer: dict[int, dict[str, torch.Tensor]] = {}

    def record(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
        gate = gate[0, tokens]
        activation = activation[0, tokens].float()
        if layer not in bounds:
            bounds[layer] = near_zero_bound(activation.reshape(1, -1), c)
        bound = bounds[layer]
        by_layer[layer] = {
            "measures": measures_of(gate, activation, bound),
            "classes": _near_zero_by_class(activation, bound, membership),
            "counts": histogram(activation),
        }

    input_ids = on_device(loaded.model, prompt.input_ids[None])
    with torch.inference_mode(), watched(loaded.model, layers, record):
        decoder = loaded.model.get_decoder()
        decoder(input_ids=input_ids, use_cache=False)

    variables = {}
    for name in by_layer[layers[0]]:
        values = torch.stack([by_layer[layer][name] for layer in layers])
        # One copy per variable, because a copy per layer would wait for the device
        # thousands of times.
        variables[name] = values.cpu().numpy()
    return variables


def _near_zero_by_class(
    activation: torch.Tensor, bound: torch.Tensor, membership: torch.Tensor
) -> torch.Tensor:
    """Return the share (0 to 1) of near-zero activations in the tokens of each of
    TOKEN_CLASSES; NaN for a class without tokens.

    activation: (n, F). membership: (class, n), 1 for a token of the class.
    """
    is_near = activation.abs() <= bound  # (n, F)
    by_token = is_near.float().mean(-1)
    return membership @ by_token / membership.sum(-1)


def _problem_indices(prompt: Prompt) -> list[int]:
    """Return the indices of the problem's tokens, without those inserted among them."""
    problem = range(*prompt.spans["problem"].indices(len(prompt)))
    inserted = range(*prompt.spans["inserted"].indices(len(prompt)))
    return [index for index in problem if index not in inserted]


def _class_membership(prompt: Prompt, indices: Sequence[int]) -> torch.Tensor:
    """Return (class, n): 1 if the token at an index belongs to the class, else 0."""
    classes = token_classes(prompt.text, prompt.offsets)
    rows = [[classes[index] == name for index in indices] for name in TOKEN_CLASSES]
    return torch.tensor(rows).float()
