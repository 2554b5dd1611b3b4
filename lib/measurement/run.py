"""All that a profile shows of the inside of its models: what the repository stores of it, else measured.

Only what measures imports the libraries that run a network, so that stored measurements are drawn without them.
"""

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from lib.measurement.curves import Curves
from lib.measurement.measured import Controls, Measured
from lib.measurement.stored import stored
from lib.models.names import resolve
from lib.profiles import Profile


def measure_attention(profile: Profile, folder: Path | None = None) -> dict[str, Measured]:
    """Return dilution and its causes on each of the profile's models, by name; kept in `folder`."""
    if files := stored(profile):
        return {name: file.measured("attention") for name, file in files.items()}
    from lib.measurement import networks

    return networks.attention(profile, folder)


def measure_activations(profile: Profile, folder: Path | None = None) -> dict[str, Measured]:
    """Return redistribution on each of the profile's models, by name; kept in `folder`."""
    if files := stored(profile):
        return {name: file.measured("activations") for name, file in files.items()}
    from lib.measurement import networks

    return networks.activations(profile, folder)


def measure_controls(profile: Profile, folder: Path | None = None) -> dict[str, Controls]:
    """Return the controls of each of the profile's models, by the model's name; kept in `folder`."""
    if files := stored(profile):
        return {name: file.controls() for name, file in files.items()}
    from lib.measurement import networks

    return networks.controls(profile, folder)


def panel_curves(profile: Profile, figure: str, conditions: Sequence[str]) -> list[Curves]:
    """Return the panels of one figure on the profile's example problem.

    Raises InputError when the model lacks a head or the example is not among the problems.
    """
    if files := stored(profile):
        panels = getattr(profile.attention.panels, figure)
        return [files[resolve(panel.model).name].curves(panel, conditions) for panel in panels]
    from lib.measurement.explorer import measured_curves

    return measured_curves(profile, figure, conditions)


def measure_explorer(profile: Profile, folder: Path | None = None) -> dict[str, xr.Dataset]:
    """Return the explorer of each of the profile's models, by name: of all layers where attention is measured there.

    None of a profile that is stored: the tokens of its example would be the problem's text.
    """
    if profile.stored:
        return {}
    from lib.measurement.explorer import measured_explorers

    return measured_explorers(profile, folder)
