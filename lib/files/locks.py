"""Lock files and folders with flock, so that no two runs write or delete the same
results.

A lock ends when its file is closed, even if the process is killed.
"""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def lock(stream: BinaryIO, path: Path) -> None:
    """Lock a file; if another run has locked it, say so and wait until that ends."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run writes {path}: waiting for it", file=sys.stderr, flush=True)
        fcntl.flock(stream, fcntl.LOCK_EX)


@contextlib.contextmanager
def marked_in_use(folder: Path) -> Iterator[None]:
    """Let `path_in_use` find a folder until the block ends; several runs may use it.

    Does nothing on a disk without locks.
    """
    with _opened(folder) as descriptor:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield


def path_in_use(folder: Path) -> Path | None:
    """Return the path in a folder that a run has marked as in use or locked: of the
    folder itself, or of anything in it. None if there is none.
    """
    for path in (folder, *sorted(folder.rglob("*"))):
        try:
            with _opened(path) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return path
        except FileNotFoundError:  # a broken link, or a file that was just deleted
            continue
        except OSError:  # a disk without locks
            return None
    return None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Yield the descriptor of a file or folder that is opened for reading."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
