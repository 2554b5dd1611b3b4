"""All that a profile measures on its models: the first layers on all problems, every layer on some of them.

What is measured is kept, so that `reproduce` can do it with a progress bar and a notebook finds it done.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from lib.measurement.causes import measure_causes
from lib.measurement.curves import attention_problems
from lib.measurement.dilution import measure_dilution
from lib.measurement.redistribution import measure_redistribution
from lib.measurement.weights import every_layer, first_layers
from lib.models.card import Card
from lib.models.loading import Loaded
from lib.models.names import arm_for
from lib.profiles import Profile
from lib.prompts.problems import Problem, stratified_sample

INSERTIONS = ("mless", "mful", "random")
CHANGES = (*INSERTIONS, "arm")  # of activations, in the first layers; the first is what the others are compared with
DEEP_CHANGES = ("mless", "arm")  # in every layer
Report = Callable[[str, int, int], None]  # what, done and total
Measuring = Callable[..., xr.Dataset]  # loaded, problems and report=


@dataclass(frozen=True)
class Measured:
    """What was measured on one model: its first layers on all problems, every layer on some, and, of attention, why."""

    model: Card
    first: xr.Dataset
    every: xr.Dataset | None = None  # when the profile loads no more than the first layers
    causes: xr.Dataset | None = None


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def measure_attention(profile: Profile, folder: Path | None = None, report: Report = silent) -> dict[str, Measured]:
    """Return what `measure_dilution` and `measure_causes` find on each of the profile's models, by name."""
    options = _options(profile, folder)
    dilution = functools.partial(measure_dilution, conditions=INSERTIONS, **options)
    parts = {"first": dilution, "causes": functools.partial(measure_causes, **options), "every": dilution}
    return _each_model(profile, "attention", lambda spec: parts, report)


def measure_activations(profile: Profile, folder: Path | None = None, report: Report = silent) -> dict[str, Measured]:
    """Return what `measure_redistribution` finds on each of the profile's models, by name."""

    def parts(spec: str) -> dict[str, Measuring]:
        options = _options(profile, folder) | {"arm": arm_for(spec, profile.accuracy.arm)}
        measuring = functools.partial(measure_redistribution, seed=profile.seed, **options)
        return {
            "first": functools.partial(measuring, conditions=CHANGES),
            "every": functools.partial(measuring, conditions=DEEP_CHANGES),
        }

    return _each_model(profile, "activations", parts, report)


def _options(profile: Profile, folder: Path | None) -> dict:
    filler = profile.filler
    return {"format": profile.attention.format, "filler": filler, "folder": folder}


def _each_model(
    profile: Profile, kind: str, parts_of: Callable[[str], dict[str, Measuring]], report: Report
) -> dict[str, Measured]:
    attention, problems = profile.attention, attention_problems(profile)
    measured = {}
    for spec in attention.models:
        parts = parts_of(spec)
        every = {"every": parts.pop("every")}
        model, found = _measure(first_layers(spec, attention.layers), problems, kind, parts, report)
        if attention.map_problems:
            some = stratified_sample(problems, attention.map_problems, profile.seed)
            found |= _measure(every_layer(spec), some, kind, every, report)[1]
        measured[model.name] = Measured(model, **found)
    return measured


def _measure(
    loaded: Loaded, problems: list[Problem], kind: str, parts: dict[str, Measuring], report: Report
) -> tuple[Card, dict[str, xr.Dataset]]:
    """Return the card of a model, whose weights go with the call, and each part measured on it."""
    texts = {"first": f"{kind} of layers 1 to {loaded.layers}", "every": f"{kind} of all {loaded.layers} layers"}
    texts["causes"] = "causes in layer 1"
    found = {}
    for part, measuring in parts.items():
        found[part] = measuring(loaded, problems, report=functools.partial(report, f"{loaded.name}: {texts[part]}"))
    return loaded.card, found
