"""Find the notebooks, profiles, figures and results from any current folder."""

from collections.abc import Sequence
from pathlib import Path

from lib.errors import unknown
from lib.paths import DATA, ROOT

NOTEBOOKS = ROOT / "notebooks"
PROFILES = DATA / "profiles"
FIGURES = ROOT / "figures"
RESULTS = ROOT / "results"


def notebooks(only: Sequence[str] = ()) -> list[Path]:
    """Return the files of the notebooks with these numbers, such as "01"; empty: all.

    Notebook 00 is not included, because it measures a prompt of the reader and has no
    profile. Raises InputError for an unknown number.
    """
    files = sorted(NOTEBOOKS.glob("0[1-9]_*.ipynb"))
    by_number = {path.stem[:2]: path for path in files}
    for name in only:
        if name.zfill(2) not in by_number:
            raise unknown("notebook", name, [path.stem for path in files])
    return sorted({by_number[name.zfill(2)] for name in only}) or files
