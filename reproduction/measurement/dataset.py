"""Define the variables of measurements on a model, the labels of their dimensions, and
the steps in which they are measured; store each step as a row, or all as one file.

    row = row_of(key, measured)        # a line of steps.jsonl
    measured = dataset_of(row, folder)
    content = encoded(merged(steps))   # a NetCDF file, followed by its digest
    measured = read_measured(path)

VARIABLES lists every variable with its dimensions and meaning. Layers and heads count
from 1. A `bin` is named by its left edge; a `token` belongs to the prompt of a single
problem, the profile's example, which figures draw. NaN marks a value that was not
measured. Means over problems may therefore have different n: all problems pass through
the first layers, but only some through all layers.
"""

import base64
import contextlib
import hashlib
import io
from collections import ChainMap
from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from lib.errors import InputError
from lib.files.text_files import read_bytes
from lib.paths import relative_path

TRAINED = "trained"
# Networks of the same shape with random weights.
UNTRAINED = [f"untrained {seed}" for seed in range(3)]
# Not a network: uniform attention over all earlier tokens.
UNIFORM = "uniform"
# The seed of each network's random weights; None for the trained model. Uniform
# attention depends only on windows and heads, so that any network of the shape serves.
SEEDS = {TRAINED: None, **{name: seed for seed, name in enumerate(UNTRAINED)}}
SEEDS[UNIFORM] = 0

# Conditions of attention, whose variables compare each of them with `none`.
INSERTIONS = ("mless", "mful", "random")
# Conditions of activations, which are also measured under `none`. The variable `shape`
# compares the others with the first of them.
CHANGES = (*INSERTIONS, "arm")
OTHERS = "others"  # the class of tokens that the other classes are compared with

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

# The version of each measure, which is a part of keys. It increases if the measure
# computes something else, so that older numbers are measured again.
VERSIONS = {"tokens": 1, "attention": 2, "affine": 1, "activations": 1}


class PlannedStep(NamedTuple):
    """A measure on one network under some conditions, which is stored as one row.

    A step measures the first layers on all problems; a deep step measures the layers
    after those, on some of the problems.
    """

    part: str  # one of MEASURED_PARTS, under which the step is requested
    network: str  # one of SEEDS
    deep: bool
    measure: str  # one of VARIABLES
    conditions: tuple[str, ...]


# The parts that can be requested: the received attention in the example's prompt,
# attention and activations of the trained network, and both for the other networks.
MEASURED_PARTS = ("tokens", "attention", "activations", "controls")
_DRAWN = ("none", *INSERTIONS)
_CHANGED = ("none", *CHANGES)
_CONTROLLED = ("none", "mless", "arm")

# Ordered by network and depth, so that weights are loaded once.
STEPS = [
    PlannedStep("tokens", TRAINED, False, "tokens", _DRAWN),
    PlannedStep("attention", TRAINED, False, "attention", INSERTIONS),
    PlannedStep("attention", TRAINED, False, "affine", ("mless",)),
    PlannedStep("activations", TRAINED, False, "activations", _CHANGED),
    PlannedStep("attention", TRAINED, True, "attention", INSERTIONS),
]
for _network in UNTRAINED:
    STEPS += [
        PlannedStep("controls", _network, False, "attention", INSERTIONS),
        PlannedStep("controls", _network, False, "affine", ("mless",)),
        PlannedStep("controls", _network, False, "activations", _CONTROLLED),
    ]
STEPS.append(PlannedStep("controls", UNIFORM, False, "attention", INSERTIONS))


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


STEPS_FILE = "steps.jsonl"
NETCDF_ENGINE = "h5netcdf"
DIGEST_BYTES = hashlib.sha256().digest_size  # after each dataset


def row_of(key: str, measured: xr.Dataset) -> dict:
    """Return the row that stores a step's measurements."""
    return {"key": key, "dataset": base64.b64encode(encoded(measured)).decode()}


def dataset_of(row: dict, folder: Path) -> xr.Dataset:
    """Return the dataset that a row of a folder stores; raise InputError if it is
    damaged.
    """
    content = b""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        content = base64.b64decode(row["dataset"])
    return decoded(content, folder / STEPS_FILE)


def select_problems(measured: xr.Dataset, ids: Collection[str]) -> xr.Dataset:
    """Return the measurements on the problems with these ids.

    Variables without the dimension problem, such as histograms, stay those of all
    problems.
    """
    kept = [name for name in measured.problem.values if name in ids]
    return measured.sel(problem=kept)


def read_measured(path: Path) -> xr.Dataset:
    """Return the measurements of a file; raise InputError if it is damaged."""
    return decoded(read_bytes(path), path)


def encoded(measured: xr.Dataset) -> bytes:
    """Return measurements as the bytes of a NetCDF file, with a description of each
    variable, followed by their SHA-256 digest.
    """
    measured = measured.copy()
    meanings = ChainMap(*VARIABLES.values())
    encoding: dict[Hashable, dict] = {}
    for name, values in measured.items():
        values.attrs["long_name"] = meanings[str(name)][1]
        if values.dtype.kind == "f":
            encoding[name] = {"zlib": True, "complevel": 6, "shuffle": True}
    content = bytes(measured.to_netcdf(None, engine=NETCDF_ENGINE, encoding=encoding))
    # NetCDF has no checksum of the file, and readers ignore what follows its end.
    return content + hashlib.sha256(content).digest()


def decoded(content: bytes, path: Path) -> xr.Dataset:
    """Return the measurements that `encoded` turned into bytes.

    Raises InputError that names the file, `path`, if the digest does not match.
    """
    data, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        raise InputError(
            f"{relative_path(path)} is damaged: delete it, and it is measured again"
        )
    return xr.load_dataset(io.BytesIO(content), engine=NETCDF_ENGINE).drop_encoding()


def merged(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return datasets merged into one, with NaN (or "" as a token's part) for missing
    values.

    Labels keep the order in which they first appear.
    """
    labels: dict[Hashable, dict] = {}
    for dataset in datasets:
        for dim in dataset.dims:
            known = dict.fromkeys(dataset[dim].values.tolist())
            labels.setdefault(dim, {}).update(known)
    coords = {dim: list(values) for dim, values in labels.items()}

    aligned = []
    for dataset in datasets:
        indexers = {dim: coords[dim] for dim in dataset.dims}
        aligned.append(dataset.reindex(indexers, fill_value={"part": ""}))
    return xr.merge(aligned, compat="no_conflicts", join="exact")
