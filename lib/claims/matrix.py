"""The claims of several models side by side: a row per claim, a column per model, and what they have in common."""

from collections.abc import Sequence

import pandas as pd

from lib.statistics import ENOUGH, rounded, told

ACCURACY = ("accuracy-mless", "accuracy-mful", "arm-accuracy")
NATS = "nats"  # the unit of what is put to likelihoods
TOLD = ("id", "claim", "source", "model", "verdict", "effect", "low", "high", "unit", "n", "needed")
CONTROL = ("effect", "low", "high", "verdict")


def matrix_table(rows: Sequence[dict]) -> pd.DataFrame:
    """Return a row per claim and model that tested it; `shared`: untrained networks get the same verdict."""
    found = []
    for row in (row for row in rows if row["n"]):
        control = [(row["control"] or {}).get(name) for name in CONTROL]
        shared = row["verdict"] == control[-1] != "undecided"
        found.append([*(row[name] for name in TOLD), *control, shared])
    columns = [*TOLD, *(f"control_{name}" for name in CONTROL), "shared"]
    table = pd.DataFrame(found, columns=columns).astype({"control_effect": float, "needed": float})
    return table.sort_values("model", key=lambda names: names.map(list(names.unique()).index), kind="stable")


def cell_text(row) -> str:
    """Return what stands in a cell: the effect with its interval, the control's effect and n."""
    untrained = rounded(row.control_effect, row.control_low, row.control_high)
    control = "" if pd.isna(row.control_effect) else f"untrained {untrained}, "
    return f"{told(row.effect, row.low, row.high)}\n{control}n = {row.n}{', too few' * (row.n < ENOUGH)}"


def matrix_sentences(table: pd.DataFrame) -> list[str]:
    """Say which claims hold in all models, in some, in none, and for each model which n would decide accuracy.

    The first two sentences are about what happens inside the models; what likelihoods say stands in contrasts.py.
    """
    inside = table[~table.id.isin(ACCURACY) & (table.unit != NATS)]
    several = inside.groupby("id", sort=False).filter(lambda part: len(part) > 1)
    held = (several.verdict == "supported").groupby(several.id, sort=False).mean()
    in_all, in_none = list(held.index[held == 1]), list(held.index[held == 0])
    in_some = [name for name in held.index if name not in in_all + in_none]
    decided, models = several[several.verdict != "undecided"], several.model.nunique()
    return [
        f"Of {len(held)} claims about the inside of {models} models, supported in all: {_list(in_all)}; "
        f"in some: {_list(in_some)}; in none: {_list(in_none)}.",
        f"Untrained networks share {decided.shared.sum()} of {len(decided)} verdicts.",
        *_accuracy(table[table.id.isin(ACCURACY)]),
    ]


def _accuracy(table: pd.DataFrame) -> list[str]:
    """Return a sentence per model: the effects on its accuracy with the n that an effect of the paper's size needs."""
    texts = []
    for model, part in table.groupby("model", sort=False):
        open_ones = (part.verdict == "undecided") & (part.needed > 0)
        effects = [
            f"{row.id} {told(row.effect, row.low, row.high, '+')} "
            + (f"(needs {row.needed:,.0f})" if still_open else f"({row.verdict})")
            for row, still_open in zip(part.itertuples(), open_ones, strict=True)
        ]
        texts.append(f"Effect on accuracy, in points, on {model} (n = {part.n.min()}): {_list(effects)}.")
    return texts or ["No model's accuracy was tested."]


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
