"""Define the variables of measurements on a model, and the labels of their dimensions.

VARIABLES lists every variable with its dimensions and meaning. Layers and heads count
from 1. A `bin` is named by its left edge; a `token` belongs to the prompt of a single
problem, the profile's example, which figures draw. NaN marks a value that was not
measured. Means over problems may therefore have different n: all problems pass through
the first layers, but only some through all layers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

TRAINED = "trained"
# Networks of the same shape with random weights.
UNTRAINED = [f"untrained {seed}" for seed in range(3)]
# Not a network: uniform attention over all earlier tokens.
UNIFORM = "uniform"
# The seed of each network's random weights; None for the trained model. Uniform
# attention depends only on windows and heads, not on weights.
SEEDS = {TRAINED: None, **{name: seed for seed, name in enumerate(UNTRAINED)}}
SEEDS[UNIFORM] = 0

# Conditions of attention, whose variables compare each of them with `none`.
INSERTIONS = ("mless", "mful", "random")
# Conditions of activations, which are also measured under `none`. The variable `shape`
# compares the others with the first of them.
CHANGES = (*INSERTIONS, "arm")
OTHERS = "others"  # the class of tokens that the other classes are compared with
# The order of the labels in these dimensions, whatever was measured first.
ORDER = {"network": list(SEEDS), "condition": ["none", *CHANGES]}

PER_LAYER = "network condition problem layer"
PER_HEAD = "network condition problem layer head"
PER_FIT = "network problem head"
# By measure and name: the dimensions and the meaning, which are stored in the file. All
# are pure numbers, counts of activations, or names of parts.
VARIABLES: dict[str, dict[str, tuple[str, str]]] = {
    "attention": {
        "lambda": (
            PER_HEAD,
            "mean received attention of the original tokens except the first and last,"
            " with the insertion divided by without it (W' = lambda W, Sec. 3)",
        ),
        "irregularity": (
            PER_HEAD,
            "standard deviation, over the original tokens, of log(received attention"
            " with / without the insertion) (Fig. 9); NaN for a head that gives one of"
            " them exactly 0",
        ),
        "unevenness": (
            PER_HEAD,
            "coefficient of variation (standard deviation / mean) of the attention"
            " that original tokens receive",
        ),
        "mass": (
            PER_HEAD,
            "share of their attention that the original tokens after the insertion"
            " give to the inserted tokens",
        ),
        "flatness": (
            PER_HEAD,
            "coefficient of variation of the attention that inserted tokens receive"
            " (Figs. 10 and 11)",
        ),
        "dispersion": (
            PER_HEAD,
            "RMS distance of the inserted tokens' value vectors from their mean,"
            " divided by that from zero",
        ),
        "portion": (
            PER_HEAD,
            "mean received attention of the inserted tokens, divided by that of the"
            " original tokens (Fig. 13)",
        ),
        "lambda_over_heads": (
            f"{PER_LAYER} span query",
            "lambda of the tokens of a span, by the attention of these queries alone:"
            " a ratio of means over heads",
        ),
    },
    "affine": {
        "affine": (
            PER_FIT,
            "R2 of new = lambda * old + sigma for the head's outputs, one lambda and"
            " one sigma (a vector) per prompt and head (Eq. 2)",
        ),
        "line": (
            PER_FIT,
            "R2 of new = lambda * old + a coefficient per token times one direction,"
            " with the lambda of the form above",
        ),
        "softmax": (
            PER_FIT,
            "R2 of new = lambda * old + (1 - lambda) * v, one vector v, each token's"
            " lambda being the share of its attention on original tokens",
        ),
    },
    "activations": {
        "measures": (
            f"{PER_LAYER} measure",
            "near zero: share of activations within c * 1.4826 * MAD under none (Sec."
            " 4); norms per token",
        ),
        "classes": (
            f"{PER_LAYER} class",
            "share of near-zero activations in the problem's tokens of a class (Fig."
            " 7); NaN without such tokens",
        ),
        "counts": (
            "network condition layer bin",
            "histogram of activations over all problems (Fig. 4); the outermost bins"
            " include all values beyond",
        ),
        "shape": (
            PER_LAYER,
            "cosine between the change of a problem's histogram and the change that the"
            " slashes cause",
        ),
    },
    "tokens": {
        "received": (
            "condition layer head token",
            "attention that each token of the example's prompt receives",
        ),
        "part": (
            "condition token",
            "part of the prompt: instruction, inserted, problem, or merged with its"
            " neighbour under some condition; empty beyond its end",
        ),
    },
}
DIMENSIONS = {
    name: dims.split()
    for variables in VARIABLES.values()
    for name, (dims, _) in variables.items()
}


def stacked(
    rows: Sequence[Mapping[str, np.ndarray]], axis: int = 0
) -> dict[str, np.ndarray]:
    """Return the arrays of several dicts by name, stacked along a new axis in the order
    of the dicts.
    """
    return {name: np.stack([row[name] for row in rows], axis) for name in rows[0]}


def to_dataset(
    measure: str, arrays: Mapping[str, np.ndarray], coords: Mapping[str, Any]
) -> xr.Dataset:
    """Return the arrays of a measure on one network as a Dataset, with the dimensions
    of VARIABLES except the network.

    All become float32 except the counts, which may be integers beyond its precision.
    """
    variables = {}
    for name, array in arrays.items():
        _, *dims = VARIABLES[measure][name][0].split()  # without the network
        values = array if name == "counts" else array.astype("float32")
        variables[name] = (dims, values)
    return xr.Dataset(variables, coords)
