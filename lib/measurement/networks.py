"""What a profile measures by running networks: the first layers on all problems, every layer on some of them.

What is measured is kept in a folder, so that `reproduce` can do it with a progress bar and a notebook finds it done.
Memory holds one model's weights at a time.
"""

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import xarray as xr

from lib.attention.received import observe_uniform
from lib.measurement.causes import measure_causes
from lib.measurement.curves import attention_problems
from lib.measurement.dilution import measure_dilution
from lib.measurement.measured import CHANGES, DEEP_CHANGES, INSERTIONS, SEEDS, Controls, Measured
from lib.measurement.redistribution import measure_redistribution
from lib.models.loading import Loaded, load
from lib.models.names import arm_for, resolve
from lib.profiles import Profile
from lib.prompts.problems import Problem, stratified_sample

_newest: dict[tuple[str, int, str], Loaded] = {}


def first_layers(spec: str, layers: int, dtype: str = "auto") -> Loaded:
    """Load a model once for several figures and measurements; only the newest is kept in memory."""
    wanted = spec, layers, dtype
    if wanted not in _newest:
        let_go()  # before, not after: two of these models may be more than a laptop holds
        _newest[wanted] = load(spec, layers=layers, dtype=dtype)
    return _newest[wanted]


def every_layer(spec: str, dtype: str = "auto") -> Loaded:
    """Load all layers of a model, letting go of what is kept; they are themselves not kept."""
    let_go()
    return load(spec, dtype=dtype, head=False)


def let_go() -> None:
    """Free what is kept, before something else is loaded."""
    _newest.clear()
    gc.collect()  # hooks and configs refer to each other


def attention(profile: Profile, folder: Path | None) -> dict[str, Measured]:
    """Return what `measure_dilution` and `measure_causes` find on each of the profile's models, by name."""

    def first(loaded: Loaded, problems: list[Problem]) -> Measured:
        return _attention(loaded, problems, profile, folder)

    def every(loaded: Loaded, problems: list[Problem]) -> xr.Dataset:
        return measure_dilution(loaded, problems, INSERTIONS, **_options(profile, folder))

    return _each_model(profile, first, every)


def activations(profile: Profile, folder: Path | None) -> dict[str, Measured]:
    """Return what `measure_redistribution` finds on each of the profile's models, by name."""

    def first(loaded: Loaded, problems: list[Problem]) -> Measured:
        return Measured(loaded.card, _activations(loaded, problems, CHANGES, None, profile, folder))

    def every(loaded: Loaded, problems: list[Problem]) -> xr.Dataset:
        return _activations(loaded, problems, DEEP_CHANGES, None, profile, folder)

    return _each_model(profile, first, every)


def controls(profile: Profile, folder: Path | None) -> dict[str, Controls]:
    """Return the same of fresh weights and of uniform attention, by the name of each of the profile's models."""
    problems, measured = attention_problems(profile), {}
    for spec in profile.attention.models:
        let_go()
        untrained = [_untrained(spec, seed, problems, profile, folder) for seed in SEEDS]
        on_attention, on_activations = (list(parts) for parts in zip(*untrained, strict=True))
        measured[resolve(spec).name] = Controls(on_attention, on_activations, _uniform(spec, problems, profile, folder))
    return measured


def _each_model(
    profile: Profile,
    first: Callable[[Loaded, list[Problem]], Measured],
    every: Callable[[Loaded, list[Problem]], xr.Dataset],
) -> dict[str, Measured]:
    asked, problems, measured = profile.attention, attention_problems(profile), {}
    for spec in asked.models:
        found = first(first_layers(spec, asked.layers, asked.dtype), problems)
        if asked.map_problems:
            some = stratified_sample(problems, asked.map_problems, profile.seed)
            found = replace(found, every=every(every_layer(spec, asked.dtype), some))
        measured[found.model.name] = found
    return measured


def _attention(loaded: Loaded, problems: list[Problem], profile: Profile, folder: Path | None) -> Measured:
    """Return dilution in all layers that are loaded, and its causes."""
    dilution = measure_dilution(loaded, problems, INSERTIONS, **_options(profile, folder))
    return Measured(loaded.card, dilution, causes=measure_causes(loaded, problems, **_options(profile, folder)))


def _activations(
    loaded: Loaded,
    problems: list[Problem],
    conditions: Sequence[str],
    layers: Sequence[int] | None,
    profile: Profile,
    folder: Path | None,
) -> xr.Dataset:
    """Return redistribution under these conditions, None: in all layers that are loaded, with the profile's ARM."""
    arm = arm_for(loaded.spec, profile.accuracy.arm)
    given = _options(profile, folder) | {"arm": arm, "seed": profile.seed}
    return measure_redistribution(loaded, problems, conditions, layers, **given)


def _untrained(
    spec: str, seed: int, problems: list[Problem], profile: Profile, folder: Path | None
) -> tuple[Measured, Measured]:
    loaded = load(spec, profile.attention.layers, dtype=profile.attention.dtype, seed=seed)
    changes = _activations(loaded, problems, DEEP_CHANGES, [1], profile, folder)
    return _attention(loaded, problems, profile, folder), Measured(loaded.card, changes)


def _uniform(spec: str, problems: list[Problem], profile: Profile, folder: Path | None) -> Measured:
    loaded = load(spec, profile.attention.layers, dtype=profile.attention.dtype, seed=SEEDS[0])
    loaded = replace(loaded, name=f"{resolve(spec).name} uniform", revision=f"{loaded.revision} uniform")
    given = _options(profile, folder) | {"observing": observe_uniform}
    return Measured(loaded.card, measure_dilution(loaded, problems, INSERTIONS, **given))


def _options(profile: Profile, folder: Path | None) -> dict:
    """Return what every measurement is given of a profile."""
    return {"format": profile.attention.format, "filler": profile.filler, "folder": folder}
