"""Measurements as labelled arrays, each kept as one NetCDF file under everything that determines it.

    xarray.open_dataset("results/demo/measurements/causes-SmolLM2-135M-Instruct-mless-0f3c...-9a41....nc")

A file is whole or absent; one that is damaged is measured again. A new one takes the place of those that older code
measured.
"""

import functools
import hashlib
import io
import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import xarray as xr

from lib import paths
from lib.errors import InputError
from lib.paths import settings_key, write_whole

ENGINE = "h5netcdf"
MEASURING = ("attention", "arm", "models", "prompts", "measurement")  # the folders whose code decides the numbers
AFTERWARDS = ("tables", "findings")  # ends of the names of modules that only read measurements
UNUSUAL = re.compile(r"[^\w.=+@-]+")  # in a file's name
LIBRARIES = ("torch", "transformers")
DIGEST = hashlib.sha256().digest_size  # bytes at the end of each file


def kept(folder: Path | None, name: str, settings: dict, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
    """Return what `compute` returned under these settings and this version of the code, or call it.

    The file's name is `name`, a key of the code and one of the settings. Without a folder nothing is kept. Raises
    InputError when the folder cannot be written.
    """
    if folder is None:
        return compute()
    code = settings_key(code=code_digest(), libraries={name: version(name) for name in LIBRARIES})
    stem = UNUSUAL.sub("-", name)
    path = folder / f"{stem}-{code}-{settings_key(settings=settings)}.nc"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else None
    except OSError as error:
        raise InputError(f"cannot keep measurements in {folder}: {error.strerror}") from error
    if content is not None:
        if hashlib.sha256(content[:-DIGEST]).digest() == content[-DIGEST:]:
            return xr.load_dataset(io.BytesIO(content), engine=ENGINE)
        print(f"{path} is damaged: it is measured again", file=sys.stderr, flush=True)
    found = compute()
    content = bytes(found.to_netcdf(None, engine=ENGINE))
    # NetCDF has no checksum of the whole; what follows its end is read by nobody else.
    write_whole(path, content + hashlib.sha256(content).digest())
    _prune(folder, stem, code)
    return found


def labelled(name: str, found: dict[str, tuple], coords: dict, texts: dict[str, tuple[str, str]], about: dict):
    """Return a Dataset of (dims, values) by name; `texts` hold the units and the definition of each variable."""
    dataset = xr.Dataset(found, coords, {"title": name} | about)
    for variable, (units, definition) in texts.items():
        dataset[variable].attrs = {"units": units, "long_name": definition}
    return dataset


@functools.cache
def code_digest() -> str:
    """Return a digest of the source that measures: a change there may change what is measured."""
    digest = hashlib.sha256()
    for folder in MEASURING:
        for path in sorted((paths.ROOT / "lib" / folder).glob("*.py")):
            if not path.stem.endswith(AFTERWARDS):
                digest.update(f"{folder}/{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _prune(folder: Path, stem: str, code: str) -> None:
    """Delete what other code measured under this name: nothing will read it again."""
    older = re.compile(rf"{re.escape(stem)}-(?!{code})[0-9a-f]{{16}}(-[0-9a-f]{{16}})?\.nc")
    for path in folder.glob("*.nc"):
        if older.fullmatch(path.name):
            path.unlink(missing_ok=True)
