"""What documents are written from: files that the repository keeps, each read once."""

import functools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib import evaluation
from lib.claims.verdict import Verdict
from lib.claims.verdict_tables import stored_verdicts, verdicts_of
from lib.errors import InputError
from lib.paths import FIGURES, ROOT, relative_path
from lib.profiles import Profile, load_profile

BENCHMARKS = ROOT / "benchmarks" / "results"
STUDIES = ROOT / "studies" / "results"
# What writes a csv, by its folder; anything else is written by `make reproduce`.
WRITTEN_BY = {BENCHMARKS: "make bench", STUDIES: "python -m studies.{}"}


@functools.cache
def families_run() -> Profile:
    """Return the profile of whose models the documents tell."""
    return load_profile("families")


@functools.cache
def families_answers() -> pd.DataFrame:
    """Return the answers of the families' models."""
    return evaluation.answers(families_run())


def families_shares() -> pd.DataFrame:
    """Return what slashes and a sentence take of each layer's attention."""
    return stored(FIGURES / "families" / "mass_by_layer.csv")


@functools.cache
def stored_as_verdicts(profile: str) -> Sequence[Verdict]:
    """Return the verdicts that the repository keeps of a profile of its own."""
    return tuple(verdicts_of(stored(stored_verdicts(profile))))


@functools.cache
def stored(path: Path) -> pd.DataFrame:
    """Return a csv; an InputError says which command writes one that is missing."""
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        command = WRITTEN_BY.get(path.parent, "make reproduce").format(path.stem)
        raise InputError(
            f"cannot read {relative_path(path)} ({error}): {command} writes it"
        ) from error
