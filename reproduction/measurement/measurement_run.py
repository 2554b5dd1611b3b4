"""Measure attention and activations of a profile's models, and reuse what is stored.

    measured = measure(profile)  # {model name: Dataset}
    measured = measure(profile, "attention")  # only this one of MEASURED_PARTS
    lam = measured["gemma-3-270m"]["lambda"]
    lam.sel(network="trained", condition="mless", layer=1)  # (problem, head)

A model is measured in *steps*, a measure on one network each. In results/PROFILE,
measured/MODEL has a row per step (`lib.files.row_store`). A step's key is a digest of
all settings that decide its numbers, so that measurements under other settings are not
found. The folder's run.json records the weights, dtype and device. In data/PROFILE,
MODEL.nc is *shipped*: a part of the repository that has all steps of a model in one
file, with rounded numbers. It is used if results/ has no folder for the model.
"""

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from lib.errors import InputError
from lib.files.row_store import RUN, open_store, read_settings, settings_key
from lib.files.text_files import read
from lib.models.sources import named_revision, resolve
from lib.prompts.problems import (
    SOURCES,
    Problem,
    digest,
    is_within,
    listed_problems,
    load_problems,
    shown_problem,
    stratified_sample,
)
from reproduction import paths
from reproduction.measurement.dataset import (
    MEASURED_PARTS,
    STEPS,
    STEPS_FILE,
    VERSIONS,
    PlannedStep,
    dataset_of,
    merged,
    read_measured,
    row_of,
    select_problems,
)
from reproduction.profiles import Profile, load_profile
from reproduction.profiles.profile import file_name


class Measurements:
    """The stored measurements of one of a profile's models, with their settings.

    stored: False not to use the shipped file.
    """

    def __init__(self, profile: Profile, spec: str, stored: bool = True) -> None:
        self.profile = profile
        self.spec = spec
        self.name = resolve(spec).name
        file = file_name(self.name)
        self.folder = profile.results / "measured" / file
        self.shipped = paths.DATA / (profile.part_of or profile.name) / f"{file}.nc"
        self.uses_shipped = stored and self._has_shipped()

    def _has_shipped(self) -> bool:
        """Return whether the repository has measurements of the model that include all
        problems of the profile, and `results` has none.
        """
        if self.folder.is_dir() or not self.shipped.is_file():
            return False
        if not self.profile.part_of:
            return True
        whole = load_profile(self.profile.part_of).attention
        return is_within(self.profile.attention.limit, whole.limit)

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

    def rows(self) -> dict[str, dict]:
        """Return the rows in results/ by key."""
        file = self.folder / STEPS_FILE
        rows = read(file) if file.is_file() else []
        return {row["key"]: row for row in rows}

    def steps_by_key(self, steps: Sequence[PlannedStep]) -> dict[str, PlannedStep]:
        """Return steps by the keys of their rows."""
        by_key = {}
        for step in steps:
            own = self.settings[step.measure]
            key = settings_key(step=step, all=self.settings["all"], own=own)
            by_key[key] = step
        return by_key

    @functools.cached_property
    def problems(self) -> list[Problem]:
        """All problems on which the profile measures the first layers."""
        attention = self.profile.attention
        return load_problems(attention.problems, attention.limit, self.profile.seed)

    @property
    def example(self) -> str:
        """The id of the problem whose prompt the figures draw.

        If the profile names it, the problems need not be available. Raises InputError
        for problems that cannot be read.
        """
        return self.profile.attention.example or self.problems[0].id

    def problems_of(self, step: PlannedStep) -> list[Problem]:
        """Return the problems that a step measures; for `tokens`, the one whose prompt
        the figures draw.
        """
        attention = self.profile.attention
        if step.measure == "tokens":
            return [shown_problem(attention.problems, self.example)]
        if step.deep:
            size = attention.map_problems
            return stratified_sample(self.problems, size, self.profile.seed)
        return self.problems

    @functools.cached_property
    def settings(self) -> dict[str, dict]:
        """The settings that decide the numbers: under "all", those that all measures
        share, and under each measure's name, those of this measure alone.
        """
        attention = self.profile.attention
        common = attention.model_dump(
            exclude={"models", "panels", "example"}, exclude_none=True
        )
        if attention.problems not in SOURCES:
            # The user may edit a file without giving it another name.
            common["problems"] = digest(load_problems(attention.problems))
        if revision := named_revision(self.spec):
            # Two folders or revisions of a repository may have the same name.
            common["revision"] = revision
        common["seed"] = self.profile.seed
        common["filler"] = self.profile.filler.model_dump(exclude_none=True)
        arm = resolve(self.spec).arm

        settings = {"all": common}
        for measure, version in VERSIONS.items():
            settings[measure] = {"version": version}
        settings["tokens"]["example"] = self.example
        settings["activations"]["arm"] = arm.model_dump(exclude_none=True)
        return settings

    def _shipped_dataset(self) -> xr.Dataset:
        """Return the shipped measurements on the profile's problems."""
        profile, attention = self.profile, self.profile.attention
        measured = read_measured(self.shipped)
        was = json.loads(measured.settings)
        limit, stored_limit = attention.limit, was["all"].get("limit")
        if limit != stored_limit and is_within(limit, stored_limit):
            sample = listed_problems(attention.problems, limit, profile.seed)
            measured = select_problems(measured, {one.id for one in sample})
            measured = measured.assign_attrs(settings=json.dumps(self.settings))
            was["all"]["limit"] = limit
        if was != self.settings:
            raise InputError(
                f"{self.shipped} was measured under other settings than {profile.name}"
                " has now: `reproduce --fresh` measures again"
            )
        return measured


