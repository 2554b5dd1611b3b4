"""A copy of the repository for commands and notebooks to write into."""

import shutil
from pathlib import Path

from lib.paths import ROOT


def copy_repository(folder: Path) -> Path:
    """Copy what commands need, without anything that they made."""
    for name in ("lib", "notebooks", "data", "studies"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
        )
    shutil.copy(ROOT / "pyproject.toml", folder)  # which has the copy's address
    return folder
