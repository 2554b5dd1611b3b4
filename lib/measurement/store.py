"""What is kept of a model's measurements: a file a step here, one in the repository.

A step's file lies in results/PROFILE/measured/MODEL, and its name is a key of all that
decides its numbers: what was measured under other settings has another name and is not
found. Beside these files `provenance.json` says of which weights, in which dtype and on
which device they are. data/PROFILE/MODEL.nc, which the repository keeps, has all steps
of a model as one, with rounded numbers.
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
from lib.files import settings_key, write_json, write_whole
from lib.measurement.plan import ORDER, VARIABLES, VERSIONS, PlannedStep
from lib.models.names import arm_for, resolve
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
        if not self.provenance():
            return list(steps)
        return [step for step in steps if not self.file(step).is_file()]

    def provenance(self) -> dict[str, str]:
        """Return of which weights, dtype and device the steps are, if there are any."""
        return json.loads(self.about.read_text()) if self.about.is_file() else {}

    def begin(self, provenance: dict[str, str]) -> None:
        """Drop what is not of these weights, dtype and device; raises InputError."""
        if self.provenance() == provenance:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
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
        settings = json.dumps(self.settings)
        together = joined(datasets)
        return together.assign_attrs(
            self.provenance(), example=self.example, settings=settings
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
    example = profile.attention.example or measured.example
    if json.loads(measured.settings) != settings_of(profile, spec, example):
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
    deep_first = np.argsort(~is_deep.values, stable=True)
    kept = np.sort(deep_first[:limit])
    settings = json.loads(measured.settings)
    settings["all"]["limit"] = limit
    return measured.isel(problem=kept).assign_attrs(settings=json.dumps(settings))


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
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    write_whole(path, content + hashlib.sha256(content).digest())


def joined(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return datasets as one, of NaN or empty parts where none has a value.

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

    alike = []
    for dataset in datasets:
        places = {dim: coords[dim] for dim in dataset.dims}
        alike.append(dataset.reindex(places, fill_value={"part": ""}))
    return xr.merge(alike, compat="no_conflicts", join="exact")
