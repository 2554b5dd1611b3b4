"""What completions show, in % and points: accuracy with intervals, each condition against none, graders and power."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.evaluation.records import Record, finished, groups, matrix, shares
from lib.statistics import POINTS, holm, interval, mcnemar_exact, n_needed, sign_flip, smallest_effect, told

GRADERS = {
    "correct": "this project's grader",
    "right": "this project's, worked out only",
    "correct_exact": "exact match after normalisation",
    "correct_authors_on_completion": "authors' rule, completion only",
    "correct_authors": "authors' rule as published",
}
RATES = ["accuracy_authors", "no_box", "truncated", "run_on", "elicited", "ungraded", "restated"]
PAIRED = ["effect", "effect_low", "effect_high", "p_value", "only_none", "only_this", "discordant", "p_holm"]
COLUMNS = ["model", "condition", "n", "samples", "accuracy", "low", "high", *RATES, *PAIRED]


def summarise(records: Sequence[Record], seed: int, outcome: str = "correct") -> pd.DataFrame:
    """Return a row of COLUMNS per model and condition: accuracy with its interval, rates, pairs against none.

    Accuracy and pairs count `outcome`, correct or right (`outcome_of`); `restated` is the share between the two. With
    one sample the test is exact McNemar's; with several, whose answers to a problem are not independent, signs are
    flipped, which `seed` draws. `p_holm` corrects for all rows. PAIRED are NaN of none, and where no problem was
    answered under none as well.
    """
    rows, found = [], groups(records)
    for (model, condition), group in found.items():
        values = matrix(group, outcome)
        row = {"model": model, "condition": condition, "n": len(values), "samples": values.shape[1]}
        row |= over_problems(shares(group, outcome), "share", "accuracy", "low", "high") | _rates(group)
        if condition != "none" and (model, "none") in found:
            row |= _against(matrix(found[model, "none"], outcome), values, seed)
        rows.append(row)
    table = pd.DataFrame(rows, columns=COLUMNS)
    tested = table["p_value"].notna()
    if tested.any():
        table.loc[tested, "p_holm"] = holm(table["p_value"][tested])
    return table


def cut_apart(records: Sequence[Record], seed: int, outcome: str = "correct") -> pd.DataFrame:
    """Return `summarise` of all problems, then of those that a model finished under each."""
    both = {"all": records, "finished": finished(records)}
    return pd.concat([summarise(some, seed, outcome).assign(problems=which) for which, some in both.items()])


def as_text(table: pd.DataFrame) -> str:
    """Return a line per row of `summarise`: accuracy, what was cut off or has no box, and the effect."""
    lines = []
    for row in table.to_dict("records"):
        text = f"{row['condition']:16} {told(row['accuracy'], row['low'], row['high'])} %  n = {row['n']}"
        text += "  truncated {truncated:.0f} %  no box {no_box:.0f} %  restated {restated:.0f} %".format_map(row)
        if not np.isnan(row["p_value"]):
            effect = told(row["effect"], row["effect_low"], row["effect_high"], "+")
            text += f"  against none {effect} points  p = {row['p_value']:.2g}"
        lines.append(text)
    return "\n".join(lines)


def over_problems(values: pd.Series, kind: str, *names: str) -> dict[str, float]:
    """Return the mean of a Series by problem, of a kind of `lib.statistics`, and its ends under three names."""
    found = interval(values, values.index, kind)
    return dict(zip(names, (found.estimate, found.low, found.high), strict=True))


def _rates(group: pd.DataFrame) -> dict[str, float]:
    found = (
        group["correct_authors"],
        group["method"].isin(("no-box", "empty-box")),
        group["finish_reason"] != "stop",
        group["run_on"].eq(True),  # records of an older run may lack it
        group["elicited"],
        group["method"].isin(("timeout", "crash", "refused")),
        group["correct"] & ~group["right"].astype(bool),
    )
    return {name: 100 * float(values.mean()) for name, values in zip(RATES, found, strict=True)}


def _against(none: pd.DataFrame, treated: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return effect, interval and p-value of one condition against none, over what both have answered."""
    differences = (treated - none).reindex(none.index).dropna(how="all")  # (problems, samples)
    if differences.empty:
        return {}
    by_problem = differences.mean(axis=1)
    lost, gained = (int(changed.to_numpy().sum()) for changed in (differences < 0, differences > 0))
    several = differences.count(axis=1).max() > 1  # means per problem are then what is independent
    row = over_problems(POINTS * by_problem, "difference", "effect", "effect_low", "effect_high")
    return row | {
        "p_value": sign_flip(by_problem, seed) if several else mcnemar_exact(lost, gained),
        "only_none": lost,
        "only_this": gained,
        "discordant": 100 * (lost + gained) / differences.count().sum(),
    }


def graders(records: Sequence[Record], seed: int) -> pd.DataFrame:
    """Return a row per model, condition and grader: accuracy, disagreements with this project's, effect."""
    rows, found = [], groups(records)
    for (model, condition), group in found.items():
        for field, name in GRADERS.items():
            row = {"model": model, "condition": condition, "grader": name, "n": len(group)}
            row |= {"accuracy": 100 * group[field].mean(), "disagree": (group[field] != group["correct"]).sum()}
            if condition != "none" and (model, "none") in found:
                row |= _against(matrix(found[model, "none"], field), matrix(group, field), seed)
            rows.append(row)
    columns = ["model", "condition", "grader", "n", "accuracy", "disagree", *PAIRED[:4]]
    return pd.DataFrame(rows, columns=columns)


def breakdown(records: Sequence[Record], field: str, outcome: str = "correct") -> pd.DataFrame:
    """Return a row per model, condition and level or subject: n and accuracy with its interval."""
    rows = []
    for (model, condition), group in groups(records).items():
        for value, part in group.groupby(field):
            row = {"model": model, "condition": condition, field: value, "n": len(part)}
            rows.append(row | over_problems(shares(part, outcome), "share", "accuracy", "low", "high"))
    return pd.DataFrame(rows, columns=["model", "condition", field, "n", "accuracy", "low", "high"])


def power(table: pd.DataFrame, effect: float) -> pd.DataFrame:
    """Return what each row of `summarise` with pairs could show at 80 % power, and the n that such an effect needs."""
    tested = table[table["p_value"].notna()]
    rates = tested["discordant"] / 100
    found = tested[["model", "condition", "discordant"]].assign(pairs=tested["n"] * tested["samples"])
    smallest = [100 * smallest_effect(n, rate) for n, rate in zip(found["pairs"], rates, strict=True)]
    needed = [n_needed(effect / 100, rate) if effect / 100 <= rate else np.nan for rate in rates]
    return found.assign(smallest=smallest, needed=needed)
