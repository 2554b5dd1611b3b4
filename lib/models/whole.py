"""Folders in the cache that are whole or absent, whoever is killed while they are made."""

import os
from collections.abc import Callable
from pathlib import Path

from huggingface_hub.utils import WeakFileLock

from lib.errors import InputError


def whole_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Return `folder`; when it is not there yet, `fill` makes it in a partial folder, which is renamed at the end.

    One process at a time fills it; `fill` may go on from what a process that was killed has left there. Raises
    InputError when the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write the cache folder {folder.parent}: {error.strerror}") from error
    with WeakFileLock(f"{folder}.lock"):
        if not folder.is_dir():
            partial = folder.with_name(f"{folder.name}.partial")
            partial.mkdir(exist_ok=True)
            fill(partial)
            os.replace(partial, folder)
    return folder
