"""Where things are, whatever the current folder is."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
PROFILES = DATA / "profiles"
FIGURES = ROOT / "figures"
RESULTS = ROOT / "results"


def cache_folder() -> Path:
    """Return the per-user folder for what can be computed or fetched again (XDG cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "meaningless-tokens"
