"""Lock files with flock, so that no two runs write the same results.

A lock ends when its file is closed, even if the process is killed.
"""

import fcntl
import sys
from pathlib import Path
from typing import BinaryIO


def lock(stream: BinaryIO, path: Path) -> None:
    """Lock a file; if another run has locked it, say so and wait until that ends."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run writes {path}: waiting for it", file=sys.stderr, flush=True)
        fcntl.flock(stream, fcntl.LOCK_EX)
