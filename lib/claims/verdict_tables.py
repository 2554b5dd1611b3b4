"""Verdicts in files, as a table for people, and counted.

`Verdict` objects are kept as JSON: those of a run in results/<profile>/claims.json, and
those of the repository's own profiles in data/<profile>/claims.json, beside a table
that people read, verdicts.csv. `counts` and `totals` say how many stand how.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from lib import paths
from lib.claims.claim import load_claims
from lib.claims.evidence import by_model
from lib.claims.judging import judge
from lib.claims.verdict import (
    NOT_TESTED,
    UNJUDGED,
    VERDICTS,
    Verdict,
    literal,
    models_of,
)
from lib.errors import InputError
from lib.figures.compare import csv_of, why_anew
from lib.paths import read_yaml, relative_path, write_whole
from lib.profiles import Profile

KEPT = TypeAdapter(list[Verdict])
# What `tested` says of each claim and model.
TESTED = ["claim", "model", "reading", "verdict", "measured", "low", "high"]
TESTED += ["unit", "n"]


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
    if stored.is_file() and why_anew(table, csv):
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
        mark = f"{row.mark} †" if row.lost else row.mark
        lines.append(f"{mark:14} {row.id}, {about}")
    return "\n".join(lines)


def counts(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return a row per model: how many literal claims stand how.

    What was not tested counts too.
    """
    claims = {verdict.id for verdict in literal(verdicts)}
    rows = []
    for model in models_of(verdicts):
        own = [row for row in literal(verdicts) if row.model == model and row.n]
        stands = Counter(verdict.stands for verdict in own)
        stands[NOT_TESTED] = len(claims) - len(own)
        rows.append({"model": model, **stands})

    names = [*VERDICTS, *UNJUDGED]
    table = pd.DataFrame(rows, columns=["model", *names])
    table[names] = table[names].fillna(0).astype(int)
    used = [name for name in names if table[name].any()]
    return table[["model", *used]]


def totals(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Return how many literal claims stand how, over all models."""
    return counts(verdicts).set_index("model").sum().to_dict()


def tested(profile: Profile, notebook: str, **evidence: Any) -> pd.DataFrame:
    """Return how the claims stand on which a notebook's figures bear, as
    data/figures.yaml has it: a row for each claim and model that the evidence tests.

    The evidence is as `by_model` takes it. Beside the verdict stand what was measured,
    with its ends, the unit and n.
    """
    names = set()
    for figures in read_yaml(paths.DATA / "figures.yaml").values():
        for figure in figures:
            if figure["notebook"].startswith(notebook):
                names |= set(figure["claims"])
    claims = [claim for claim in load_claims() if claim.id in names]
    rows = []
    for verdict in judge(claims, by_model(profile, **evidence)):
        if verdict.n:
            told = {"verdict": verdict.stands, "measured": verdict.effect}
            rows.append(vars(verdict) | told)
    return pd.DataFrame(rows, columns=TESTED)
