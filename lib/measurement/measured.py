"""What is measured on a model, and on the same shape without training: names, conditions and containers."""

from dataclasses import dataclass, field

import xarray as xr

from lib.models.names import Card

INSERTIONS = ("mless", "mful", "random")
CHANGES = (*INSERTIONS, "arm")  # of activations, in the first layers; the first is what the others are compared with
DEEP_CHANGES = ("mless", "arm")  # in every layer
SEEDS = (0, 1, 2)  # of the fresh weights
UNTRAINED = ("untrained-attention", "untrained-activations")  # groups of a stored file, with a seed


@dataclass(frozen=True)
class Measured:
    """What was measured on one model: its first layers on all problems, every layer on some, and, of attention, why."""

    model: Card
    first: xr.Dataset
    every: xr.Dataset = field(default_factory=xr.Dataset)  # empty when the profile loads no more than the first layers
    causes: xr.Dataset = field(default_factory=xr.Dataset)

    @property
    def parts(self) -> dict[str, xr.Dataset]:
        """What was measured, by name."""
        return {"first": self.first, "every": self.every, "causes": self.causes}


@dataclass(frozen=True)
class Controls:
    """What a model's shape shows without training; its effect is learnt only as far as it differs from these.

    As a trained model's, so that the two can be paired: the same problems, conditions, layers and heads. `attention`
    and `activations`: fresh weights, one for each of SEEDS, activations of layer 1 under DEEP_CHANGES alone. `uniform`:
    attention spread evenly, without causes and without values.
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


def whole(attention: Measured, activations: Measured | None, controls: Controls | None) -> xr.Dataset:
    """Return one Dataset over networks (trained, untrained 0 to 2, uniform); NaN where a network has no such number."""
    found = {"trained": _joined(attention, activations)}
    if controls:
        for seed, *one in zip(SEEDS, controls.attention, controls.activations, strict=True):
            found[f"untrained {seed}"] = _joined(*one)
        found["uniform"] = _joined(controls.uniform, None)
    labels = {name: axis for name, axis in found["trained"].coords.items() if name in found["trained"].dims}
    networks = [one.reindex(labels).expand_dims(network=[name]) for name, one in found.items()]
    return xr.concat(networks, "network", join="outer", data_vars="all", coords="minimal", compat="override")


def _joined(attention: Measured, activations: Measured | None) -> xr.Dataset:
    causes = attention.causes.rename({"lambda": "cause_lambda"}) if attention.causes else attention.causes
    parts = [_layers(attention), causes, *([_layers(activations)] if activations else [])]
    return xr.merge([part.drop_attrs() for part in parts], join="outer", compat="no_conflicts")


def _layers(one: Measured) -> xr.Dataset:
    """Return the first layers and those that only some problems went through, NaN for the others."""
    first = one.first.drop_vars("counts", errors="ignore")
    if not one.every:
        return first
    deeper = one.every.drop_vars("counts", errors="ignore")
    deeper = deeper.sel(layer=~deeper.layer.isin(first.layer)).reindex(problem=first.problem)
    same = {name: first[name] for name in ("condition", "head") if name in first.dims}
    return xr.concat([first, deeper.reindex(same)], "layer", join="outer")
