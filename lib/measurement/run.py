"""All that a profile measures on the inside of its models: a Dataset for each, grown in its file as it is measured.

    measured = measure(profile)                # {model name: Dataset}, as lib.measurement.store describes it
    measured = measure(profile, "attention")   # of PARTS this alone, beside what is there already

What is there is read without the libraries that run a network. Memory holds one model's weights at a time.
"""

import json
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import xarray as xr

from lib.measurement import store
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.problems import drawn_problem, load_problems

# What may be asked for: the drawn prompt; the trained network's attention and activations; both without training.
PARTS = ("tokens", "attention", "activations", "controls")
TOKENS = "tokens", ("none", *store.INSERTIONS)
ATTENTION = "attention", store.INSERTIONS
CAUSES = "causes", ("mless",)
ACTIVATIONS = "activations", ("none", *store.CHANGES)
FEWER = "activations", ("none", *store.DEEP_CHANGES)
PAUSE = 10  # seconds between two savings, each of which replaces the whole file


class Step(NamedTuple):
    """A measure on one network: in its first layers on all problems or, deep, in the others on some."""

    network: str
    deep: bool
    measure: str
    conditions: tuple[str, ...]

    def name(self, condition: str) -> str:
        """Return what a file calls it once it is done."""
        return f"{self.network}{', deep' * self.deep}: {self.measure}: {condition}"


def measure(
    profile: Profile, *parts: str, models: Sequence[str] | None = None, stored: bool = True
) -> dict[str, xr.Dataset]:
    """Return what is measured on each of the profile's models, by name; what `parts` ask for is measured if missing.

    parts: of PARTS, all if none is named; models: specs, the profile's if None. Without `stored` what the repository
    has is measured anew. An interrupted measurement goes on where it was; one that is killed loses the condition it
    was at, and what was measured within PAUSE before.
    """
    steps = list(_steps(profile, parts or PARTS))
    specs = profile.attention.models if models is None else dict.fromkeys(models)
    return {resolve(spec).name: _of_model(profile, spec, steps, stored) for spec in specs}


def _steps(profile: Profile, parts: Sequence[str]) -> Iterator[Step]:
    """Yield what the parts take, network after network, as weights are loaded."""
    tokens, attention, activations = ("tokens" in parts), ("attention" in parts), ("activations" in parts)
    first = [TOKENS] * tokens + [ATTENTION, CAUSES] * attention + [ACTIVATIONS] * activations
    plan: list[tuple] = [(store.TRAINED, False, first)]
    if profile.attention.map_problems:
        plan.append((store.TRAINED, True, [ATTENTION, TOKENS] * attention + [FEWER] * activations))
    if "controls" in parts:
        plan += [(name, False, [ATTENTION, CAUSES, FEWER]) for name in store.UNTRAINED]
        plan += [(name, False, [ATTENTION]) for name in (store.OTHER_KEYS, store.UNIFORM)]
    for network, deep, measures in plan:
        yield from (Step(network, deep, *asked) for asked in measures)


def _of_model(profile: Profile, spec: str, steps: list[Step], stored: bool) -> xr.Dataset:
    """Return a model's measurements with what the steps lack, each kept in the profile's results once it is there.

    What was measured with other weights, in another dtype or on another device is measured again.
    """
    name = resolve(spec).name
    measured, done = store.load(profile, spec, stored)
    if all(step.name(condition) in done for step in steps for condition in step.conditions):
        return measured
    from lib.measurement import networks  # and with it torch

    asked = profile.attention
    problems = load_problems(asked.problems, limit=asked.limit, seed=profile.seed)
    example = drawn_problem(asked.problems, asked.example, asked.limit, profile.seed).id
    loaded = networks.some_layers(spec, asked.layers, asked.dtype)
    about = {"model": name, "revision": loaded.revision, "dtype": loaded.dtype, "device": loaded.device}
    about |= {"label": loaded.card.label}
    if about.items() - measured.attrs.items():
        measured, done = store.blank(profile, spec), []
    measured = measured.assign_attrs(about, example=example)
    del loaded
    path, saved = profile.measured_in(profile.results, name), time.monotonic()
    try:
        for step in steps:
            missing = tuple(condition for condition in step.conditions if step.name(condition) not in done)
            pieces = networks.pieces(profile, spec, step._replace(conditions=missing), problems) if missing else ()
            for piece, conditions in pieces:
                done = [*done, *(step.name(condition) for condition in conditions)]
                measured = store.joined(measured, piece).assign_attrs(done=json.dumps(done))
                if time.monotonic() - saved > PAUSE:
                    store.save(path, measured)
                    saved = time.monotonic()
    finally:
        networks.let_go()
        if done:
            store.save(path, measured)
    return measured
