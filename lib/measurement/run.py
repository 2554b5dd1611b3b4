"""All that a profile measures on its models: the first layers on all problems, every layer on some of them.

What is measured is kept, so that `reproduce` can do it with a progress bar and a notebook finds it done.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import xarray as xr

from lib.measurement.causes import measure_causes
from lib.measurement.curves import attention_problems
from lib.measurement.dilution import measure_dilution
from lib.measurement.redistribution import measure_redistribution
from lib.measurement.stored import card_of, stored
from lib.measurement.weights import every_layer, first_layers
from lib.models.card import Card
from lib.models.loading import Loaded
from lib.models.names import arm_for
from lib.profiles import Profile
from lib.prompts.problems import Problem, stratified_sample

INSERTIONS = ("mless", "mful", "random")
CHANGES = (*INSERTIONS, "arm")  # of activations, in the first layers; the first is what the others are compared with
DEEP_CHANGES = ("mless", "arm")  # in every layer


@dataclass(frozen=True)
class Measured:
    """What was measured on one model: its first layers on all problems, every layer on some, and, of attention, why."""

    model: Card
    first: xr.Dataset
    every: xr.Dataset = field(default_factory=xr.Dataset)  # empty when the profile loads no more than the first layers
    causes: xr.Dataset = field(default_factory=xr.Dataset)

    @classmethod
    def of_stored(cls, tree: xr.DataTree, name: str) -> "Measured":
        """Return what a group of a model's stored file holds."""
        parts = {part: tree[f"{name}/{part}"].to_dataset() for part in tree[name].children}
        return cls(card_of(parts["first"]), **parts)

    @property
    def parts(self) -> dict[str, xr.Dataset]:
        """What was measured, by name."""
        return {"first": self.first, "every": self.every, "causes": self.causes}


def measure_attention(profile: Profile, folder: Path | None = None) -> dict[str, Measured]:
    """Return what `measure_dilution` and `measure_causes` find on each of the profile's models, by name."""

    def every(loaded: Loaded, problems: list[Problem]) -> xr.Dataset:
        return measure_dilution(loaded, problems, INSERTIONS, **options(profile, folder))

    first = functools.partial(attention_of, profile=profile, folder=folder)
    return _each_model(profile, "attention", first, every)


def measure_activations(profile: Profile, folder: Path | None = None) -> dict[str, Measured]:
    """Return what `measure_redistribution` finds on each of the profile's models, by name."""

    def first(loaded: Loaded, problems: list[Problem]) -> Measured:
        return Measured(loaded.card, activations_of(loaded, problems, CHANGES, None, profile, folder))

    def every(loaded: Loaded, problems: list[Problem]) -> xr.Dataset:
        return activations_of(loaded, problems, DEEP_CHANGES, None, profile, folder)

    return _each_model(profile, "activations", first, every)


def attention_of(loaded: Loaded, problems: list[Problem], profile: Profile, folder: Path | None) -> Measured:
    """Return dilution in all layers that are loaded, and its causes."""
    dilution = measure_dilution(loaded, problems, INSERTIONS, **options(profile, folder))
    return Measured(loaded.card, dilution, causes=measure_causes(loaded, problems, **options(profile, folder)))


def activations_of(
    loaded: Loaded,
    problems: list[Problem],
    conditions: Sequence[str],
    layers: Sequence[int] | None,
    profile: Profile,
    folder: Path | None,
) -> xr.Dataset:
    """Return redistribution under these conditions, None: in all layers that are loaded, with the profile's ARM."""
    arm = arm_for(loaded.spec, profile.accuracy.arm)
    given = options(profile, folder) | {"arm": arm, "seed": profile.seed}
    return measure_redistribution(loaded, problems, conditions, layers, **given)


def options(profile: Profile, folder: Path | None) -> dict:
    """Return what every measurement is given of a profile."""
    return {"format": profile.attention.format, "filler": profile.filler, "folder": folder}


def _each_model(
    profile: Profile,
    name: str,
    first: Callable[[Loaded, list[Problem]], Measured],
    every: Callable[[Loaded, list[Problem]], xr.Dataset],
) -> dict[str, Measured]:
    """Return what is stored under this name, else both by model; memory holds one model's weights."""
    if trees := stored(profile):
        return {model: Measured.of_stored(tree, name) for model, tree in trees.items()}
    attention, problems = profile.attention, attention_problems(profile)
    measured = {}
    for spec in attention.models:
        found = first(first_layers(spec, attention.layers, attention.dtype), problems)
        if attention.map_problems:
            some = stratified_sample(problems, attention.map_problems, profile.seed)
            found = replace(found, every=every(every_layer(spec, attention.dtype), some))
        measured[found.model.name] = found
    return measured
