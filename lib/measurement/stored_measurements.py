"""Find and read the stored measurements of a profile's models.

    measurements = Measurements(profile, "gemma-3-270m")
    measurements.missing(STEPS)  # the steps that a run has to measure
    measurements.read(STEPS)     # a Dataset of the stored ones

results/PROFILE/measured/MODEL has a row per step (`lib.files.row_store`). A step's key
is a digest of all settings that decide its numbers, so that measurements under other
settings are not found. The folder's run.json records the weights, dtype and device.
data/PROFILE/MODEL.nc is *shipped*: a part of the repository that has all steps of a
model in one file, with rounded numbers. It is used if results/ has no folder for the
model.
"""

import functools
import json
from collections.abc import Sequence

import xarray as xr

from lib.errors import InputError
from lib.files.jsonl import read
from lib.files.row_store import open_store
from lib.files.run_json import read_settings, settings_key
from lib.measurement.dataset_files import (
    STEPS_FILE,
    dataset_of,
    merged,
    read_measured,
    row_of,
    select_problems,
)
from lib.measurement.planned_steps import VERSIONS, PlannedStep
from lib.models.availability import named_revision
from lib.models.name_resolution import arm_for, resolve
from lib.profiles import Profile
from lib.prompts.problem_samples import is_within
from lib.prompts.problem_sets import SOURCES, digest_of, sample_ids, shown_problem


class Measurements:
    """The stored measurements of one of a profile's models, with their settings.

    stored: False to use neither the shipped file nor the profile's larger run.
    """

    def __init__(self, profile: Profile, spec: str, stored: bool = True) -> None:
        self.profile = profile
        self.spec = spec
        self.name = resolve(spec).name
        self.folder = profile.measurements_folder(self.name)
        self.uses_shipped = stored and profile.uses_shipped(self.name)
        self.larger = None
        if stored and profile.larger:
            self.larger = Measurements(profile.larger, spec)

    def missing(self, steps: Sequence[PlannedStep]) -> list[PlannedStep]:
        """Return the steps that are not stored: none if the shipped file is used.

        Raises InputError as `read` does.
        """
        if self.uses_shipped:
            self._shipped_dataset()
            return []
        rows = self.rows()
        return [
            step for key, step in self.steps_by_key(steps).items() if key not in rows
        ]

    def read(self, steps: Sequence[PlannedStep]) -> xr.Dataset:
        """Return those of the steps that are stored as one dataset; all steps of the
        shipped file if that is used.

        Raises InputError for a damaged file, and for a shipped file that was measured
        under other settings.
        """
        if self.uses_shipped:
            return self._shipped_dataset()
        rows = self.rows()
        keys = [key for key in self.steps_by_key(steps) if key in rows]
        together = merged([dataset_of(rows[key], self.folder) for key in keys])
        settings = json.dumps(self.settings)
        return together.assign_attrs(
            read_settings(self.folder), example=self.example, settings=settings
        )

    def copy_from_larger(self, steps: Sequence[PlannedStep]) -> None:
        """Copy missing steps from the profile's larger run, restricted to this
        profile's problems, if the larger run has all of these.

        Nothing is copied if stored steps have other weights or were measured on another
        device, because one dataset must not mix them.
        """
        if self.uses_shipped or not self.larger:
            return
        of_larger = self.larger.rows()
        if not of_larger or not self.missing(steps):
            return
        provenance = read_settings(self.larger.folder)
        if self.rows() and read_settings(self.folder) != provenance:
            return
        attention = self.profile.attention
        ids = sample_ids(attention.problems, attention.limit, self.profile.seed)
        deep = min(len(ids), attention.map_problems or len(ids))
        with open_store(self.folder, provenance, file=STEPS_FILE) as store:
            for key, step in store.missing(self.steps_by_key(steps)).items():
                row = of_larger.get(self.key(step, self.larger.settings["all"]))
                if row is None:
                    continue
                dataset = select_problems(dataset_of(row, self.larger.folder), ids)
                size = deep if step.deep else len(ids)
                if dataset.sizes.get("problem", size) == size:
                    store.append(row_of(key, dataset))

    def rows(self) -> dict[str, dict]:
        """Return the rows in results/ by key."""
        file = self.folder / STEPS_FILE
        rows = read(file) if file.is_file() else []
        return {row["key"]: row for row in rows}

    def steps_by_key(self, steps: Sequence[PlannedStep]) -> dict[str, PlannedStep]:
        """Return steps by the keys of their rows."""
        return {self.key(step): step for step in steps}

    def key(self, step: PlannedStep, common: dict | None = None) -> str:
        """Return the key of a step's row.

        common: the settings that all measures share; None: this profile's. With those
        of the larger run, the key is that of the step's row there.
        """
        own = self.settings[step.measure]
        return settings_key(step=step, all=common or self.settings["all"], own=own)

    @functools.cached_property
    def example(self) -> str:
        """The id of the problem whose prompt the figures draw.

        Raises InputError for problems that cannot be read or do not contain it.
        """
        attention = self.profile.attention
        return shown_problem(
            attention.problems, attention.example, attention.limit, self.profile.seed
        ).id

    @functools.cached_property
    def settings(self) -> dict[str, dict]:
        """The settings that decide the numbers, see `settings_of`."""
        return settings_of(self.profile, self.spec, self.example)

    def _shipped_dataset(self) -> xr.Dataset:
        """Return the shipped measurements on the profile's problems.

        If the profile names no example, the file's example is used, so that the
        problems need not be available.
        """
        profile, attention = self.profile, self.profile.attention
        path = profile.shipped_measurements(self.name)
        measured = read_measured(path)
        example = attention.example or measured.example
        settings = settings_of(profile, self.spec, example)
        was = json.loads(measured.settings)
        limit, stored_limit = attention.limit, was["all"].get("limit")
        if limit != stored_limit and is_within(limit, stored_limit):
            ids = sample_ids(attention.problems, limit, profile.seed)
            measured = select_problems(measured, ids)
            measured = measured.assign_attrs(settings=json.dumps(settings))
            was["all"]["limit"] = limit
        if was != settings:
            command = f"python -m lib reproduce {profile.options} --fresh"
            raise InputError(
                f"{path} was measured under other settings than {profile.name} has now:"
                f" {command}"
            )
        return measured


def settings_of(profile: Profile, spec: str, example: str) -> dict[str, dict]:
    """Return the settings that decide a model's numbers: under "all", those that all
    measures share, and under each measure's name, those of this measure alone.

    example: the id of the problem whose prompt the figures draw.
    """
    common = profile.attention.model_dump(
        exclude={"models", "panels", "example"}, exclude_none=True
    )
    if profile.attention.problems not in SOURCES:
        # The user may edit a file without giving it another name.
        common["problems"] = digest_of(profile.attention.problems)
    if revision := named_revision(spec):
        # Two folders or revisions of a repository may have the same name.
        common["revision"] = revision
    common["seed"] = profile.seed
    common["filler"] = profile.filler.model_dump(exclude_none=True)
    arm = arm_for(spec)

    settings = {"all": common}
    for measure, version in VERSIONS.items():
        settings[measure] = {"version": version}
    settings["tokens"]["example"] = example
    settings["activations"]["arm"] = arm.model_dump(exclude_none=True)
    return settings
