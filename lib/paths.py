"""Find the repository's files from any current folder, and name files in messages."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
if not (DATA / "models.yaml").is_file():
    raise ImportError(
        f"{ROOT} has no data/models.yaml, which lib reads: run `make install`, or `pip"
        " install --editable .` in a clone of the repository; a wheel has only the code"
    )
# The user's cache, for files that can be computed or downloaded again.
CACHE = Path(
    os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"),
    "meaningless-tokens",
)


def relative_path(path: Path) -> str:
    """Return the path of a file for messages: relative to the repository if the file is
    inside.
    """
    return str(path).removeprefix(f"{ROOT}/")
