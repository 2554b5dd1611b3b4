"""The change in accuracy that the stored answers, or more of them, can detect.

    python -m studies.precision

Writes studies/results/precision.csv and prints it: a row per model and kind of answers.
`detectable` is the change in points that is significant with 80 % power at this n. More
problems narrow an interval; more answers to each problem only reduce the part of its
width that is sampling noise. This noise is estimated by shuffling the right answers
among the answers to the same problem, so that no prompt can have made them more likely
(`by_shuffling`, to be compared with the `variance` over problems). `half_width_more`
and `detectable_more` are for MORE answers to each of the same problems.
"""

import numpy as np
import pandas as pd

from lib import evaluation
from lib.evaluation.answer_tables import accuracy_by_problem, answer_groups
from lib.evaluation.weighted_pass_rates import is_mixed, weighted_differences
from lib.profiles import load_profile
from lib.statistics.intervals import Z_ALPHA, Z_POWER, interval
from studies.keeping import RESULTS, keep

SHUFFLES = 400
MORE = 16  # answers to a problem


def of_greedy(answers: pd.DataFrame) -> list[dict]:
    """Return a row per model with greedy answers under none and mless."""
    by_group = {
        name: accuracy_by_problem(group)
        for name, group in answer_groups(answers).items()
    }
    rows = []
    for model in answers["model"].unique():
        change = by_group[model, "mless"] - by_group[model, "none"]
        rows.append({"model": model, "way": "greedy"} | _widths(change.dropna()))
    return rows


def of_weighted(draws: pd.DataFrame) -> list[dict]:
    """Return a row per model with sampled answers, half of them under mless."""
    rows = []
    for model, drawn in draws.groupby("model", sort=False):
        points = weighted_differences(drawn, "mless", "none")
        row = {"model": model, "way": "sampled, weighted"} | _widths(points)
        by_shuffling = _variance_by_shuffling(drawn)
        of_problems = max(row["variance"] - by_shuffling, 0)
        answers = len(drawn) / len(points)
        of_draws = (row["variance"] - of_problems) * answers / MORE
        error = np.sqrt((of_problems + of_draws) / len(points))
        row |= {"by_shuffling": by_shuffling, "answers": answers, "more": MORE}
        row["half_width_more"] = Z_ALPHA * error
        rows.append(row | {"detectable_more": (Z_ALPHA + Z_POWER) * error})
    return rows


def _widths(points: pd.Series) -> dict[str, float]:
    """Return n, half-width and detectable change of the mean of the problems'
    changes.
    """
    error = interval(points, points.index).error
    return {
        "n": len(points),
        "half_width": Z_ALPHA * error,
        "detectable": (Z_ALPHA + Z_POWER) * error,
        "variance": points.var(),
    }


def _variance_by_shuffling(draws: pd.DataFrame) -> float:
    """Return the mean square of the problems' weighted changes after shuffling the
    grades within each problem.
    """
    rng = np.random.default_rng(0)
    mixed = draws[is_mixed(draws)].sort_values("problem_id", kind="stable")
    problem = mixed["problem_id"].to_numpy()
    right = mixed["right"].to_numpy()
    squares = []
    for _ in range(SHUFFLES):
        # A random order within each problem.
        order = np.lexsort((rng.random(len(problem)), problem))
        shuffled = mixed.assign(right=right[order])
        squares.append((weighted_differences(shuffled, "mless", "none") ** 2).sum())
    return float(np.mean(squares)) / draws["problem_id"].nunique()


def main() -> None:
    """Write the table of the families' answers."""
    families = load_profile("families")
    draws = evaluation.draws(families)
    assert draws is not None
    rows = of_greedy(evaluation.answers(families)) + of_weighted(draws)
    keep(RESULTS / "precision.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
