"""All that is measured on the inside of a model: what is there, and what is lacking.

    measured = measure(profile)  # {model name: Dataset}
    measured = measure(profile, "attention")  # of MEASURED_PARTS only this
    lam = measured["gemma-3-270m"]["lambda"]
    lam.sel(network="trained", condition="mless", layer=1)  # (problem, head)

`lib.measurement.plan` says what the Dataset holds, `lib.measurement.store` how a file
of it is kept.
"""

import json
import time
from collections.abc import Collection, Sequence

import xarray as xr

from lib.measurement.plan import MEASURED_PARTS, STEPS, PlannedStep
from lib.measurement.store import joined, load_measured, save_measured
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem, load_problems

PAUSE = 10  # seconds between two savings, each of which replaces the whole file


def measure(
    profile: Profile,
    *parts: str,
    models: Collection[str] | None = None,
    stored: bool = True,
) -> dict[str, xr.Dataset]:
    """Return what is measured on each of the profile's models, by the model's name.

    parts: of MEASURED_PARTS, all if none is named; what they ask for is measured where
    it is missing. models: specs, the profile's if None. Without `stored` what the
    repository has is measured anew. An interrupted measurement goes on where it was;
    one that is killed loses the condition it was at, and what was measured within PAUSE
    before. What is there is read without the libraries that run a network.
    """
    wanted = parts or MEASURED_PARTS
    every_layer = profile.attention.map_problems is not None
    steps = [s for s in STEPS if s.part in wanted and (every_layer or not s.deep)]
    specs = profile.attention.models if models is None else dict.fromkeys(models)

    datasets = {}
    for spec in specs:
        measured = load_measured(profile, spec, stored)
        if _missing(measured, steps):
            measured = _completed(measured, profile, spec, steps)
        datasets[resolve(spec).name] = measured
    return datasets


def _missing(measured: xr.Dataset, steps: Sequence[PlannedStep]) -> list[PlannedStep]:
    """Return the steps that are not done, each with the conditions that it lacks."""
    done = json.loads(measured.done)
    missing = []
    for step in steps:
        conditions = tuple(c for c in step.conditions if step.label(c) not in done)
        if conditions:
            missing.append(step._replace(conditions=conditions))
    return missing


def _completed(
    measured: xr.Dataset, profile: Profile, spec: str, steps: Sequence[PlannedStep]
) -> xr.Dataset:
    """Return a model's measurements with what the steps lack.

    Each is kept in the profile's results once it is there. What was measured with other
    weights, in another dtype or on another device is measured again.
    """
    from lib.measurement import networks  # and with it torch

    attention = profile.attention
    problems = load_problems(
        attention.problems, limit=attention.limit, seed=profile.seed
    )
    example = drawn_problem(
        attention.problems, attention.example, attention.limit, profile.seed
    )
    provenance = networks.provenance_of(spec, attention.layers, attention.dtype)
    if any(measured.attrs.get(name) != value for name, value in provenance.items()):
        measured = xr.Dataset(attrs={"settings": measured.settings, "done": "[]"})
    measured = measured.assign_attrs(provenance, example=example.id)

    path = profile.measured_in(profile.results, resolve(spec).name)
    done = json.loads(measured.done)
    saved = time.monotonic()
    try:
        for step in _missing(measured, steps):
            for piece, conditions in networks.run_step(profile, spec, step, problems):
                done += [step.label(condition) for condition in conditions]
                measured = joined(measured, piece).assign_attrs(done=json.dumps(done))
                if time.monotonic() - saved > PAUSE:
                    save_measured(path, measured)
                    saved = time.monotonic()
    finally:
        networks.free()
        if done:
            save_measured(path, measured)
    return measured
