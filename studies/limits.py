"""The stored answers under lower token limits.

An answer that is longer than the limit counts as truncated, and so as wrong.

    python -m studies.limits

Writes two tables and prints them. studies/results/limits.csv has a row per model and
limit on greedy answers, with the accuracy and the share of truncated answers under
either condition, the change in accuracy by slashes, and their change in the length of
answers that end under both conditions. sampled_limits.csv has the change in accuracy of
sampled answers, by counting.
"""

from collections.abc import Sequence

import pandas as pd

from lib import evaluation
from lib.evaluation.answer_tables import (
    accuracy_by_problem,
    by_limit,
    mean_and_bounds,
    with_token_limit,
)
from lib.profiles import load_profile
from studies.keeping import RESULTS, keep

LIMITS = (256, 320, 384, 448, 512, 576, 640, 704, 768)
ENDS = ["effect", "effect_low", "effect_high"]


def of_samples(answers: pd.DataFrame, limits: Sequence[int]) -> pd.DataFrame:
    """Return a row per model and limit: the change in accuracy by slashes, in points
    with its interval over problems, by counting right answers.

    answers: sampled, as many to each problem without slashes as with them.
    """
    rows = []
    for model, of_model in answers.groupby("model", sort=False):
        for limit in limits:
            limited = with_token_limit(of_model, limit)
            none, mless = (
                accuracy_by_problem(limited[limited["condition"] == condition])
                for condition in ("none", "mless")
            )
            change = mless - none
            row = {"model": model, "limit": limit, "n": len(change)}
            rows.append(row | mean_and_bounds(ENDS, change, "mean"))
    return pd.DataFrame(rows)


def main() -> None:
    """Write both tables of the families' answers."""
    families = load_profile("families")
    table = by_limit(evaluation.answers(families), LIMITS)
    keep(RESULTS / "limits.csv", table)
    assert families.pass_rates
    limits = (*LIMITS, families.pass_rates.max_new_tokens)
    sampled = of_samples(evaluation.answers(families, "draws"), limits)
    keep(RESULTS / "sampled_limits.csv", sampled)


if __name__ == "__main__":
    main()
