"""What a model's shape shows without training: the measurements of `run` on fresh weights and on uniform attention.

A trained model's effect is learnt only as far as it differs from these, problem by problem.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import xarray as xr

from lib.attention.received import observe_uniform
from lib.measurement.curves import attention_problems
from lib.measurement.dilution import measure_dilution
from lib.measurement.run import DEEP_CHANGES, INSERTIONS, Measured, activations_of, attention_of, options
from lib.measurement.stored import stored
from lib.measurement.weights import let_go
from lib.models.loading import load
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.problems import Problem

SEEDS = (0, 1, 2)  # of the fresh weights
UNTRAINED = ("untrained-attention", "untrained-activations")  # groups of a stored file, with a seed


@dataclass(frozen=True)
class Controls:
    """As a trained model's, so that the two can be paired: the same problems, conditions, layers and heads.

    `attention` and `activations`: untrained, one for each of SEEDS, activations of layer 1 under DEEP_CHANGES alone.
    `uniform`: attention spread evenly, without causes and without values.
    """

    attention: list[Measured]
    activations: list[Measured]
    uniform: Measured

    @property
    def parts(self) -> dict[str, Measured]:
        """What was measured, by the name of its group in a stored file."""
        found = {"uniform": self.uniform}
        for name, networks in zip(UNTRAINED, (self.attention, self.activations), strict=True):
            found |= {f"{name}-{seed}": one for seed, one in zip(SEEDS, networks, strict=True)}
        return found


def measure_controls(profile: Profile, folder: Path | None = None) -> dict[str, Controls]:
    """Return the controls of each of the profile's models, by the model's name; kept in `folder`."""
    if trees := stored(profile):
        return {name: _of_stored(tree) for name, tree in trees.items()}
    problems, measured = attention_problems(profile), {}
    for spec in profile.attention.models:
        let_go()
        untrained = [_untrained(spec, seed, problems, profile, folder) for seed in SEEDS]
        attention, activations = (list(parts) for parts in zip(*untrained, strict=True))
        uniform = _uniform(spec, problems, profile, folder)
        measured[resolve(spec).name] = Controls(attention, activations, uniform)
    return measured


def _of_stored(tree: xr.DataTree) -> Controls:
    attention, activations = ([Measured.of_stored(tree, f"{part}-{seed}") for seed in SEEDS] for part in UNTRAINED)
    return Controls(attention, activations, Measured.of_stored(tree, "uniform"))


def _untrained(
    spec: str, seed: int, problems: list[Problem], profile: Profile, folder: Path | None
) -> tuple[Measured, Measured]:
    loaded = load(spec, profile.attention.layers, dtype=profile.attention.dtype, seed=seed)
    changes = activations_of(loaded, problems, DEEP_CHANGES, [1], profile, folder)
    return attention_of(loaded, problems, profile, folder), Measured(loaded.card, changes)


def _uniform(spec: str, problems: list[Problem], profile: Profile, folder: Path | None) -> Measured:
    loaded = load(spec, profile.attention.layers, dtype=profile.attention.dtype, seed=SEEDS[0])
    loaded = replace(loaded, name=f"{resolve(spec).name} uniform", revision=f"{loaded.revision} uniform")
    given = options(profile, folder) | {"observing": observe_uniform}
    return Measured(loaded.card, measure_dilution(loaded, problems, INSERTIONS, **given))
