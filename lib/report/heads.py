"""λ of every head of the first layer, and of every layer, as the page draws them."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from lib import paths
from lib.measurement.measured_tables import layers_of, means_table
from lib.measurement.plan import TRAINED, UNIFORM
from lib.measurement.store import read_measured
from lib.profiles import Profile

# The columns of the first layer's heads: the condition, and the networks.
COLUMNS = {
    "mless": ("mless", TRAINED),
    "mful": ("mful", TRAINED),
    "random": ("random", TRAINED),
    "untrained": ("mless", "untrained"),
    "even": ("mless", UNIFORM),
}
DRAWN_CONDITIONS = ("mless", "mful", "random")


def read_heads(profile: Profile) -> tuple[list[dict], list[str]]:
    """Return a JSON object per model, and what is missing and why.

    What was measured here comes before what the repository has. `columns` have by name
    of COLUMNS a triple (mean, low, high) of λ per head, `layers` by condition the mean
    over heads of each layer, with its ends.
    """
    files = {}
    for folder in (paths.DATA / profile.name, profile.results):
        files |= {path.name: path for path in sorted(folder.glob("*.nc"))}
    models: list[dict] = []
    missing: list[str] = []
    for name, path in files.items():
        try:
            measured = read_measured(path)
            if "lambda" in measured:
                models.append(_of_model(measured))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            reason = " ".join(str(error).split())
            missing.append(f"{name} cannot be read: {reason}")
    if not models:
        command = f"python -m lib reproduce {profile.options} --only 02"
        missing.append(f"No heads of this profile yet: {command}")
    return models, missing


def _of_model(measured: xr.Dataset) -> dict:
    """Return what the page draws of one model."""
    ratios = measured["lambda"]
    columns = {}
    for name, (condition, networks) in COLUMNS.items():
        column = _column(ratios, condition, networks)
        if column:
            columns[name] = column
    return {
        "name": measured.model,
        "revision": str(measured.revision),
        "columns": columns,
        "layers": _layers(ratios),
    }


def _column(ratios: xr.DataArray, condition: str, networks: str) -> list[list[float]]:
    """Return (mean, low, high) of each head of layer 1; nothing where none is measured.

    Untrained networks are several: of each head the middle one counts, and the lowest
    and the highest.
    """
    names = [name for name in ratios.network.values if str(name).startswith(networks)]
    if condition not in ratios.condition or not names:
        return []
    chosen = ratios.sel(condition=condition, network=names).sel(layer=1)
    if not bool(chosen.notnull().any()):
        return []
    if networks == TRAINED:
        table = means_table(chosen.isel(network=0, drop=True))
        return _triples(table[["mean", "low", "high"]].to_numpy())
    means = chosen.mean("problem")
    ends = [means.median("network"), means.min("network"), means.max("network")]
    return _triples(np.stack([end.values for end in ends], 1))


def _layers(ratios: xr.DataArray) -> dict[str, list[list[float]]]:
    """Return by condition (layer, mean, low, high) of the mean over heads: of all
    layers on the problems that went through them, where there are any.
    """
    every = layers_of(ratios, every=True)
    if every.size == 0:
        every = layers_of(ratios)
    table = means_table(every.mean("head"))
    layers = {}
    for condition in DRAWN_CONDITIONS:
        rows = table[table.condition == condition]
        if len(rows):
            layers[condition] = _triples(
                rows[["layer", "mean", "low", "high"]].to_numpy()
            )
    return layers


def _triples(rows: Sequence[Sequence[float]] | np.ndarray) -> list[list[float]]:
    return [[float(f"{number:.4g}") for number in row] for row in rows]
