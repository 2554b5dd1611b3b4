"""All that is measured on the inside of a model, as one Dataset and one file:
results/PROFILE/MODEL.nc.

    measured = measure(profile)                # {model name: Dataset}; measure(profile, "attention"): of PARTS this
    measured["gemma-3-270m"]["lambda"].sel(network="trained", condition="mless", layer=1)   # (problem, head)

VARIABLES has every variable with its dimensions and meaning. Layers and heads count
from 1; a `bin` is named by where it begins; `token` counts those of one drawn prompt,
the profile's example. NaN stands for what was not measured, so n is a count per cell:
all problems went through the first layers, some through every layer. Attributes: model,
revision, dtype, device, label (what a caption calls the model), example, and what
decides whether it is used again. data/PROFILE/MODEL.nc, which the repository keeps, is
such a file with rounded numbers and without the tokens' texts.
"""

import functools
import hashlib
import io
import json
import sys
import time
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from lib.errors import InputError
from lib.models.names import arm_for, resolve
from lib.paths import write_whole
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem, load_problems

# Networks: `untrained` are of the same shape with fresh weights; `other keys` is the
# trained one, each head's queries against another head's keys; `uniform` is attention
# spread evenly.
TRAINED, OTHER_KEYS, UNIFORM, UNTRAINED = (
    "trained",
    "other keys",
    "uniform",
    [f"untrained {seed}" for seed in range(3)],
)
NETWORKS = [TRAINED, *UNTRAINED, OTHER_KEYS, UNIFORM]
INSERTIONS = (
    "mless",
    "mful",
    "random",
)  # attention is told against none and has no numbers under it
CHANGES = (
    *INSERTIONS,
    "arm",
)  # of activations, in the first layers; the first is what the others are compared with
DEEP_CHANGES = ("mless", "arm")  # in every layer
ORDER = {"network": NETWORKS, "condition": ["none", *CHANGES]}
CAUSES = ("both", "terms", "distance")
OTHERS = "others"  # the class of tokens that the others are compared with
# Of each measure: raised where what it computes changes, so that older numbers are
# measured anew.
VERSIONS = {"tokens": 1, "attention": 1, "causes": 1, "activations": 1}
HEADS, LAYERS, FITS = (
    "network condition problem layer head",
    "network condition problem layer",
    "network problem head",
)
COUNTS = "histogram over all problems (Fig. 4), what lies outside at its ends"
# By measure and name: dimensions and meaning. All are pure numbers, counts of
# activations, or texts.
VARIABLES: dict[str, dict[str, tuple[str, str]]] = {
    "attention": {
        "lambda": (HEADS, "level over baseline (W' = lambda W, Sec. 3)"),
        "level": (
            HEADS,
            (
                "mean received attention of the original tokens but the first and last,"
                " with the insertion"
            ),
        ),
        "baseline": (HEADS, "the same without the insertion"),
        "irregularity": (
            HEADS,
            (
                "deviation over the original tokens of log(received with / without)"
                " (Fig. 9)"
            ),
        ),
        "unevenness": (
            HEADS,
            "standard deviation over mean of what each original token receives",
        ),
        "mass": (
            HEADS,
            (
                "share of their attention that the original tokens after the insertion"
                " give it"
            ),
        ),
        "flatness": (
            HEADS,
            (
                "standard deviation over mean of what each inserted token receives"
                " (Figs. 10 and 11)"
            ),
        ),
        "dispersion": (
            HEADS,
            (
                "RMS distance of the inserted tokens' values to their mean over that to"
                " the origin"
            ),
        ),
        "portion": (
            HEADS,
            "what an inserted token receives over what an original one does (Fig. 13)",
        ),
        "lambda_by_span": (
            f"{HEADS} span query",
            "lambda of the tokens of a span, from these queries alone",
        ),
    },
    "causes": {
        "cause_lambda": (
            "network cause problem head",
            "lambda in layer 1, from later original tokens alone",
        ),
        "shifted": (
            FITS,
            (
                "R2 of new = old + sigma for the head's outputs, one sigma per prompt"
                " and head"
            ),
        ),
        "affine": (
            FITS,
            (
                "R2 of new = lambda * old + sigma, one lambda and one sigma per prompt"
                " and head (Eq. 2)"
            ),
        ),
        "line": (
            FITS,
            (
                "R2 of new = lambda * old + a coefficient per token times one"
                " direction, lambda as above"
            ),
        ),
        "softmax": (
            FITS,
            (
                "R2 of new = lambda * old + (1 - lambda) v, one v, each token's lambda"
                " from its softmax"
            ),
        ),
        "direction": (
            FITS,
            (
                "share of the squares of the remainders new - lambda * old along one"
                " line through zero"
            ),
        ),
        "component": (
            FITS,
            "share of the remainders' variance in its first principal component",
        ),
    },
    "activations": {
        "measures": (
            f"{LAYERS} measure",
            (
                "near zero: share within c * 1.4826 * MAD of none (Sec. 4); norms per"
                " token"
            ),
        ),
        "classes": (
            f"{LAYERS} class",
            (
                "share near zero of the problem's tokens of a class (Fig. 7), if it"
                " has any"
            ),
        ),
        "counts": ("network condition layer bin", COUNTS),
        "shape": (
            LAYERS,
            "cosine between the change of the histogram and that by the slashes",
        ),
        "elements": (
            LAYERS,
            "cosine between the change of single activations and that by the slashes",
        ),
    },
    "tokens": {
        "received": (
            "condition layer head token",
            "what each token of the drawn prompt receives",
        ),
        "even": (
            "condition token",
            "what it would of attention spread evenly over all earlier tokens",
        ),
        "part": (
            "condition token",
            "instruction, inserted or problem; empty beyond the prompt",
        ),
        "text": ("condition token", "the token itself"),
    },
}
ENGINE = "h5netcdf"
DIGEST = hashlib.sha256().digest_size  # bytes at the end of each file
EMPTY = {"text": "", "part": ""}
PAUSE = 10  # seconds between two savings, each of which replaces the whole file


