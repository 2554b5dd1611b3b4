"""All that is measured on the inside of a model, as one Dataset and one file: results/PROFILE/MODEL.nc.

    found = xr.load_dataset("results/demo/SmolLM2-135M-Instruct.nc")
    found["lambda"].sel(network="trained", condition="mless", layer=1)   # (problem, head)

    network    trained; untrained 0 to 2, of the same shape with fresh weights; other keys, the trained one with each
               head's queries against another head's keys; uniform, attention spread evenly
    condition  none, mless, mful, random, arm; attention is told against none and has no numbers under it
    problem    ids; all of them went through the first layers, some through every layer
    layer      and head, from 1
    measure    of a layer's activations: near zero, L1, L2, Gini, variance, gate variance
    class      of tokens: digits, operators, conjunctions, others
    cause      of the dilution of layer 1: both, terms, distance
    span       the tokens whose attention is meant: original (all that were not inserted), problem, instruction
    query      the tokens that give it: all later ones, or the original ones among them
    bin        where each bin of the histogram of activations begins
    token      of one drawn prompt, the profile's example, from 0

VARIABLES has every variable with its dimensions and meaning. NaN stands for what was not measured, so n is a count
per cell; `first_layers` and `every_layer` return what has none. Attributes: model, revision, dtype, device, label (what
a caption calls the model), example (the id of the drawn problem).

A file grows with every condition that is measured and is replaced as a whole. What it holds is used again as long as
the settings and the declared VERSIONS are those it was measured under. data/PROFILE/MODEL.nc, which the repository
keeps, is the same kind of file with rounded numbers and without the tokens of the prompt, which would be a problem's
text.
"""

import functools
import hashlib
import io
import json
import sys
from collections.abc import Hashable
from pathlib import Path

import numpy as np
import xarray as xr

from lib.errors import InputError
from lib.models.names import arm_for, resolve
from lib.paths import write_whole
from lib.profiles import Profile

TRAINED, OTHER_KEYS, UNIFORM, SEEDS = "trained", "other keys", "uniform", (0, 1, 2)
UNTRAINED = [f"untrained {seed}" for seed in SEEDS]
NETWORKS = [TRAINED, *UNTRAINED, OTHER_KEYS, UNIFORM]
INSERTIONS = ("mless", "mful", "random")
CHANGES = (*INSERTIONS, "arm")  # of activations, in the first layers; the first is what the others are compared with
DEEP_CHANGES = ("mless", "arm")  # in every layer
CONDITIONS = ["none", *CHANGES]
CAUSES = ("both", "terms", "distance")
OTHERS = "others"  # the class of tokens that the others are compared with
ORDER = {"network": NETWORKS, "condition": CONDITIONS}
# Of each measure: raised where what it computes changes, so that older numbers are measured anew.
VERSIONS = {"tokens": 1, "attention": 1, "causes": 1, "activations": 1}
HEADS, LAYERS, FITS = "network condition problem layer head", "network condition problem layer", "network problem head"
# By measure and name: dimensions and meaning. All are pure numbers, counts of activations, or texts.
VARIABLES: dict[str, dict[str, tuple[str, str]]] = {
    "attention": {
        "lambda": (HEADS, "level over baseline (W' = lambda W, Sec. 3)"),
        "level": (HEADS, "mean received attention of the original tokens but the first and last, with the insertion"),
        "baseline": (HEADS, "the same without the insertion"),
        "irregularity": (HEADS, "deviation over the original tokens of log(received with / without) (Fig. 9)"),
        "unevenness": (HEADS, "standard deviation over mean of what each original token receives"),
        "mass": (HEADS, "share of their attention that the original tokens after the insertion give it"),
        "flatness": (HEADS, "standard deviation over mean of what each inserted token receives (Figs. 10 and 11)"),
        "dispersion": (HEADS, "RMS distance of the inserted tokens' values to their mean over that to the origin"),
        "portion": (HEADS, "what an inserted token receives over what an original one does (Fig. 13)"),
        "lambda_by_span": (f"{HEADS} span query", "lambda of the tokens of a span, from these queries alone"),
    },
    "causes": {
        "cause_lambda": ("network cause problem head", "lambda in layer 1, from later original tokens alone"),
        "shifted": (FITS, "R2 of new = old + sigma for the head's outputs, one sigma per prompt and head"),
        "affine": (FITS, "R2 of new = lambda * old + sigma, one lambda and one sigma per prompt and head (Eq. 2)"),
        "line": (FITS, "R2 of new = lambda * old + a coefficient per token times one direction, lambda as above"),
        "softmax": (FITS, "R2 of new = lambda * old + (1 - lambda) v, one v, each token's lambda from its softmax"),
        "direction": (FITS, "share of the squares of the remainders new - lambda * old along one line through zero"),
        "component": (FITS, "share of the remainders' variance in its first principal component"),
    },
    "activations": {
        "measures": (f"{LAYERS} measure", "near zero: share within c * 1.4826 * MAD of none (Sec. 4); norms per token"),
        "classes": (f"{LAYERS} class", "share near zero of the problem's tokens of a class (Fig. 7), if it has any"),
        "counts": (
            "network condition layer bin",
            "histogram over all problems (Fig. 4), what lies outside at its ends",
        ),
        "shape": (LAYERS, "cosine between the change of the histogram and that by the slashes"),
        "elements": (LAYERS, "cosine between the change of single activations and that by the slashes"),
    },
    "tokens": {
        "received": ("condition layer head token", "what each token of the drawn prompt receives"),
        "even": ("condition token", "what it would of attention spread evenly over all earlier tokens"),
        "part": ("condition token", "instruction, inserted or problem; empty beyond the prompt"),
        "text": ("condition token", "the token itself"),
    },
}
ENGINE = "h5netcdf"
DIGEST = hashlib.sha256().digest_size  # bytes at the end of each file
BITS = 12  # of a number's mantissa in the repository's files: exact to 0.00025 of it
EMPTY = {"text": "", "part": ""}


