"""How insertions and ARM change the MLP activations of the problem's tokens: over all
problems, layer by layer.

Only the problem's tokens count: they are the same in every condition, and what stands
before an insertion cannot change with it in a causal model. The paper does not list its
classes of tokens (Fig. 7). Here they are read from the text, so that every tokenizer is
judged by the same characters: a token belongs to the class of the first character in it
that is not a space.
"""

import contextlib
import re
from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.arm.activations import (
    BIN_EDGES,
    MEASURES,
    histogram,
    measure,
    near_zero_bound,
    watched,
)
from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.measurement.attention import Prompts
from lib.measurement.plan import OTHERS, to_dataset
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import parse_condition

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
    "operators": re.compile(
        rf"\\(?:{COMMANDS})(?![a-zA-Z])|[-+*/=<>^!|%±×÷·∓≤≥≠≈√∑∏∫−]"
    ),
    "conjunctions": re.compile(rf"(?<![\\\w])(?:{CONJUNCTIONS})(?!\w)", re.IGNORECASE),
}
NAMES = (*CLASSES, OTHERS)


def token_classes(text: str, offsets: Sequence[tuple[int, int]]) -> list[str]:
    """Return the class, one of NAMES, of each token, given its (start, stop) in the
    text; spaces alone are others.
    """
    by_character = [OTHERS] * len(text)
    for name, pattern in CLASSES.items():
        for match in pattern.finditer(text):
            by_character[match.start() : match.end()] = [name] * (
                match.end() - match.start()
            )
    firsts = (
        next((i for i in range(start, stop) if not text[i].isspace()), None)
        for start, stop in offsets
    )
    return [OTHERS if first is None else by_character[first] for first in firsts]


def measure_activations(
    loaded: Loaded,
    prompts: Prompts,
    layers: Sequence[int] | None = None,
    *,
    arm: Arm | None = None,
    seed: int = 0,
) -> xr.Dataset:
    """Return the variables `activations` of prompts under none, whose near-zero bound
    counts, and other conditions.

    A problem is reduced as it runs: what is held does not grow with their number. `arm`
    are ARM's settings, whose c gives the bound too; `layers` None: all that are loaded.
    Costs one forward up to the deepest layer per prompt. Raises InputError for a model
    whose MLP cannot be watched, and activations that are NaN.
    """
    arm, layers, ids = (
        arm or Arm(),
        list(layers or range(1, loaded.layers + 1)),
        list(prompts["none"]),
    )
    found, counts = [], np.zeros(())  # float64: whole numbers that a network may lack
    with progress.bar(
        f"{loaded.name}, activations in {len(layers)} layers", len(ids)
    ) as bar:
        for index, problem in enumerate(ids):
            references: dict[int, tuple] = {}
            rows = []
            for condition, by_problem in prompts.items():
                working = installed(loaded.model, seed=seed + index, **arm.model_dump())
                with (
                    working
                    if parse_condition(condition).arm
                    else contextlib.nullcontext()
                ):
                    rows.append(
                        _reduced(loaded, by_problem[problem], layers, references, arm.c)
                    )
                for layer, measures in zip(layers, rows[-1]["measures"], strict=True):
                    if not np.isfinite(measures).all():
                        where = f"{loaded.name} under {condition} on problem {problem}"
                        raise InputError(
                            f"{where} gives NaN activations in layer {layer}"
                        )
            found.append(
                {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            )
            counts = counts + found[-1].pop("counts")
            bar.update()
    arrays = {name: np.stack([one[name] for one in found], 1) for name in found[0]} | {
        "counts": counts
    }
    coords = {
        "condition": list(prompts),
        "problem": ids,
        "layer": layers,
        "measure": list(MEASURES),
    }
    coords |= {
        "class": list(NAMES),
        "bin": BIN_EDGES[:-1].double().numpy().round(6),
    }  # where each begins
    return to_dataset("activations", arrays, coords)


def _reduced(
    loaded: Loaded,
    prompt: Prompt,
    layers: Sequence[int],
    references: dict[int, tuple],
    c: float,
) -> dict[str, np.ndarray]:
    """Return the variables of one prompt, each over its layers.

    references: what a problem's other prompts are compared with in each layer, put
    there by its first, activations (n, F), their histogram and bound, and by its
    second, the changes of both.
    """
    span, inserted = prompt.spans["problem"], prompt.spans["inserted"]
    places = [
        i
        for i in range(span.start, span.stop)
        if not inserted.start <= i < inserted.stop
    ]
    named, device = token_classes(prompt.text, prompt.offsets), loaded.model.device
    of_class = (
        [row for row, i in enumerate(places) if named[i] == name] for name in NAMES
    )
    rows = [torch.tensor(some, dtype=torch.long, device=device) for some in of_class]
    tokens, found = torch.tensor(places, device=device), {}

    def see(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
        gate, activation = gate[0, tokens], activation[0, tokens].float()
        counts, likeness = (
            histogram(activation),
            [torch.full((), torch.nan, device=device)] * 2,
        )
        if layer not in references:
            references[layer] = (
                activation,
                counts,
                near_zero_bound(activation.reshape(1, -1), c),
            )
        plain, before, bound, *first = references[layer]
        if activation is not plain:
            changes = activation - plain, (counts - before).float()
            references[layer] = plain, before, bound, *(first or changes)
            pairs = zip(changes, first or changes, strict=True)
            likeness = [
                torch.cosine_similarity(one.flatten(), other.flatten(), dim=0)
                for one, other in pairs
            ]
        near = (activation.abs() <= bound).float().mean(-1)  # (n,)
        classes = torch.stack([near[some].mean() for some in rows])
        found[layer] = {
            "counts": counts,
            "measures": measure(gate, activation, bound),
            "classes": classes,
        }
        found[layer] |= {"elements": likeness[0], "shape": likeness[1]}

    with torch.inference_mode(), watched(loaded.model, layers, see, stop=True):
        loaded.model.get_decoder()(
            input_ids=prompt.input_ids[None].to(device), use_cache=False
        )
    # A copy for each variable: one for each layer, too, would wait for the device
    # thousands of times.
    return {
        part: torch.stack([found[layer][part] for layer in layers]).cpu().numpy()
        for part in found[layers[0]]
    }