class Step(NamedTuple):
    """A measure on one network: in its first layers on all problems or, deep, in the
    others on some.
    """

    part: str  # of PARTS, that asks for it
    network: str
    deep: bool
    measure: str
    conditions: tuple[str, ...]

    def names(self) -> dict[str, str]:
        """Return by condition what a file calls it once it is done."""
        return {
            name: f"{self.network}{', deep' * self.deep}: {self.measure}: {name}"
            for name in self.conditions
        }


# What may be asked for: the drawn prompt; the trained network's attention and
# activations; both of the others.
PARTS = ("tokens", "attention", "activations", "controls")
DRAWN, FEWER = ("none", *INSERTIONS), ("none", *DEEP_CHANGES)
CONTROLS = [("attention", INSERTIONS), ("causes", ("mless",)), ("activations", FEWER)]
STEPS = [  # network after network, as weights are loaded
    Step("tokens", TRAINED, False, "tokens", DRAWN),
    *(Step("attention", TRAINED, False, *asked) for asked in CONTROLS[:2]),
    Step("activations", TRAINED, False, "activations", ("none", *CHANGES)),
    *(
        Step("attention", TRAINED, True, *asked)
        for asked in (CONTROLS[0], ("tokens", DRAWN))
    ),
    Step("activations", TRAINED, True, "activations", FEWER),
    *(
        Step("controls", name, False, *asked)
        for name in UNTRAINED
        for asked in CONTROLS
    ),
    *(Step("controls", name, False, *CONTROLS[0]) for name in (OTHER_KEYS, UNIFORM)),
]


