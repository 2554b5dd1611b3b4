"""Lock files with flock, so that no two runs write or delete the same results.

A lock ends when its file is closed, even if the process is killed.
"""

import contextlib
import fcntl
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
def marked_in_use(path: Path) -> Iterator[None]:
    """Let `file_in_use` find a file until the block ends; several runs may use it.

    Does nothing on a disk without file locks.
    """
    with open(path, "rb") as stream:
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield


def file_in_use(folder: Path) -> Path | None:
    """Return a file in a folder or its subfolders that a run has locked or marked as in
    use, or None.
    """
    for path in filter(Path.is_file, sorted(folder.rglob("*"))):
        with open(path, "rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return path
            except OSError:  # a disk without file locks
                return None
    return None
