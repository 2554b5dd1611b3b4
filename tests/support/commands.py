"""A copy of the repository for commands and notebooks to write into."""

import shutil
from pathlib import Path

from lib.paths import ROOT


def copy_repository(folder: Path) -> Path:
    """Copy the files that commands need into a folder, without results, and return
    it.
    """
    for name in ("lib", "reproduction", "notebooks", "data", "studies"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
        )
    shutil.copy(ROOT / "pyproject.toml", folder)  # it has the repository's URL
    return folder
