"""The effect of fillers on accuracy without reasoning, pooled over all models.

    python -m studies.pooled

A single model has too few answers to detect small changes. Here a problem's change is
the mean over the models that answered it, so the interval is over problems and takes
the models as fixed. This analysis is exploratory. Writes studies/results/pooled.csv and
prints it: a row per condition with the change in points, its interval and p-value, the
p-value after Holm's correction for the number of rows, and the numbers of answers
gained and lost.
"""

import pandas as pd

from lib import evaluation
from lib.evaluation.answer_tables import (
    accuracy_by_problem,
    answer_groups,
    mean_and_bounds,
)
from lib.profiles import load_profile
from lib.statistics.intervals import Interval, holm, smallest_level
from studies.keeping import RESULTS, keep

ENDS = ["effect", "low", "high"]


def pooled(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per condition: its change from none over several models' answers."""
    by_group = {
        name: accuracy_by_problem(group)
        for name, group in answer_groups(answers).items()
    }
    rows = []
    for condition in answers["condition"].unique():
        if condition == "none":
            continue
        changes = pd.DataFrame(
            {
                model: right - by_group[model, "none"]
                for (model, name), right in by_group.items()
                if name == condition
            }
        )
        by_problem = changes.mean(axis=1).dropna()
        row = {"condition": condition, "models": changes.shape[1]}
        row |= {"n": len(by_problem)} | mean_and_bounds(ENDS, by_problem, "mean")
        row["p_value"] = smallest_level(
            _excludes_zero, by_problem, by_problem.index, "mean"
        )
        row["gained"] = int((changes > 0).to_numpy().sum())
        row["lost"] = int((changes < 0).to_numpy().sum())
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p_value"]))


def _excludes_zero(mean: Interval) -> bool:
    return mean.low * mean.high > 0


def main() -> None:
    """Write the table of the families' answers."""
    answers = evaluation.answers(load_profile("families"), "direct")
    keep(RESULTS / "pooled.csv", pooled(answers))


if __name__ == "__main__":
    main()
