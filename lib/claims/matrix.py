"""The claims of several models side by side: a row per claim, a column per model, and what they have in common."""

from collections.abc import Sequence

import pandas as pd

from lib.claims.sentences import effect_text, number

ACCURACY = ("accuracy-mless", "accuracy-mful", "arm-accuracy")
TOLD = ("id", "claim", "source", "model", "verdict", "effect", "low", "high", "unit", "n", "needed")
CONTROL = ("effect", "low", "high", "verdict")


def matrix_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Return a row per claim and model that tested it: verdict, effect with interval, and the control's.

    `shared`: untrained networks get the same verdict, so that it says nothing about what was learnt.
    """
    columns = [*TOLD, *(f"control_{name}" for name in CONTROL), "shared"]
    table = pd.DataFrame([_told(row) for row in rows if row["n"]], columns=columns)
    return table.sort_values("model", key=lambda names: names.map(list(names.unique()).index), kind="stable")


def _told(row: dict) -> dict:
    control = row["control"] or dict.fromkeys(CONTROL)
    beside = {f"control_{name}": control[name] for name in CONTROL}
    shared = row["verdict"] == control["verdict"] != "undecided"
    return {name: row[name] for name in TOLD} | beside | {"shared": shared}


def cell_text(row) -> str:
    """Return what stands in a cell: the effect with its interval, the control's effect and n."""
    control = "" if pd.isna(row.control_effect) else f"untrained {number(row.control_effect)}, "
    return f"{effect_text({'effect': row.effect, 'low': row.low, 'high': row.high})}\n{control}n = {row.n}"


def matrix_sentences(table: pd.DataFrame) -> list[str]:
    """Say in three sentences which claims hold in all models, in some, in none, and which n would decide accuracy."""
    several = table.groupby("id", sort=False).filter(lambda part: len(part) > 1)
    groups: dict[str, list[str]] = {"all": [], "some": [], "none": []}
    for name, part in several.groupby("id", sort=False):
        holds = part.verdict == "supported"
        kind = "all" if holds.all() else "some" if holds.any() else "none"
        groups[kind].append(f"{name} ({_which(part, kind)})")
    counted = f"Of {several.id.nunique()} claims tested on {several.model.nunique()} models"
    return [
        f"{counted} all models show {_list(groups['all'])}.",
        f"Some show {_list(groups['some'])}; none shows {_list(groups['none'])}.",
        f"{_accuracy(table)}.",
    ]


def _which(part: pd.DataFrame, kind: str) -> str:
    """Return what else there is to say of a claim: how often untrained networks share it, who shows or denies it."""
    if kind == "all":
        shared = int(part.shared.sum())
        return f"untrained networks too in {shared} of {len(part)}" if shared else "no untrained network"
    if kind == "some":
        return ", ".join(part.model[part.verdict == "supported"])
    return f"contradicted in {(part.verdict == 'contradicted').sum()} of {len(part)}"


def _accuracy(table: pd.DataFrame) -> str:
    """Return the effects on accuracy with the n that an effect of the paper's size needs."""
    texts = []
    for row in table[table.id.isin(ACCURACY)].itertuples():
        needed = f", decided by n = {row.needed:,.0f}" if pd.notna(row.needed) and row.verdict == "undecided" else ""
        points = effect_text({"effect": row.effect, "low": row.low, "high": row.high})
        texts.append(f"{row.id} of {row.model} is {points} points (n = {row.n}, {row.verdict}{needed})")
    return "; ".join(texts) or "No model's accuracy was tested"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