class MeasuredPart:
    """One or more of MEASURED_PARTS of a profile: their steps, and the measurements of
    each model.

    stored: False to measure again what is shipped.
    """

    def __init__(self, profile: Profile, *names: str, stored: bool = True) -> None:
        includes_deep = profile.attention.map_problems is not None
        self.steps = [
            step
            for step in STEPS
            if step.part in names and (includes_deep or not step.deep)
        ]
        self.models = [
            Measurements(profile, spec, stored) for spec in profile.attention.models
        ]

    def complete(self) -> dict[str, xr.Dataset]:
        """Return the measurements of each model, by its name; missing ones are computed
        now and stored in results/.
        """
        for model in self.models:
            if not model.uses_shipped and model.missing(self.steps):
                _measure_missing(model, self.steps)
        return {model.name: model.read(self.steps) for model in self.models}


def measure(
    profile: Profile, *parts: str, stored: bool = True
) -> dict[str, xr.Dataset]:
    """Return the measurements of each of the profile's models, by the model's name.

    parts: some of MEASURED_PARTS; without any, all. Missing measurements are computed
    and stored in results/. stored: False to measure again what is shipped. An
    interrupted run loses only its current step. Stored results load without torch.
    """
    return MeasuredPart(profile, *(parts or MEASURED_PARTS), stored=stored).complete()


def _measure_missing(model: Measurements, steps: Sequence[PlannedStep]) -> None:
    """Measure the steps that are not stored, and store each as soon as it is measured.

    Raises InputError if stored steps have other weights, or another dtype or device.
    """
    from reproduction.measurement import networks  # imports torch

    profile, attention = model.profile, model.profile.attention
    provenance = networks.provenance_of(model.spec, attention.layers, attention.dtype)
    _require_same_weights(model.folder, provenance)
    try:
        with open_store(model.folder, provenance, file=STEPS_FILE) as store:
            for key, step in store.missing(model.steps_by_key(steps)).items():
                problems = model.problems_of(step)
                dataset = networks.run_step(profile, model.spec, step, problems)
                store.append(row_of(key, dataset))
    finally:
        networks.release_cached()


def _require_same_weights(folder: Path, provenance: dict[str, str]) -> None:
    """Raise InputError if the steps of a folder were measured with other weights, or
    with another dtype or device.
    """
    if not (folder / RUN).is_file():
        return
    measured_with = read_settings(folder)
    for name, now in provenance.items():
        was = measured_with.get(name)
        if was != now:
            raise InputError(
                f"{folder} was measured with {name} = {was}, not {now}: give this run"
                " another name"
            )
