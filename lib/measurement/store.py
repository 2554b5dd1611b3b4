"""A model's measurements as one file, and which of them may be used again.

The file is results/PROFILE/MODEL.nc. Its attributes are model, revision, dtype, device,
label (what a caption calls the model), example (the drawn problem's id), settings (what
decides the numbers, as JSON) and done (the labels of finished steps, as JSON).
data/PROFILE/MODEL.nc, which the repository keeps, is such a file with rounded numbers
and without the tokens' texts.
"""

import functools
import hashlib
import io
import json
import sys
from collections import ChainMap
from collections.abc import Hashable
from pathlib import Path

import xarray as xr

from lib.errors import InputError
from lib.measurement.plan import EMPTY, ORDER, VARIABLES, VERSIONS
from lib.models.names import arm_for, resolve
from lib.paths import write_whole
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem

NETCDF_ENGINE = "h5netcdf"
DIGEST = hashlib.sha256().digest_size  # bytes at the end of each file


def load_measured(profile: Profile, spec: str, stored: bool = True) -> xr.Dataset:
    """Return what is there of a model under the profile's settings.

    Its attribute `done` names the finished steps. A file in the profile's results gives
    what it can. The repository's file counts whole or not at all, and without `stored`
    for nothing: InputError where it is damaged or was measured under other settings.
    """
    attention = profile.attention
    settings = settings_of(profile, spec, attention.example)
    nothing = xr.Dataset(attrs={"settings": json.dumps(settings), "done": "[]"})
    path = profile.measured_file(resolve(spec).name)
    if path is None:
        return nothing
    if path.parent != profile.results:
        return _of_repository(path, profile, spec) if stored else nothing

    try:
        measured = read_measured(path)
    except (OSError, ValueError):
        print(f"{path} is damaged: it is measured again", file=sys.stderr, flush=True)
        return nothing
    example = attention.example
    if example is None:
        example = drawn_problem(
            attention.problems, None, attention.limit, profile.seed
        ).id
    settings = settings_of(profile, spec, example)
    stale = _stale(measured, settings)
    if len(stale) == len(VERSIONS):
        return nothing

    # What the stale measures gave is dropped, and their steps are done no longer.
    labels = json.loads(measured.done)
    done = [label for label in labels if label.split(": ")[1] not in stale]
    names = [name for measure in stale for name in VARIABLES[measure]]
    measured = measured.drop_vars(names, errors="ignore")
    return measured.assign_attrs(settings=json.dumps(settings), done=json.dumps(done))


def _of_repository(path: Path, profile: Profile, spec: str) -> xr.Dataset:
    """Return what the repository keeps of a model, else raise InputError.

    Where the profile names no example, it is the file's own: the problems that it was
    drawn from need not be at hand.
    """
    try:
        measured = read_measured(path)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read: {reason}") from error
    example = profile.attention.example or measured.attrs.get("example")
    if profile.stored_as:
        measured = _part_of(measured, profile)
    settings = settings_of(profile, spec, example)
    if _stale(measured, settings):
        command = f"python -m lib reproduce {profile.options} --fresh"
        raise InputError(
            f"{path} was measured under other settings than {profile.name} has now:"
            f" {command}"
        )
    return measured.assign_attrs(settings=json.dumps(settings))


def _part_of(measured: xr.Dataset, profile: Profile) -> xr.Dataset:
    """Return what was measured of as many problems as the profile asks for.

    Those that went through all layers come first. Histograms stay those of all.
    """
    limit = profile.attention.limit
    deep = measured["lambda"].isel(layer=-1).notnull()
    is_deep = deep.any([dim for dim in deep.dims if dim != "problem"])
    order = sorted(
        measured.problem.values, key=lambda name: not is_deep.sel(problem=name)
    )
    kept = measured.problem.isin(order[:limit])
    settings = json.loads(measured.settings)
    settings["all"]["limit"] = limit
    cut = measured.isel(problem=kept.values)
    return cut.assign_attrs(settings=json.dumps(settings))


def _stale(measured: xr.Dataset, settings: dict[str, dict]) -> list[str]:
    """Return the measures whose numbers were decided by other settings than these."""
    before = json.loads(measured.settings)
    # The drawn problem counts by its id, also where the settings named none.
    before["tokens"]["example"] = measured.attrs.get("example")
    if before["all"] != settings["all"]:
        return list(VERSIONS)
    return [name for name in VERSIONS if before.get(name) != settings[name]]


def settings_of(profile: Profile, spec: str, example: str | None) -> dict[str, dict]:
    """Return what decides a model's numbers: of all measures, and of each alone.

    example: the id of the problem that is drawn.
    """
    everywhere = profile.attention.model_dump(
        exclude={"models", "panels", "example"}, exclude_none=True
    )
    everywhere["seed"] = profile.seed
    everywhere["filler"] = profile.filler.model_dump(exclude_none=True)
    arm = arm_for(spec, profile.accuracy.arm)

    settings = {"all": everywhere}
    for measure, version in VERSIONS.items():
        settings[measure] = {"version": version}
    settings["tokens"]["example"] = example
    settings["activations"]["arm"] = arm.model_dump(exclude_none=True)
    return settings


def read_measured(path: Path) -> xr.Dataset:
    """Return a model's file, for nobody to alter; a damaged one raises ValueError."""
    return _read_version(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _read_version(path: Path, changed: int) -> xr.Dataset:
    """Return what a file held when it was changed at this time."""
    content = path.read_bytes()
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ValueError("it is damaged")
    return xr.load_dataset(io.BytesIO(content), engine=NETCDF_ENGINE).drop_encoding()


def save_measured(path: Path, measured: xr.Dataset) -> None:
    """Replace the file by these measurements."""
    measured = measured.copy()
    meanings = ChainMap(*VARIABLES.values())
    encoding: dict[Hashable, dict] = {}
    for name, values in measured.items():
        values.attrs["long_name"] = meanings[str(name)][1]
        if values.dtype.kind == "f":
            encoding[name] = _compression(values)
    content = bytes(measured.to_netcdf(None, engine=NETCDF_ENGINE, encoding=encoding))

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot keep measurements in {path.parent}: {error.strerror}"
        ) from error
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    write_whole(path, content + hashlib.sha256(content).digest())


def _compression(values: xr.DataArray) -> dict:
    """Return how a variable is written.

    A chunk is what belongs to one network under one condition: much may be missing.
    """
    chunks = [1 if dim in ORDER else size for dim, size in values.sizes.items()]
    return {"zlib": True, "complevel": 6, "shuffle": True, "chunksizes": tuple(chunks)}


def joined(measured: xr.Dataset, piece: xr.Dataset) -> xr.Dataset:
    """Return measurements with a piece, all of which is new, and all else as it was."""
    labels = {}
    for dim in piece.dims:
        before = measured[dim].values.tolist() if dim in measured.dims else []
        labels[dim] = list(dict.fromkeys([*before, *piece[dim].values.tolist()]))
        if dim in ORDER:
            labels[dim].sort(key=ORDER[dim].index)

    together = piece.combine_first(measured).reindex(labels)
    for name, empty in EMPTY.items():
        if name in together:
            together[name] = together[name].fillna(empty)
    return together.assign_attrs(measured.attrs)