def load(profile: Profile, spec: str, stored: bool = True) -> tuple[xr.Dataset, list[str]]:
    """Return what is there of a model under the profile's settings, and the names of the steps that are done.

    Without `stored` the repository's file counts for nothing. Raises InputError where that file is damaged or was
    measured under other settings; a file in results then gives only what it can.
    """
    path, settings = profile.measured_file(resolve(spec).name), settings_of(profile, spec)
    own = path is not None and path.parent == profile.results
    if path is None or not (own or stored):
        return blank(profile, spec), []
    try:
        found = read(path)
    except (OSError, ValueError) as error:
        if not own:
            raise InputError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
        print(f"{path} is damaged: it is measured again", file=sys.stderr, flush=True)
        return blank(profile, spec), []
    given, example = json.loads(found.settings), found.attrs.get("example")
    given["tokens"]["example"] = example  # by its id; of a profile that names none it is the sample's first
    settings["tokens"]["example"] = profile.attention.example or example
    stale = [name for name in VERSIONS if (given["all"], given.get(name)) != (settings["all"], settings[name])]
    if stale and not own:
        asked = f"python -m lib reproduce {profile.options} --fresh"
        raise InputError(f"{path} was measured under other settings than {profile.name} has now: {asked}")
    if len(stale) == len(VERSIONS):
        return blank(profile, spec), []
    done = [step for step in json.loads(found.done) if step.split(": ")[1] not in stale]
    found = found.drop_vars([name for measure in stale for name in VARIABLES[measure] if name in found])
    return found.assign_attrs(settings=json.dumps(settings)), done


def blank(profile: Profile, spec: str) -> xr.Dataset:
    """Return measurements under the profile's settings, none as yet."""
    return xr.Dataset(attrs={"settings": json.dumps(settings_of(profile, spec)), "done": "[]"})


