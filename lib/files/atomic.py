"""Replace files and fill folders atomically, so that they are complete or absent."""

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from huggingface_hub.utils import WeakFileLock

from lib.errors import InputError


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, replacing the file atomically.

    Raises InputError if the file cannot be written.
    """
    write_atomically(path, (json.dumps(value, indent=1) + "\n").encode("ascii"))


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, unless they exist; raise NotADirectoryError
    if a file has the name of one of them, or a link to nothing.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # "File exists" would not say what is wrong
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write the content, replacing the file atomically; create its folder if needed.

    At any time, the file has its complete old or new content. Raises InputError if it
    cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        make_folder(path.parent)
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            # Without this, a power failure could leave an empty file of this name.
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def complete_folder(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Return `folder`, which is in the cache, after filling it if it does not exist.

    `fill` receives a partial folder, into which it writes, and which is renamed when it
    returns. So `folder` is complete or absent, even if a process is killed. Only one
    process fills it at a time. The partial folder may have files of a killed process,
    which `fill` may keep. Raises InputError if the cache cannot be written.
    """
    if folder.is_dir():
        return folder
    partial = folder.with_name(f".{folder.name}.partial")
    with contextlib.ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(WeakFileLock(f"{folder}.lock"))
            if folder.is_dir():  # another process has filled it
                return folder
            partial.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot write the cache folder {folder.parent}: {error.strerror}; set"
                " XDG_CACHE_HOME to a folder that can be written"
            ) from error
        fill(partial)
        os.replace(partial, folder)
    return folder
