"""Measure a model's attention and activations, and reuse stored measurements.

    measured = measure(profile)  # {model name: Dataset}
    measured = measure(profile, "attention")  # only this one of MEASURED_PARTS
    lam = measured["gemma-3-270m"]["lambda"]
    lam.sel(network="trained", condition="mless", layer=1)  # (problem, head)

`lib.measurement.variables` describes the Dataset, `lib.measurement.datasets` its
storage.
"""

from collections.abc import Sequence

import xarray as xr

from lib.files.store import opened, read_run
from lib.measurement.datasets import (
    STEPS_FILE,
    MeasuredSteps,
    cut,
    dataset_of,
    of_repository,
    row_of,
)
from lib.measurement.variables import MEASURED_PARTS, STEPS, PlannedStep
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.problems import load_problems, sample_ids


def measure(
    profile: Profile, *parts: str, stored: bool = True
) -> dict[str, xr.Dataset]:
    """Return the measurements of each of the profile's models, by the model's name.

    parts: of MEASURED_PARTS; none given: all. Missing measurements are computed.
    Without `stored`, those of the repository are computed again. An interrupted run
    continues where it stopped; a killed one loses its current step. Stored results load
    without the libraries that run a network.
    """
    wanted = parts or MEASURED_PARTS
    every_layer = profile.attention.map_problems is not None
    steps = [s for s in STEPS if s.part in wanted and (every_layer or not s.deep)]

    datasets = {}
    for spec in profile.attention.models:
        name = resolve(spec).name
        if stored and profile.has_stored(name):
            datasets[name] = of_repository(profile, spec)
        else:
            datasets[name] = _completed(profile, spec, steps, stored)
    return datasets


def _completed(
    profile: Profile, spec: str, steps: Sequence[PlannedStep], stored: bool
) -> xr.Dataset:
    """Return the measurements of steps on a model; missing ones are computed, or
    selected from a larger stored run.

    Raises InputError if stored steps have other weights, or another dtype or device.
    """
    here = MeasuredSteps(profile, spec)
    if stored and profile.larger and here.missing(steps):
        _take_over(here, MeasuredSteps(profile.larger, spec), profile, steps)
    if here.missing(steps):
        from lib.measurement import networks  # and with it torch

        attention = profile.attention
        problems = load_problems(
            attention.problems, limit=attention.limit, seed=profile.seed
        )
        provenance = networks.provenance_of(spec, attention.layers, attention.dtype)
        try:
            with opened(here.folder, provenance, file=STEPS_FILE) as store:
                for key, step in store.missing(here.wanted(steps)).items():
                    dataset = networks.run_step(profile, spec, step, problems)
                    store.append(row_of(key, dataset))
        finally:
            networks.free()
    return here.read(steps)


def _take_over(
    here: MeasuredSteps,
    larger: MeasuredSteps,
    profile: Profile,
    steps: Sequence[PlannedStep],
) -> None:
    """Select missing steps from those of the larger run, if it has all their
    problems.

    Measurements with other weights, or on another device, are not mixed with them.
    """
    rows = larger.rows()
    if not rows:
        return
    provenance = read_run(larger.folder)
    if here.rows() and read_run(here.folder) != provenance:
        return
    attention = profile.attention
    ids = sample_ids(attention.problems, attention.limit, profile.seed)
    sizes = {False: len(ids), True: min(len(ids), attention.map_problems or len(ids))}
    with opened(here.folder, provenance, file=STEPS_FILE) as store:
        for key, step in store.missing(here.wanted(steps)).items():
            row = rows.get(here.key(step, larger.settings["all"]))
            if row is None:
                continue
            dataset = cut(dataset_of(row, larger.folder), ids)
            if dataset.sizes.get("problem", sizes[step.deep]) == sizes[step.deep]:
                store.append(row_of(key, dataset))
