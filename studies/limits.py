"""What a lower token limit would have made of the stored answers.

An answer that is longer than the limit counts as wrong, as one that was cut does.

    python -m studies.limits

Writes studies/results/limits.csv and prints it: a row per model and limit, with the
accuracy and the share of answers that are cut under either condition, the change by
slashes, and by how many tokens slashes change the answers that end in both.
"""

import pandas as pd

from lib import evaluation
from lib.evaluation.answer_tables import summarise
from lib.profiles import load_profile
from lib.statistics import interval
from studies.keeping import RESULTS, keep

LIMITS = (256, 320, 384, 448, 512, 576, 640, 704, 768)
EFFECT = ["effect", "effect_low", "effect_high", "p_value", "only_none", "only_this"]


def at_limit(answers: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Return answers as they would be graded if they had been cut at a limit."""
    is_cut = answers["completion_tokens"].astype(int) > limit
    return answers.assign(
        right=answers["right"].astype(bool) & ~is_cut,
        finish_reason=answers["finish_reason"].mask(is_cut, "length"),
    )


def change_of_length(answers: pd.DataFrame) -> dict[str, float]:
    """Return by how many tokens slashes change answers that end under both conditions,
    with the interval over problems and their number.
    """
    ended = answers[answers["finish_reason"] == "stop"]
    tokens = ended.pivot(
        index="problem_id", columns="condition", values="completion_tokens"
    )
    change = (tokens["mless"] - tokens["none"]).astype(float).dropna()
    mean = interval(change, change.index)
    return {
        "ended": len(change),
        "tokens": mean.estimate,
        "tokens_low": mean.low,
        "tokens_high": mean.high,
    }


def by_limit(answers: pd.DataFrame, limits: tuple[int, ...]) -> pd.DataFrame:
    """Return a row per model and limit, of greedy answers under none and mless."""
    rows = []
    for model, of_model in answers.groupby("model", sort=False):
        for limit in limits:
            cut = at_limit(of_model, limit)
            table = summarise(cut).set_index("condition")
            row = {"model": model, "limit": limit, "n": table["n"]["none"]}
            for condition in ("none", "mless"):
                row[condition] = table["accuracy"][condition]
                row[f"cut_{condition}"] = table["truncated"][condition]
            row |= table.loc["mless", EFFECT].to_dict()
            rows.append(row | change_of_length(cut))
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table of the families' answers."""
    table = by_limit(evaluation.answers(load_profile("families")), LIMITS)
    keep(RESULTS / "limits.csv", table)
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
