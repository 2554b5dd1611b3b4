"""What notebook 06 found: the claims' table behind their figure, the row that it publishes, and its sentences."""

from collections.abc import Sequence

import pandas as pd

from lib.claims.sentences import verdict_text

VERDICTS = ("supported", "contradicted", "undecided")
NESTED = ["range", "paper", "control", "uniform"]
MARGINS = ["margin", "margin_low", "margin_high", "margin_paper"]


def claims_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Return the rows of `judge` as a table of numbers and texts: what is nested has a column for each of its parts."""
    low, high = zip(*(row["range"] for row in rows), strict=True)
    return pd.json_normalize(list(rows)).drop(columns=NESTED, errors="ignore").assign(low_end=low, high_end=high)


def labels(table: pd.DataFrame) -> list[str]:
    """Return what each claim is called beside its row of the figure: with its model when there are several."""
    several = table.model.nunique() > 1
    return [f"{row.id}{f', {row.model}' * several} (n = {row.n})" for row in table.itertuples()]


def counted(table: pd.DataFrame) -> str:
    """Return how many claims have each verdict."""
    counts = table.verdict.value_counts()
    return ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in VERDICTS)


def claims_rows(table: pd.DataFrame) -> list[dict]:
    """Return a row per model for the table that a run ends with."""
    return [
        {"figure": "claims", "model": model, "n": int(part.n.max()), "found": counted(part), "paper": "all hold"}
        for model, part in table.groupby("model", sort=False)
    ]


def claims_sentences(rows: Sequence[dict]) -> list[str]:
    """Name the claims of each verdict, per model, those that untrained networks share apart."""
    named: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: VERDICTS.index(row["verdict"])):
        named.setdefault((row["model"], verdict_text(row)), []).append(row["id"])
    models = list(dict.fromkeys(row["model"] for row in rows))
    ordered = sorted(named.items(), key=lambda item: models.index(item[0][0]))
    return [f"{model}, {verdict}: {', '.join(ids)}." for (model, verdict), ids in ordered]
