"""Measurements that are stored with the repository: a profile is drawn from them without its models' weights.

    xarray.open_datatree("data/families/gemma-3-270m.nc")["attention/first"]["lambda"]

One file per model with a group for each Dataset that `run`, `controls` and `curves` return, numbers rounded to what
figures and claims need. No file holds a problem's text, nor its tokens, which would be the text.
"""

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from lib.errors import InputError
from lib.measurement.curves import Curves, place
from lib.measurement.kept import ENGINE
from lib.measurement.measured import SEEDS, UNTRAINED, Controls, Measured
from lib.models.names import Card, resolve
from lib.paths import write_whole
from lib.profiles import Panel, Profile

BITS = 12  # of a number's mantissa: exact to 0.00025 of it


@dataclass(frozen=True)
class Stored:
    """A model's file, of which each group is read when it is first asked for."""

    path: Path

    def group(self, name: str) -> xr.Dataset:
        """Return a group, which nobody may change; raises InputError for a file that is missing or damaged."""
        try:
            return _read(self.path, self.path.stat().st_mtime_ns, name)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path} cannot be read: {' '.join(str(error).split())}") from error

    def measured(self, name: str) -> Measured:
        """Return what was measured of attention or activations, or on a control."""
        parts = {part: self.group(f"{name}/{part}") for part in ("first", "every", "causes")}
        return Measured(card_of(parts["first"]), **parts)

    def controls(self) -> Controls:
        """Return what was measured without training."""
        attention, activations = ([self.measured(f"{part}-{seed}") for seed in SEEDS] for part in UNTRAINED)
        return Controls(attention, activations, self.measured("uniform"))

    def curves(self, panel: Panel, conditions: Sequence[str]) -> Curves:
        """Return what a drawn head gives the tokens of the example problem."""
        drawn = self.group("curves/example")
        return Curves(panel, card_of(drawn), drawn.sel(place=place(panel), condition=list(conditions)))


@functools.cache
def _read(path: Path, changed: int, name: str) -> xr.Dataset:
    """Return a group of a file as it was when it was last changed."""
    return xr.load_dataset(path, engine=ENGINE, group=name)


def stored(profile: Profile) -> dict[str, Stored]:
    """Return what is stored of each of a profile's models, by name; nothing where the profile is to be measured.

    Raises InputError when what is stored was measured under other settings, or is damaged.
    """
    if profile.stored is None:
        return {}
    names = [resolve(spec).name for spec in profile.attention.models]
    found = {name: Stored(profile.stored / f"{name}.nc") for name in names}
    for file in found.values():
        if _given(file.group("/").attrs["settings"]) != _given(settings_of(profile)):
            raise InputError(
                f"{file.path} was measured under other settings than {profile.name} has now: "
                f"python -m lib reproduce {profile.options} --fresh"
            )
    return found


def settings_of(profile: Profile) -> str:
    """Return as text what of a profile decides its measurements."""
    content = profile.model_dump(include={"attention", "seed", "filler"})
    return json.dumps(content | {"arm": profile.accuracy.model_dump()["arm"]}, sort_keys=True)


def _given(settings: str) -> dict:
    """Return the settings of a text without those that are null, as if they were left out."""
    return json.loads(settings, object_hook=lambda fields: {k: v for k, v in fields.items() if v is not None})


def card_of(dataset: xr.Dataset) -> Card:
    """Return the model that a stored Dataset was measured on."""
    return Card(**json.loads(dataset.attrs["card"]))


def write_stored(path: Path, profile: Profile, found: dict[str, tuple[Card, xr.Dataset]]) -> None:
    """Write a model's Datasets, each with the model it was measured on, as the groups of one file."""
    tree = {name: _small(dataset, card) for name, (card, dataset) in found.items()}
    whole = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"settings": settings_of(profile)})} | tree)
    packed = {"zlib": True, "complevel": 9, "shuffle": True}
    encoding = {f"/{name}": {variable: packed for variable in part.data_vars} for name, part in tree.items()}
    write_whole(path, bytes(whole.to_netcdf(None, engine=ENGINE, encoding=encoding)))


def _small(dataset: xr.Dataset, card: Card) -> xr.Dataset:
    """Return the Dataset with its numbers rounded, for zlib to find little in."""
    rounded = {name: values.copy(data=_rounded(values.values)) for name, values in dataset.data_vars.items()}
    # Without encodings: those of parts that were joined may cut their labels to the first one's length.
    return dataset.assign(rounded).drop_encoding().assign_attrs(card=json.dumps(asdict(card)))


def _rounded(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "f":
        return values
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**BITS) / 2**BITS, exponent).astype("float32")
