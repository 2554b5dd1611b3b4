"""Store the measurements of a model: each step as a row, or all steps as one file.

row = row_of(key, measured)        # a line of steps.jsonl
measured = dataset_of(row, folder)
save_measured(path, merged(steps))  # a NetCDF file, followed by its digest
"""

import base64
import contextlib
import hashlib
import io
from collections import ChainMap
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path

import xarray as xr

from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.files.text_and_yaml import read_bytes
from lib.measurement.dataset_variables import ORDER, VARIABLES
from lib.paths import relative_path

STEPS_FILE = "steps.jsonl"
NETCDF_ENGINE = "h5netcdf"
DIGEST_BYTES = hashlib.sha256().digest_size  # after each dataset


def row_of(key: str, measured: xr.Dataset) -> dict:
    """Return the row that stores a step's measurements."""
    return {"key": key, "dataset": base64.b64encode(encoded(measured)).decode()}


def dataset_of(row: dict, folder: Path) -> xr.Dataset:
    """Return the dataset that a row of a folder stores; raise InputError if it is
    damaged.
    """
    content = b""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        content = base64.b64decode(row["dataset"])
    return decoded(content, folder / STEPS_FILE)


def select_problems(measured: xr.Dataset, ids: Collection[str]) -> xr.Dataset:
    """Return the measurements on the problems with these ids.

    Variables without the dimension problem, such as histograms, stay those of all
    problems.
    """
    if "problem" not in measured.dims:
        return measured
    kept = [name for name in measured.problem.values if name in ids]
    return measured.sel(problem=kept)


def read_measured(path: Path) -> xr.Dataset:
    """Return the measurements of a file; raise InputError if it is damaged."""
    return decoded(read_bytes(path), path)


def save_measured(path: Path, measured: xr.Dataset) -> None:
    """Write measurements to a file, or replace it; raise InputError if that fails."""
    write_atomically(path, encoded(measured))


def encoded(measured: xr.Dataset) -> bytes:
    """Return measurements as the bytes of a NetCDF file, with a description of each
    variable, followed by their SHA-256 digest.
    """
    measured = measured.copy()
    meanings = ChainMap(*VARIABLES.values())
    encoding: dict[Hashable, dict] = {}
    for name, values in measured.items():
        values.attrs["long_name"] = meanings[str(name)][1]
        if values.dtype.kind == "f":
            encoding[name] = {"zlib": True, "complevel": 6, "shuffle": True}
    content = bytes(measured.to_netcdf(None, engine=NETCDF_ENGINE, encoding=encoding))
    # NetCDF has no checksum of the file, and readers ignore what follows its end.
    return content + hashlib.sha256(content).digest()


def decoded(content: bytes, path: Path) -> xr.Dataset:
    """Return the measurements that `encoded` turned into bytes.

    Raises InputError that names the file, `path`, if the digest does not match.
    """
    data, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        raise InputError(
            f"{relative_path(path)} is damaged: delete it, and it is measured again"
        )
    return xr.load_dataset(io.BytesIO(content), engine=NETCDF_ENGINE).drop_encoding()


def merged(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Return datasets merged into one, with NaN (or "" as a token's part) for missing
    values.

    Labels keep the order in which they first appear, except in the dimensions that
    ORDER sorts.
    """
    labels: dict[Hashable, dict] = {}
    for dataset in datasets:
        for dim in dataset.dims:
            known = dict.fromkeys(dataset[dim].values.tolist())
            labels.setdefault(dim, {}).update(known)
    coords = {dim: list(values) for dim, values in labels.items()}
    for dim in coords.keys() & ORDER.keys():
        coords[dim].sort(key=ORDER[str(dim)].index)

    aligned = []
    for dataset in datasets:
        indexers = {dim: coords[dim] for dim in dataset.dims}
        aligned.append(dataset.reindex(indexers, fill_value={"part": ""}))
    return xr.merge(aligned, compat="no_conflicts", join="exact")
