"""What is kept of a model's measurements: a file a step here, one in the repository.

A step's file lies in results/PROFILE/measured/MODEL, and its name is a key of all that
decides its numbers: what was measured under other settings has another name and is not
found. Beside these files `provenance.json` says of which weights, in which dtype and on
which device they are. data/PROFILE/MODEL.nc, which the repository keeps, has all steps
of a model as one, with rounded numbers and without the tokens' texts.
"""

import hashlib
import io
import json
import shutil
import sys
from collections import ChainMap
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from lib.errors import InputError
from lib.measurement.plan import ORDER, VARIABLES, VERSIONS, PlannedStep
from lib.models.names import arm_for, resolve
from lib.paths import settings_key, write_json, write_whole
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem

NETCDF_ENGINE = "h5netcdf"
DIGEST = hashlib.sha256().digest_size  # bytes at the end of each file


class MeasuredSteps:
    """The steps that were measured here of a model under a profile's settings."""

    def __init__(self, profile: Profile, spec: str) -> None:
        """Raises InputError for problems that cannot be read, or lack the example."""
        attention = profile.attention
        self.folder = profile.measured_in(resolve(spec).name)
        self.about = self.folder / "provenance.json"
        self.example = drawn_problem(
            attention.problems, attention.example, attention.limit, profile.seed
        ).id
        self.settings = settings_of(profile, spec, self.example)

    def file(self, step: PlannedStep) -> Path:
        """Return where a step is kept."""
        own = self.settings[step.measure]
        key = settings_key(step=step, all=self.settings["all"], own=own)
        return self.folder / f"{key}.nc"

    def missing(self, steps: Sequence[PlannedStep]) -> list[PlannedStep]:
        """Return the steps that are not there."""
        if not self.about.is_file():
            return list(steps)
        return [step for step in steps if not self.file(step).is_file()]

    def begin(self, provenance: dict[str, str]) -> None:
        """Drop what is not of these weights, dtype and device; raises InputError."""
        if self.about.is_file() and json.loads(self.about.read_text()) == provenance:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        _make_folder(self.folder)
        write_json(self.about, provenance)

    def read(self, steps: Sequence[PlannedStep]) -> xr.Dataset:
        """Return what is there of these steps, as one.

        A damaged file is removed and named: its step is missing from now on.
        """
        datasets = []
        for step in steps:
            file = self.file(step)
            try:
                datasets.append(read_measured(file))
            except ValueError:
                file.unlink()
                message = f"{file} is damaged: it is measured again"
                print(message, file=sys.stderr, flush=True)
            except FileNotFoundError:
                continue
        provenance = {}
        if self.about.is_file():
            provenance = json.loads(self.about.read_text())
        settings = json.dumps(self.settings)
        together = joined(datasets)
        return together.assign_attrs(
            provenance, example=self.example, settings=settings
        )


def of_repository(profile: Profile, spec: str) -> xr.Dataset:
    """Return what the repository keeps of a model.

    Where the profile names no example, it is the file's own: the problems that it was
    drawn from need not be at hand. Raises InputError for a file that is damaged or was
    measured under other settings.
    """
    path = profile.kept_measurements(resolve(spec).name)
    try:
        measured = read_measured(path)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read: {reason}") from error
    if profile.stored_as:
        measured = _part_of(measured, profile)
    before = json.loads(measured.settings)
    # The drawn problem counts by its id, also where the settings named none.
    before["tokens"]["example"] = measured.attrs.get("example")
    example = profile.attention.example or measured.attrs.get("example")
    settings = settings_of(profile, spec, example)
    if before != settings:
        command = f"python -m lib reproduce {profile.options} --fresh"
        raise InputError(
            f"{path} was measured under other settings than {profile.name} has now:"
            f" {command}"
        )
    return measured


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


def settings_of(profile: Profile, spec: str, example: str | None) -> dict[str, dict]:
    """Return what decides a model's numbers: of all measures, and of each alone.

    example: the id of the problem that is drawn.
    """
    everywhere = profile.attention.model_dump(
        exclude={"models", "panels", "example"}, exclude_none=True
    )
    everywhere["seed"] = profile.seed
    everywhere["filler"] = profile.filler.model_dump(exclude_none=True)
    arm = arm_for(spec)

    settings = {"all": everywhere}
    for measure, version in VERSIONS.items():
        settings[measure] = {"version": version}
    settings["tokens"]["example"] = example
    settings["activations"]["arm"] = arm.model_dump(exclude_none=True)
    return settings


def read_measured(path: Path) -> xr.Dataset:
    """Return what a file holds; a damaged one raises ValueError."""
    content = path.read_bytes()
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ValueError("it is damaged")
    return xr.load_dataset(io.BytesIO(content), engine=NETCDF_ENGINE).drop_encoding()


def save_measured(path: Path, measured: xr.Dataset) -> None:
    """Replace the file by these measurements; raises InputError."""
    measured = measured.copy()
    meanings = ChainMap(*VARIABLES.values())
    encoding: dict[Hashable, dict] = {}
    for name, values in measured.items():
        values.attrs["long_name"] = meanings[str(name)][1]
        if values.dtype.kind == "f":
            encoding[name] = {"zlib": True, "complevel": 6, "shuffle": True}
    content = bytes(measured.to_netcdf(None, engine=NETCDF_ENGINE, encoding=encoding))
    _make_folder(path.parent)
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    write_whole(path, content + hashlib.sha256(content).digest())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot keep measurements in {folder}: {error.strerror}"
        ) from error


def joined(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return datasets as one, of NaN or empty texts where none has a value.

    Labels stand as they first come, those of ORDER in that order.
    """
    labels: dict[Hashable, dict] = {}
    for dataset in datasets:
        for dim in dataset.dims:
            known = dict.fromkeys(dataset[dim].values.tolist())
            labels.setdefault(dim, {}).update(known)
    coords = {dim: list(values) for dim, values in labels.items()}
    for dim in coords.keys() & ORDER.keys():
        coords[dim].sort(key=ORDER[str(dim)].index)

    together = xr.Dataset(coords=coords)
    for dataset in datasets:
        for name, values in dataset.items():
            if name not in together:
                shape = [len(coords[dim]) for dim in values.dims]
                nothing = np.nan if values.dtype.kind == "f" else ""
                empty = np.full(shape, nothing, values.dtype)
                together[name] = (values.dims, empty, values.attrs)
            place = {dim: values[dim].values for dim in values.dims}
            together[name].loc[place] = values
    return together
