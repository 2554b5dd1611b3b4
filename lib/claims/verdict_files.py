"""Read and write verdicts.

A run writes its verdicts to results/<profile>/claims.json. Those of the repository's
profiles are also stored in data/<profile>/claims.json, with a table for readers,
verdicts.csv.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from lib import paths
from lib.claims.verdicts import Verdict
from lib.errors import InputError
from lib.figures.table_files import csv_of, shows_same
from lib.files.atomic import write_atomically
from lib.paths import relative_path
from lib.profiles import Profile

VERDICT_LIST = TypeAdapter(list[Verdict])


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row per verdict with a column per field; the fields of a nested object
    have compound names such as control_effect.
    """
    rows = VERDICT_LIST.dump_python(list(verdicts), mode="json", exclude_none=True)
    table = pd.json_normalize(rows, sep="_")
    if not rows:
        columns = [field.name for field in fields(Verdict)]
        table = pd.DataFrame(columns=columns, dtype=object)
    for name in ("holds", "refuted"):
        table[name] = table[name].str.join(", ")
    return table


def stored_verdicts(name: str) -> list[Verdict]:
    """Return the verdicts that the repository stores for the profile with a name.

    Raises InputError if there are none, or if they are invalid.
    """
    path = _shipped_file(name)
    return _read(path, f"git checkout {relative_path(path)} restores it")


def _shipped_file(name: str) -> Path:
    return paths.DATA / name / "claims.json"


def read_verdicts(profile: Profile) -> list[Verdict]:
    """Return the verdicts of a run, as `write_verdicts` stored them in results/.

    Raises InputError if there are none, or if they are invalid.
    """
    path = profile.results / "claims.json"
    again = f"python -m lib claims {profile.options}"
    if not path.exists():
        raise InputError(f"no claims of profile {profile.name} yet: {again}")
    return _read(path, f"write it again with {again}")


def _read(path: Path, advice: str) -> list[Verdict]:
    """Return the verdicts of a file; raise InputError that ends with the advice."""
    name = relative_path(path)
    try:
        return VERDICT_LIST.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {name} ({error.strerror}): {advice}") from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "no list"
        raise InputError(f"{name} has no valid claims ({where}): {advice}") from error


def write_verdicts(profile: Profile, verdicts: Sequence[Verdict]) -> Path:
    """Write verdicts to results/<profile>/claims.json, and return its path.

    If the repository stores verdicts of this profile, its files are replaced, too,
    unless the table would look the same to a reader.
    """
    content = VERDICT_LIST.dump_json(list(verdicts), indent=1) + b"\n"
    path = profile.results / "claims.json"
    write_atomically(path, content)

    # Processors round differently, so a change in the sixth digit alone must not change
    # the repository's files.
    stored = _shipped_file(profile.name)
    table = stored.with_name("verdicts.csv")
    csv = csv_of(verdict_table(verdicts))
    if stored.is_file() and not shows_same(table, csv):
        write_atomically(stored, content)
        write_atomically(table, csv.encode())
    return path
