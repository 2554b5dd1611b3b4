"""Store a model's measurements: here as one row per step, in the repository as one
file.

The rows are in results/PROFILE/measured/MODEL (`lib.files.store`). A step's key
contains all settings that decide its numbers, so measurements under other settings are
not found. The folder's run.json records the weights, dtype and device.
data/PROFILE/MODEL.nc, which is part of the repository, has all steps of a model in one
file, with rounded numbers.
"""

import base64
import hashlib
import io
import json
from collections import ChainMap
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path

import xarray as xr

from lib.errors import InputError
from lib.files.store import read, read_run
from lib.files.whole import read_bytes, settings_key, write_whole
from lib.measurement.variables import ORDER, VARIABLES, VERSIONS, PlannedStep
from lib.models.names import arm_for, resolve
from lib.paths import relative_path
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem, is_within, sample_ids

STEPS_FILE = "steps.jsonl"
NETCDF_ENGINE = "h5netcdf"
DIGEST = hashlib.sha256().digest_size  # bytes after each dataset


class MeasuredSteps:
    """The steps that were measured here, for one model under a profile's settings."""

    def __init__(self, profile: Profile, spec: str) -> None:
        """Raises InputError for problems that cannot be read or do not contain the
        example.
        """
        attention = profile.attention
        self.folder = profile.measured_in(resolve(spec).name)
        self.example = drawn_problem(
            attention.problems, attention.example, attention.limit, profile.seed
        ).id
        self.settings = settings_of(profile, spec, self.example)

    def wanted(self, steps: Sequence[PlannedStep]) -> dict[str, PlannedStep]:
        """Return steps by the keys of their rows."""
        return {self.key(step): step for step in steps}

    def key(self, step: PlannedStep, everywhere: dict | None = None) -> str:
        """Return the key of a step's row, or what it would be with other settings of
        all measures.
        """
        own = self.settings[step.measure]
        return settings_key(step=step, all=everywhere or self.settings["all"], own=own)

    def rows(self) -> dict[str, dict]:
        """Return the stored rows by key."""
        file = self.folder / STEPS_FILE
        rows = read(file) if file.is_file() else []
        return {row["key"]: row for row in rows}

    def missing(self, steps: Sequence[PlannedStep]) -> list[PlannedStep]:
        """Return the steps that are not stored."""
        rows = self.rows()
        return [step for key, step in self.wanted(steps).items() if key not in rows]

    def read(self, steps: Sequence[PlannedStep]) -> xr.Dataset:
        """Return the stored rows of these steps as one dataset."""
        rows = self.rows()
        keys = [key for key in self.wanted(steps) if key in rows]
        together = joined([dataset_of(rows[key], self.folder) for key in keys])
        settings = json.dumps(self.settings)
        return together.assign_attrs(
            read_run(self.folder), example=self.example, settings=settings
        )


def row_of(key: str, measured: xr.Dataset) -> dict:
    """Return the row that stores a step's measurements."""
    return {"key": key, "dataset": base64.b64encode(encoded(measured)).decode()}


def dataset_of(row: dict, folder: Path) -> xr.Dataset:
    """Return the dataset that a row stores; raise InputError for a damaged one."""
    return decoded(base64.b64decode(row["dataset"]), folder / STEPS_FILE)


def of_repository(profile: Profile, spec: str) -> xr.Dataset:
    """Return the measurements of a model that the repository contains.

    If the profile names no example, it is the file's, so that the problems need not be
    available. Raises InputError for a file that is damaged or was measured under other
    settings.
    """
    path = profile.kept_measurements(resolve(spec).name)
    measured = read_measured(path)
    attention = profile.attention
    example = attention.example or measured.example
    settings = settings_of(profile, spec, example)
    was = json.loads(measured.settings)
    limit, stored_limit = attention.limit, was["all"].get("limit")
    if limit != stored_limit and is_within(limit, stored_limit):
        measured = cut(measured, sample_ids(attention.problems, limit, profile.seed))
        measured.attrs["settings"] = json.dumps(settings)
        was["all"]["limit"] = limit
    if was != settings:
        command = f"python -m lib reproduce {profile.options} --fresh"
        raise InputError(
            f"{path} was measured under other settings than {profile.name} has now:"
            f" {command}"
        )
    return measured


def cut(measured: xr.Dataset, ids: Collection[str]) -> xr.Dataset:
    """Return what was measured on these problems; histograms are of all problems."""
    if "problem" not in measured.dims:
        return measured
    kept = [name for name in measured.problem.values if name in ids]
    return measured.sel(problem=kept)


def settings_of(profile: Profile, spec: str, example: str | None) -> dict[str, dict]:
    """Return the settings that decide a model's numbers: those of all measures, and of
    each.

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
    """Return the measurements of a file; raise InputError for a damaged one."""
    return decoded(read_bytes(path), path)


def save_measured(path: Path, measured: xr.Dataset) -> None:
    """Replace the file by these measurements; raise InputError if that fails."""
    write_whole(path, encoded(measured))


def encoded(measured: xr.Dataset) -> bytes:
    """Return measurements as NetCDF, with a description of each variable, followed by a
    digest.
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
    """Return the measurements of bytes by `encoded`; raise InputError that names the
    file of damaged ones.
    """
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise InputError(
            f"{relative_path(path)} is damaged: delete it, and it is measured again"
        )
    return xr.load_dataset(io.BytesIO(content), engine=NETCDF_ENGINE).drop_encoding()


def joined(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return datasets as one, with NaN or empty strings for missing values.

    Labels keep the order in which they first appear, unless ORDER sorts a dimension.
    """
    labels: dict[Hashable, dict] = {}
    for dataset in datasets:
        for dim in dataset.dims:
            known = dict.fromkeys(dataset[dim].values.tolist())
            labels.setdefault(dim, {}).update(known)
    coords = {dim: list(values) for dim, values in labels.items()}
    for dim in coords.keys() & ORDER.keys():
        coords[dim].sort(key=ORDER[str(dim)].index)

    aligned = []
    for dataset in datasets:
        indexers = {dim: coords[dim] for dim in dataset.dims}
        aligned.append(dataset.reindex(indexers, fill_value={"part": ""}))
    return xr.merge(aligned, compat="no_conflicts", join="exact")
