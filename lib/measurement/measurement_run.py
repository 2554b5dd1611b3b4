"""Measure attention and activations of a profile's models, and reuse what is stored.

    measured = measure(profile)  # {model name: Dataset}
    measured = measure(profile, "attention")  # only this one of MEASURED_PARTS
    lam = measured["gemma-3-270m"]["lambda"]
    lam.sel(network="trained", condition="mless", layer=1)  # (problem, head)

`lib.measurement.dataset_variables` describes the Dataset, and
`lib.measurement.stored_measurements` how it is stored.
"""

from collections.abc import Sequence

import xarray as xr

from lib.files.row_store import open_store
from lib.measurement.dataset_files import STEPS_FILE, row_of
from lib.measurement.planned_steps import MEASURED_PARTS, STEPS, PlannedStep
from lib.measurement.stored_measurements import Measurements
from lib.profiles import Profile
from lib.prompts.problem_sets import load_problems


class MeasuredPart:
    """One or more of MEASURED_PARTS of a profile: their steps, and the measurements of
    each model.

    stored: False to measure again what is shipped or in the larger run.
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
        return {model.name: _completed(model, self.steps) for model in self.models}


def measure(
    profile: Profile, *parts: str, stored: bool = True
) -> dict[str, xr.Dataset]:
    """Return the measurements of each of the profile's models, by the model's name.

    parts: some of MEASURED_PARTS; without any, all. Missing measurements are computed
    and stored in results/. stored: False to measure again what is shipped or in the
    larger run. An interrupted run loses only its current step. Stored results load
    without torch.
    """
    return MeasuredPart(profile, *(parts or MEASURED_PARTS), stored=stored).complete()


def _completed(model: Measurements, steps: Sequence[PlannedStep]) -> xr.Dataset:
    """Return the measurements of steps on a model; missing ones are copied from the
    profile's larger run, or else computed.
    """
    if not model.uses_shipped:
        model.copy_from_larger(steps)
        if model.missing(steps):
            _measure_missing(model, steps)
    return model.read(steps)


def _measure_missing(model: Measurements, steps: Sequence[PlannedStep]) -> None:
    """Measure the steps that are not stored, and store each as soon as it is measured.

    Raises InputError if stored steps have other weights, or another dtype or device.
    """
    from lib.measurement import networks  # imports torch

    profile, attention = model.profile, model.profile.attention
    problems = load_problems(attention.problems, attention.limit, profile.seed)
    provenance = networks.provenance_of(model.spec, attention.layers, attention.dtype)
    try:
        with open_store(model.folder, provenance, file=STEPS_FILE) as store:
            for key, step in store.missing(model.steps_by_key(steps)).items():
                dataset = networks.run_step(profile, model.spec, step, problems)
                store.append(row_of(key, dataset))
    finally:
        networks.release_cached()
