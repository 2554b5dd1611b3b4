"""Arrays that took long to compute, kept on disk under everything that determines them.

A measurement that is interrupted loses at most the part it was at; a file that is damaged is computed again.
"""

import contextlib
import functools
import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lib import paths
from lib.errors import InputError
from lib.paths import settings_key


def kept(folder: Path | None, settings: dict, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return what `compute` returned under these settings and this version of the code, or call it.

    Without a folder nothing is kept. Raises InputError when the folder cannot be written.
    """
    if folder is None:
        return compute()
    path = folder / f"{settings_key(settings=settings, code=_code_digest())}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        arrays = compute()
    _write(path, arrays)
    return arrays


@functools.cache
def _code_digest() -> str:
    """Return a digest of the package's source: any change may change what is measured."""
    digest = hashlib.sha256()
    for path in sorted((paths.ROOT / "lib").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(partial, **arrays)
        partial.replace(path)
    except OSError as error:
        raise InputError(f"cannot keep measurements in {path.parent}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