def settings_of(profile: Profile, spec: str) -> dict[str, dict]:
    """Return what decides the numbers of all measures, and of each its version with what decides it alone."""
    asked = profile.attention.model_dump(exclude={"models", "panels", "example"}, exclude_none=True)
    found = {"all": asked | {"seed": profile.seed, "filler": profile.filler.model_dump(exclude_none=True)}}
    found |= {measure: {"version": version} for measure, version in VERSIONS.items()}
    found["tokens"]["example"] = profile.attention.example
    found["activations"]["arm"] = arm_for(spec, profile.accuracy.arm).model_dump(exclude_none=True)
    return found


def read(path: Path) -> xr.Dataset:
    """Return a model's file, for nobody to alter; raises ValueError for a damaged one."""
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> xr.Dataset:
    """Return a file as it was when it was last changed."""
    content = path.read_bytes()
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ValueError("it is damaged")
    return xr.load_dataset(io.BytesIO(content), engine=ENGINE).drop_encoding()


def save(path: Path, measured: xr.Dataset, *, small: bool = False) -> None:
    """Replace the file by these measurements; `small`: as the repository keeps them, rounded and without texts."""
    found = measured.drop_vars("text", errors="ignore").map(rounded, keep_attrs=True) if small else measured.copy()
    for variables in VARIABLES.values():
        for name in variables.keys() & found.keys():
            found[name] = found[name].assign_attrs(long_name=variables[name][1])
    packed, encoding = {"zlib": True, "complevel": 9 if small else 1, "shuffle": True}, {}
    for name, values in found.items():
        if values.dtype.kind == "f":  # a chunk is a network's under one condition: much of it may be missing
            chunks = tuple(1 if dim in ORDER else size for dim, size in values.sizes.items())
            encoding[name] = packed | {"chunksizes": chunks}
    content = bytes(found.to_netcdf(None, engine=ENGINE, encoding=encoding))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot keep measurements in {path.parent}: {error.strerror}") from error
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    write_whole(path, content + hashlib.sha256(content).digest())


def rounded(values: xr.DataArray) -> xr.DataArray:
    """Return numbers with BITS of their mantissa, for zlib to find little in; counts and texts as they are."""
    if values.dtype.kind != "f" or values.name == "counts":
        return values
    mantissa, exponent = np.frexp(values.values)
    return values.copy(data=np.ldexp(np.round(mantissa * 2**BITS) / 2**BITS, exponent).astype("float32"))


def joined(measured: xr.Dataset, piece: xr.Dataset) -> xr.Dataset:
    """Return measurements with those of a piece in their places, all else as it was."""
    labels: dict[Hashable, list] = {}
    for dim in piece.dims:
        before = measured[dim].values.tolist() if dim in measured.dims else []
        every = before + [label for label in piece[dim].values.tolist() if label not in before]
        labels[dim] = sorted(every, key=ORDER[dim].index) if dim in ORDER else every
    grown = measured.reindex({dim: every for dim, every in labels.items() if dim in measured.dims}, fill_value=EMPTY)
    for name, values in piece.items():
        if name in grown:
            grown[name] = grown[name].copy()
            grown[name].loc[{dim: values[dim].values for dim in values.dims}] = values.transpose(*grown[name].dims)
        else:
            grown[name] = values.reindex(
                {dim: labels[dim] for dim in values.dims}, fill_value=EMPTY.get(str(name), np.nan)
            )
    return grown


def first_layers(values: xr.DataArray) -> xr.DataArray:
    """Return what was measured of the trained network on all problems: its first layers, where a cell may be NaN."""
    values = _trained(values)
    of_each_problem = values.notnull().any([dim for dim in values.dims if dim not in ("problem", "layer")])
    return values.sel(layer=of_each_problem.all("problem"))


def every_layer(values: xr.DataArray) -> xr.DataArray:
    """Return what was measured of the trained network in every layer: fewer problems, and maybe fewer conditions."""
    values = _trained(values)
    last = values.isel(layer=-1, drop=True).notnull()
    return values.sel({dim: last.any([d for d in last.dims if d != dim]) for dim in ("condition", "problem")})


def _trained(values: xr.DataArray) -> xr.DataArray:
    return values.sel(network=TRAINED, drop=True).dropna("condition", how="all")
