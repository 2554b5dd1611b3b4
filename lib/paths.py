"""Where things are, whatever the current folder is, and how a message names them."""

import os
from collections.abc import Sequence
from pathlib import Path

from lib.errors import unknown

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
PROFILES = DATA / "profiles"
FIGURES = ROOT / "figures"
RESULTS = ROOT / "results"
if not PROFILES.is_dir():
    raise ImportError(
        f"{ROOT} has no data/profiles, which lib reads: run `make install`, or `pip"
        " install --editable .` in a clone of the repository; a wheel has only the code"
    )
# The user's, for what can be computed or fetched again.
CACHE = Path(
    os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"),
    "meaningless-tokens",
)


def notebooks(only: Sequence[str] = ()) -> list[Path]:
    """Return the notebooks of these numbers, all of them for none.

    00 is not among them: it shows a prompt of the reader's own, and no profile decides
    what. Raises InputError for an unknown one.
    """
    files = sorted(NOTEBOOKS.glob("0[1-9]_*.ipynb"))
    by_number = {path.stem[:2]: path for path in files}
    numbers = {name.zfill(2): name for name in only}
    for number, name in numbers.items():
        if number not in by_number:
            raise unknown("notebook", name, [path.stem for path in files])
    return sorted(by_number[number] for number in numbers) or files


def relative_path(path: Path) -> str:
    """Return how a message names a file: one of this repository without the folders
    above it.
    """
    return str(path).removeprefix(f"{ROOT}/")
