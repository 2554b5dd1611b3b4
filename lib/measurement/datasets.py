"""What is kept of a model's measurements: a row a step here, a file in the repository.

The rows lie in results/PROFILE/measured/MODEL (`lib.files.store`). A step's key stands
for all settings that decide its numbers: what was measured under others is not found.
The folder's run.json says of which weights, in which dtype and on which device they
are.
data/PROFILE/MODEL.nc, which the repository keeps, has all steps of a model as one, with
rounded numbers.
"""

import base64
import hashlib
import io
import json
from collections import ChainMap
from collections.abc import Hashable, Sequence
from pathlib import Path

import xarray as xr

from lib.errors import InputError
from lib.files.store import read, read_run
from lib.files.whole import read_bytes, settings_key, write_whole
from lib.measurement.variables import ORDER, VARIABLES, VERSIONS, PlannedStep
from lib.models.names import arm_for, resolve
from lib.paths import relative_path
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem

STEPS_FILE = "steps.jsonl"
NETCDF_ENGINE = "h5netcdf"
DIGEST = hashlib.sha256().digest_size  # bytes behind each dataset


class MeasuredSteps:
    """The steps that were measured here of a model under a profile's settings."""

    def __init__(self, profile: Profile, spec: str) -> None:
        """Raises InputError for problems that cannot be read, or lack the example."""
        attention = profile.attention
        self.folder = profile.measured_in(resolve(spec).name)
        self.example = drawn_problem(
            attention.problems, attention.example, attention.limit, profile.seed
        ).id
        self.settings = settings_of(profile, spec, self.example)

    def wanted(self, steps: Sequence[PlannedStep]) -> dict[str, PlannedStep]:
        """Return steps by the keys of their rows."""
        keys = {}
        for step in steps:
            own = self.settings[step.measure]
            key = settings_key(step=step, all=self.settings["all"], own=own)
            keys[key] = step
        return keys

    def rows(self) -> dict[str, dict]:
        """Return the rows that are there, by key."""
        file = self.folder / STEPS_FILE
        rows = read(file) if file.is_file() else []
        return {row["key"]: row for row in rows}

    def missing(self, steps: Sequence[PlannedStep]) -> list[PlannedStep]:
        """Return the steps that are not there."""
        rows = self.rows()
        return [step for key, step in self.wanted(steps).items() if key not in rows]

    def read(self, steps: Sequence[PlannedStep]) -> xr.Dataset:
        """Return what is there of these steps, as one."""
        rows = self.rows()
        keys = [key for key in self.wanted(steps) if key in rows]
        together = joined([dataset_of(rows[key], self.folder) for key in keys])
        settings = json.dumps(self.settings)
        return together.assign_attrs(
            read_run(self.folder), example=self.example, settings=settings
        )


def row_of(key: str, measured: xr.Dataset) -> dict:
    """Return what a step gave as a row."""
    return {"key": key, "dataset": base64.b64encode(encoded(measured)).decode()}


def dataset_of(row: dict, folder: Path) -> xr.Dataset:
    """Return what `row_of` made a row of, of a folder; InputError for a damaged one."""
    return decoded(base64.b64decode(row["dataset"]), folder / STEPS_FILE)


def of_repository(profile: Profile, spec: str) -> xr.Dataset:
    """Return what the repository keeps of a model.

    Where the profile names no example, it is the file's own: the problems that it was
    drawn from need not be at hand. Raises InputError for a file that is damaged or was
    measured under other settings.
    """
    path = profile.kept_measurements(resolve(spec).name)
    measured = read_measured(path)
    example = profile.attention.example or measured.example
    if json.loads(measured.settings) != settings_of(profile, spec, example):
        command = f"python -m lib reproduce {profile.options} --fresh"
        raise InputError(
            f"{path} was measured under other settings than {profile.name} has now:"
            f" {command}"
        )
    return measured


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
    """Return what a file holds; raises InputError for a damaged one."""
    return decoded(read_bytes(path), path)


def save_measured(path: Path, measured: xr.Dataset) -> None:
    """Replace the file by these measurements; raises InputError."""
    write_whole(path, encoded(measured))


def encoded(measured: xr.Dataset) -> bytes:
    """Return measurements as NetCDF, each variable with its meaning, and its digest."""
    measured = measured.copy()
    meanings = ChainMap(*VARIABLES.values())
    encoding: dict[Hashable, dict] = {}
    for name, values in measured.items():
        values.attrs["long_name"] = meanings[str(name)][1]
        if values.dtype.kind == "f":
            encoding[name] = {"zlib": True, "complevel": 6, "shuffle": True}
    content = bytes(measured.to_netcdf(None, engine=NETCDF_ENGINE, encoding=encoding))
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    return content + hashlib.sha256(content).digest()


def decoded(content: bytes, place: Path) -> xr.Dataset:
    """Return what `encoded` made bytes of; InputError naming the place of damaged
    ones.
    """
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise InputError(
            f"{relative_path(place)} is damaged: delete it, and it is measured again"
        )
    return xr.load_dataset(io.BytesIO(content), engine=NETCDF_ENGINE).drop_encoding()


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
