"""What a lower token limit would have made of answers, and whether slashes change how
long they are.

An answer that is longer than the limit counts as wrong, as one that was cut does.
"""

from collections.abc import Sequence

import pandas as pd

from lib.evaluation.answer_tables import EFFECT_ENDS, mean_and_ends, summarise

EFFECT = [*EFFECT_ENDS, "p_value", "only_none", "only_this"]
LENGTH_ENDS = ["tokens", "tokens_low", "tokens_high"]


def at_limit(answers: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Return answers as they would be graded if they had been cut at a limit."""
    is_cut = answers["completion_tokens"].astype(int) > limit
    return answers.assign(
        right=answers["right"].astype(bool) & ~is_cut,
        finish_reason=answers["finish_reason"].mask(is_cut, "length"),
    )


def change_of_length(answers: pd.DataFrame) -> dict[str, float]:
    """Return by how many tokens slashes change answers that end under both conditions,
    with the interval over problems and their number; the number alone where it is 0.
    """
    ended = answers[answers["finish_reason"] == "stop"]
    tokens = ended.pivot(
        index="problem_id", columns="condition", values="completion_tokens"
    ).reindex(columns=["none", "mless"])
    change = (tokens["mless"] - tokens["none"]).astype(float).dropna()
    if change.empty:
        return {"ended": 0}
    return {"ended": len(change)} | mean_and_ends(LENGTH_ENDS, change, "mean")


def by_limit(answers: pd.DataFrame, limits: Sequence[int]) -> pd.DataFrame:
    """Return a row per model and limit, of the single answers under none and mless of
    the models that have both.
    """
    rows = []
    for model, of_model in answers.groupby("model", sort=False):
        if not {"none", "mless"} <= set(of_model["condition"]):
            continue
        for limit in limits:
            cut = at_limit(of_model, limit)
            table = summarise(cut).set_index("condition")
            row = {"model": model, "limit": limit, "n": table["n"]["none"]}
            for condition in ("none", "mless"):
                row[condition] = table["accuracy"][condition]
                row[f"cut_{condition}"] = table["truncated"][condition]
            row |= table[EFFECT].to_dict("index")["mless"]
            rows.append(row | change_of_length(cut))
    return pd.DataFrame(rows)
