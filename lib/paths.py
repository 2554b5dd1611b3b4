"""Find the repository's files from any current folder, and name files in messages."""

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
# The user's cache, for files that can be computed or downloaded again.
CACHE = Path(
    os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"),
    "meaningless-tokens",
)


def notebooks(only: Sequence[str] = ()) -> list[Path]:
    """Return the files of the notebooks with these numbers, such as "01"; empty: all.

    Notebook 00 is not included, because it measures a prompt of the reader and has no
    profile. Raises InputError for an unknown number.
    """
    files = sorted(NOTEBOOKS.glob("0[1-9]_*.ipynb"))
    by_number = {path.stem[:2]: path for path in files}
    numbers = {name.zfill(2): name for name in only}
    for number, name in numbers.items():
        if number not in by_number:
            raise unknown("notebook", name, [path.stem for path in files])
    return sorted(by_number[number] for number in numbers) or files


def relative_path(path: Path) -> str:
    """Return the path of a file for messages: relative to the repository if the file is
    inside.
    """
    return str(path).removeprefix(f"{ROOT}/")
