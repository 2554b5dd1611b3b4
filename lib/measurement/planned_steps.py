"""List the steps in which a model is measured: a measure on one network each."""

from typing import NamedTuple

from lib.measurement.dataset_variables import (
    CHANGES,
    INSERTIONS,
    TRAINED,
    UNIFORM,
    UNTRAINED,
)

# The version of each measure, which is a part of keys. It increases if the measure
# computes something else, so that older numbers are measured again.
VERSIONS = {"tokens": 1, "attention": 2, "affine": 1, "activations": 1}


class PlannedStep(NamedTuple):
    """A measure on one network under some conditions, which is stored as one row.

    A step measures the first layers on all problems; a deep step measures the layers
    after those, on some of the problems.
    """

    part: str  # one of MEASURED_PARTS, under which the step is requested
    network: str  # one of SEEDS
    deep: bool
    measure: str  # one of VARIABLES
    conditions: tuple[str, ...]

    def depth(self, layers: int) -> int:
        """Return how many of the loaded layers its prompts pass through."""
        if self.network == UNIFORM:
            return 0  # uniform attention needs no network
        is_control = self.network != TRAINED
        if self.measure == "affine" or (is_control and self.measure == "activations"):
            return 1
        return layers


# The parts that can be requested: the received attention in the example's prompt,
# attention and activations of the trained network, and both for the other networks.
MEASURED_PARTS = ("tokens", "attention", "activations", "controls")
_DRAWN = ("none", *INSERTIONS)
_CHANGED = ("none", *CHANGES)
_CONTROLLED = ("none", "mless", "arm")

# Ordered by network and depth, so that weights are loaded once.
STEPS = [
    PlannedStep("tokens", TRAINED, False, "tokens", _DRAWN),
    PlannedStep("attention", TRAINED, False, "attention", INSERTIONS),
    PlannedStep("attention", TRAINED, False, "affine", ("mless",)),
    PlannedStep("activations", TRAINED, False, "activations", _CHANGED),
    PlannedStep("attention", TRAINED, True, "attention", INSERTIONS),
]
for _network in UNTRAINED:
    STEPS += [
        PlannedStep("controls", _network, False, "attention", INSERTIONS),
        PlannedStep("controls", _network, False, "affine", ("mless",)),
        PlannedStep("controls", _network, False, "activations", _CONTROLLED),
    ]
STEPS.append(PlannedStep("controls", UNIFORM, False, "attention", INSERTIONS))
