"""Measurements that are stored with the repository: a profile is drawn from them without its models' weights.

    xarray.open_datatree("data/families/gemma-3-270m.nc")["attention/first"]["lambda"]

One file per model with a group for each Dataset that `run`, `controls` and `curves` return, numbers rounded to what
figures and claims need. No file holds a problem's text, nor its tokens, which would be the text.
"""

import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import xarray as xr

from lib.errors import InputError
from lib.measurement.kept import ENGINE
from lib.models.card import Card
from lib.models.names import resolve
from lib.paths import write_whole
from lib.profiles import Profile

BITS = 12  # of a number's mantissa: exact to 0.00025 of it


def stored(profile: Profile) -> dict[str, xr.DataTree]:
    """Return what is stored of each of a profile's models, by name; nothing where the profile is to be measured.

    Raises InputError when what is stored was measured under other settings, or is damaged.
    """
    if profile.stored is None:
        return {}
    names = [resolve(spec).name for spec in profile.attention.models]
    found = {name: _read(profile.stored / f"{name}.nc") for name in names}
    for name, tree in found.items():
        if tree.attrs["settings"] != settings_of(profile):
            raise InputError(
                f"{profile.stored / name}.nc was measured under other settings than {profile.name} has now: "
                f"python -m lib reproduce --profile {profile.name} --fresh"
            )
    return found


def settings_of(profile: Profile) -> str:
    """Return as text what of a profile decides its measurements."""
    content = profile.model_dump(include={"attention", "seed", "filler"})
    return json.dumps(content | {"arm": profile.accuracy.model_dump()["arm"]}, sort_keys=True)


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


def _read(path: Path) -> xr.DataTree:
    try:
        return xr.open_datatree(io.BytesIO(path.read_bytes()), engine=ENGINE).load()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
