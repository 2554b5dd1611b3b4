"""What notebook 06 found: the claims' table behind their figure, the row that it publishes, and its sentences."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from lib.claims.rule import NO_EFFECT, UNJUDGED, VERDICTS
from lib.claims.sentences import effect_text, range_text, standing, verdict_text

NESTED = ["range", "paper", "control", "uniform", "sentence"]  # whose parts, or numbers, have columns
MARGINS = ["margin", "margin_low", "margin_high", "margin_paper", "control.margin"]


def claims_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Return the rows of `judge` as a table of numbers and texts: what is nested has a column for each of its parts."""
    low, high = zip(*(row["range"] for row in rows), strict=True)
    table = pd.json_normalize(list(rows)).drop(columns=NESTED, errors="ignore").assign(low_end=low, high_end=high)
    return table.reindex(columns=list(dict.fromkeys([*table, *MARGINS])))


def labels(table: pd.DataFrame) -> list[str]:
    """Return what each claim is called beside its row of the figure: with its model when there are several."""
    several = table.model.nunique() > 1
    return [f"{row.id}{f', {row.model}' * several} (n = {row.n})" for row in table.itertuples()]


def told(rows: Sequence[dict]) -> list[str]:
    """Return what was measured beside each row of the figure, what was claimed, and the paper's number if any."""
    return [_told(row) if row["n"] else "not tested" for row in rows]


def _told(row: dict) -> str:
    text = f"{effect_text(row)} {row['unit']}, claimed {range_text(*row['range'])}"
    return text + (f", paper {row['paper']['value']:g}" if row["paper"] else "")


def counted(table: pd.DataFrame) -> str:
    """Return how many claims have each verdict, and how many have none."""
    counts = Counter(map(standing, table.to_dict("records")))
    always = [name for name in VERDICTS if name != NO_EFFECT]
    return ", ".join(f"{counts[name]} {name}" for name in (*VERDICTS, *UNJUDGED) if name in always or counts[name])


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
