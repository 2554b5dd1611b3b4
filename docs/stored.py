"""Read the stored results that the documents print.

A source names stored cells, as "table | condition on its rows | columns or a text". The
name of a table is its path below one of FOLDERS, such as chance or families/slashes;
PROFILE/claims has the verdicts of a profile.
"""

import functools

import pandas as pd

from lib.statistics.intervals import ALPHA
from reproduction import paths
from reproduction.claims.verdicts import read_verdicts, verdict_table
from reproduction.figures import short
from reproduction.figures.notebook_tables import intervals_of

MARKS = {True: " †", False: ""}
FOLDERS = ("studies/results", "figures", "data", "benchmarks/results")


@functools.cache
def tables() -> dict[str, pd.DataFrame]:
    """Return the stored tables by their names. A column `short` has the models' short
    names, and `dagger` a mark for verdicts that Holm's correction makes undecided, and
    for contrasts that it would if they were verdicts.
    """
    found = {}
    for path in paths.DATA.glob("*/claims.json"):
        rows = verdict_table(read_verdicts(path.parent))
        rows["dagger"] = rows["lost"].map(MARKS)
        found[f"{path.parent.name}/claims"] = rows
    for folder in FOLDERS:
        for path in (paths.ROOT / folder).rglob("*.csv"):
            name = path.relative_to(paths.ROOT / folder).with_suffix("")
            found[str(name)] = pd.read_csv(path)
    for name, rows in found.items():
        if "p_verdicts" in rows:
            is_lost = (rows["low"] * rows["high"] > 0) & (rows["p_verdicts"] > ALPHA)
            rows["dagger"] = is_lost.map(MARKS)
        if "model" in rows:
            found[name] = rows.assign(short=rows["model"].map(short))
    return found


def chosen(source: str) -> tuple[pd.DataFrame, str]:
    """Return the rows that a source names, and its columns or text."""
    name, condition, rest = (part.strip() for part in source.split("|", maxsplit=2))
    rows = tables()[name]
    return (rows.query(condition) if condition else rows), rest


@functools.cache
def estimates() -> list[tuple[float, float, float, float]]:
    """Return every stored estimate with the bounds of its interval and its n."""
    pool = []
    for found in tables().values():
        for triple in intervals_of(list(found)):
            rows = found[list(triple)].assign(n=found.get("n", 0))
            pool += rows.dropna().itertuples(index=False, name=None)
    return pool