def measure(
    profile: Profile,
    *parts: str,
    models: Collection[str] | None = None,
    stored: bool = True,
) -> dict[str, xr.Dataset]:
    """Return what is measured on each of the profile's models, by name; what `parts`
    ask for is measured if missing.

    parts: of PARTS, all if none is named; models: specs, the profile's if None. Without
    `stored` what the repository has is measured anew. An interrupted measurement goes
    on where it was; one that is killed loses the condition it was at, and what was
    measured within PAUSE before. What is there is read without the libraries that run a
    network.
    """
    asked, found = profile.attention, {}
    steps = [
        step
        for step in STEPS
        if step.part in (parts or PARTS) and (asked.map_problems or not step.deep)
    ]
    for spec in asked.models if models is None else dict.fromkeys(models):
        measured = load(profile, spec, stored)
        done = json.loads(measured.done)
        if any(name not in done for step in steps for name in step.names().values()):
            measured = _grown(measured, profile, spec, steps)
        found[resolve(spec).name] = measured
    return found


def _grown(
    measured: xr.Dataset, profile: Profile, spec: str, steps: Sequence[Step]
) -> xr.Dataset:
    """Return a model's measurements with what the steps lack, each kept in the
    profile's results once it is there.

    What was measured with other weights, in another dtype or on another device is
    measured again.
    """
    from lib.measurement import networks  # and with it torch

    asked, name, saved = profile.attention, resolve(spec).name, time.monotonic()
    problems = load_problems(asked.problems, limit=asked.limit, seed=profile.seed)
    example = drawn_problem(asked.problems, asked.example, asked.limit, profile.seed).id
    loaded = networks.load_cached(spec, asked.layers, asked.dtype)
    about = {"model": name} | {
        field: getattr(loaded, field)
        for field in ("revision", "dtype", "device", "label")
    }
    del loaded
    if about.items() - measured.attrs.items():
        measured = xr.Dataset(attrs={"settings": measured.settings, "done": "[]"})
    measured, done = (
        measured.assign_attrs(about, example=example),
        json.loads(measured.done),
    )
    path = profile.measured_in(profile.results, name)
    try:
        for step in steps:
            lacking = step._replace(
                conditions=tuple(
                    c for c, name in step.names().items() if name not in done
                )
            )
            for found, conditions in (
                networks.run_step(profile, spec, lacking, problems)
                if lacking.conditions
                else ()
            ):
                done += [step.names()[condition] for condition in conditions]
                measured = joined(measured, found).assign_attrs(done=json.dumps(done))
                if time.monotonic() - saved > PAUSE:
                    save(path, measured)
                    saved = time.monotonic()
    finally:
        networks.free()
        if done:
            save(path, measured)
    return measured


def load(profile: Profile, spec: str, stored: bool = True) -> xr.Dataset:
    """Return what is there of a model under the profile's settings; its attribute
    `done` names finished steps.

    Without `stored` the repository's file counts for nothing. Raises InputError where
    that file is damaged or was measured under other settings; a file in results then
    gives only what it can.
    """
    path, settings = (
        profile.measured_file(resolve(spec).name),
        settings_of(profile, spec),
    )
    own = path is not None and path.parent == profile.results
    blank = xr.Dataset(attrs={"settings": json.dumps(settings), "done": "[]"})
    if path is None or not (own or stored):
        return blank
    try:
        found = read(path)
    except (OSError, ValueError) as error:
        if not own:
            raise InputError(
                f"{path} cannot be read: {' '.join(str(error).split())}"
            ) from error
        print(f"{path} is damaged: it is measured again", file=sys.stderr, flush=True)
        return blank
    given, asked, example = (
        json.loads(found.settings),
        profile.attention,
        found.attrs.get("example"),
    )
    given["tokens"]["example"] = (
        # by its id; the problems of what the repository keeps need not be at hand
        example
    )
    first = (
        drawn_problem(asked.problems, None, asked.limit, profile.seed).id
        if own and not asked.example
        else example
    )
    settings["tokens"]["example"] = asked.example or first
    stale = [
        name
        for name in VERSIONS
        if (given["all"], given.get(name)) != (settings["all"], settings[name])
    ]
    if stale and not own:
        asked = f"python -m lib reproduce {profile.options} --fresh"
        raise InputError(
            f"{path} was measured under other settings than {profile.name} has now:"
            f" {asked}"
        )
    if len(stale) == len(VERSIONS):
        return blank
    done = [step for step in json.loads(found.done) if step.split(": ")[1] not in stale]
    found = found.drop_vars(
        [name for measure in stale for name in VARIABLES[measure] if name in found]
    )
    return found.assign_attrs(settings=json.dumps(settings), done=json.dumps(done))


