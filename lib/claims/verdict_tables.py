"""Verdicts in files, as a table for people, and counted.

`Verdict` objects are kept as JSON: those of a run in results/<profile>/claims.json, and
those of the repository's own profiles in data/<profile>/claims.json, beside a table
that people read, verdicts.csv.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from lib import paths
from lib.claims.verdict import Verdict
from lib.errors import InputError
from lib.figures.compare import csv_of, still_says
from lib.files import write_whole
from lib.paths import relative_path
from lib.profiles import Profile

KEPT = TypeAdapter(list[Verdict])


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row per verdict, and a column per field; those of an object in a field
    are named after both, such as control_effect.
    """
    rows = KEPT.dump_python(list(verdicts), mode="json", exclude_none=True)
    table = pd.json_normalize(rows, sep="_")
    for name in ("holds", "refuted"):
        table[name] = table[name].str.join(", ")
    return table


def stored_verdicts(name: str) -> list[Verdict]:
    """Return the verdicts that the repository keeps of a profile of its own, by name.

    Raises InputError when there are none, or they are damaged.
    """
    return _read(_stored(name), f"python -m lib reproduce --profile {name} writes them")


def _stored(name: str) -> Path:
    return paths.DATA / name / "claims.json"


def read_verdicts(profile: Profile) -> list[Verdict]:
    """Return what `write_verdicts` wrote.

    Raises InputError when there are no claims, or they are damaged.
    """
    path = profile.results / "claims.json"
    again = f"python -m lib claims {profile.options}"
    if not path.exists():
        raise InputError(f"no claims of profile {profile.name} yet: {again}")
    return _read(path, f"make it anew with {again}")


def _read(path: Path, advice: str) -> list[Verdict]:
    """Return the verdicts of a file; the InputError ends in this advice."""
    place = relative_path(path)
    try:
        return KEPT.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {place} ({error.strerror}): {advice}") from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "no list"
        raise InputError(f"{place} holds no claims ({where}): {advice}") from error


def write_verdicts(profile: Profile, verdicts: Sequence[Verdict]) -> Path:
    """Write results/<profile>/claims.json and return its path.

    The repository's own files of these verdicts are renewed, if it has them.
    """
    content = KEPT.dump_json(list(verdicts), indent=1) + b"\n"
    path = profile.results / "claims.json"
    write_whole(path, content)

    # Processors round differently: a sixth digit is no news.
    stored = _stored(profile.name)
    table = stored.with_name("verdicts.csv")
    csv = csv_of(verdict_table(verdicts))
    if stored.is_file() and not still_says(table, csv):
        write_whole(stored, content)
        write_whole(table, csv.encode())
    return path


def verdicts_as_text(verdicts: Iterable[Verdict]) -> str:
    """Return a line per verdict: how it stands, with its number, or why there is none.

    † marks one that does not stand when corrected for the number of all.
    """
    lines = []
    for row in verdicts:
        about = row.reason
        if row.n:
            about = f"{row.model}: {row.estimate} {row.unit}, n = {row.n}"
        word = f"{row.word} †" if row.lost else row.word
        lines.append(f"{word:14} {row.id}, {about}")
    return "\n".join(lines)


def totals(verdicts: Iterable[Verdict]) -> str:
    """Return how many literal claims stand how, over all models."""
    literal = [verdict for verdict in verdicts if verdict.reading == "literal"]
    stands = Counter(verdict.stands for verdict in literal)
    return ", ".join(f"{count} {name}" for name, count in stands.most_common())
