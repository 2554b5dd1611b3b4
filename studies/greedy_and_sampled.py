"""Do greedy and sampled answers disagree about the effect of slashes on accuracy?

    python -m studies.greedy_and_sampled

Writes studies/results/greedy_and_sampled.csv and prints it: a row per model with the
change in accuracy by slashes, in points, of greedy answers, of weighted samples to the
same problems, and the difference between the two with its p-value. Both changes are
known for each problem, so that the difference is paired.
"""

import pandas as pd
import scipy

from lib import evaluation
from lib.evaluation.answer_tables import accuracy_by_problem, mean_and_bounds
from lib.evaluation.weighted_pass_rates import weighted_differences
from lib.profiles import load_profile
from studies.keeping import RESULTS, keep


def compare(greedy: pd.DataFrame, draws: pd.DataFrame) -> pd.DataFrame:
    """Return the row of each model that has greedy answers and samples.

    greedy: rows of `evaluation.answers`; draws: rows of `evaluation.draws`.
    """
    rows = []
    for model, answers in greedy.groupby("model", sort=False):
        none, mless = (
            accuracy_by_problem(answers[answers["condition"] == condition])
            for condition in ("none", "mless")
        )
        of_model = draws[draws["model"] == model]
        changes = pd.DataFrame(
            {
                "greedy": mless - none,
                "sampled": weighted_differences(of_model, "mless", "none"),
            }
        ).dropna()
        changes["difference"] = changes["greedy"] - changes["sampled"]
        row = {"model": model, "n": len(changes)}
        for name, values in changes.items():
            bounds = [name, f"{name}_low", f"{name}_high"]
            row |= mean_and_bounds(bounds, values, "mean")
        row["p_value"] = scipy.stats.ttest_1samp(changes["difference"], 0).pvalue
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table of the families' answers."""
    families = load_profile("families")
    draws = evaluation.draws(families)
    assert draws is not None
    table = compare(evaluation.answers(families), draws)
    keep(RESULTS / "greedy_and_sampled.csv", table)


if __name__ == "__main__":
    main()