def settings_of(profile: Profile, spec: str) -> dict[str, dict]:
    """Return what decides the numbers of all measures, and of each its version with
    what decides it alone.
    """
    asked = profile.attention.model_dump(
        exclude={"models", "panels", "example"}, exclude_none=True
    )
    found = {
        "all": (
            asked
            | {
                "seed": profile.seed,
                "filler": profile.filler.model_dump(exclude_none=True),
            }
        )
    }
    found |= {measure: {"version": version} for measure, version in VERSIONS.items()}
    found["tokens"]["example"] = profile.attention.example
    found["activations"]["arm"] = arm_for(spec, profile.accuracy.arm).model_dump(
        exclude_none=True
    )
    return found


def read(path: Path) -> xr.Dataset:
    """Return a model's file, for nobody to alter; raises ValueError for a damaged one."""
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> xr.Dataset:
    content = path.read_bytes()
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ValueError("it is damaged")
    return xr.load_dataset(io.BytesIO(content), engine=ENGINE).drop_encoding()


def save(path: Path, measured: xr.Dataset) -> None:
    """Replace the file by these measurements."""
    found, about, encoding = measured.copy(), ChainMap(*VARIABLES.values()), {}
    for name, values in found.items():
        values.attrs["long_name"] = about[str(name)][1]
        if (
            values.dtype.kind == "f"
        ):  # a chunk is a network's under one condition: much of it may be missing
            chunks = tuple(
                1 if dim in ORDER else size for dim, size in values.sizes.items()
            )
            encoding[name] = {
                "zlib": True,
                "complevel": 6,
                "shuffle": True,
                "chunksizes": chunks,
            }
    content = bytes(found.to_netcdf(None, engine=ENGINE, encoding=encoding))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot keep measurements in {path.parent}: {error.strerror}"
        ) from error
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    write_whole(path, content + hashlib.sha256(content).digest())


def piece(
    measure: str, arrays: Mapping[str, np.ndarray], coords: Mapping[str, Any]
) -> xr.Dataset:
    """Return arrays of one network over the dimensions that VARIABLES gives them, as
    float32 but for counts.
    """
    dims = {name: VARIABLES[measure][name][0].split()[1:] for name in arrays}
    kept = {
        name: values if name == "counts" else values.astype("float32")
        for name, values in arrays.items()
    }
    return xr.Dataset(
        {name: (dims[name], values) for name, values in kept.items()}, coords
    )


def joined(measured: xr.Dataset, piece: xr.Dataset) -> xr.Dataset:
    """Return measurements with those of a piece, all of them new, in their places; all
    else as it was.
    """
    labels = {}
    for dim in piece.dims:
        both = [
            *(measured[dim].values.tolist() if dim in measured.dims else ()),
            *piece[dim].values.tolist(),
        ]
        labels[dim] = (
            sorted(set(both), key=ORDER[dim].index)
            if dim in ORDER
            else list(dict.fromkeys(both))
        )
    grown = piece.combine_first(measured).reindex(labels)
    return grown.assign(
        {name: grown[name].fillna("") for name in EMPTY if name in grown}
    ).assign_attrs(measured.attrs)
