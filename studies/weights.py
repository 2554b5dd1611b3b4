"""Checks of the weighted pass rates: effective sample size, slope, mean weights.

    python -m studies.weights

Writes two tables of the families' sampled answers and prints them.
studies/results/weights.csv has a row of `pass_rate_table` per model and pair of
conditions, and the factor by which counting would need more answers; blocks.csv has the
rows of slashes in GROWING for the problems before the last look at its growing data,
and for those after it.
"""

import pandas as pd

from lib import evaluation
from lib.evaluation.pass_rate_tables import pass_rate_table
from lib.profiles import load_profile
from lib.prompts.problems import Problem, sampling_order
from lib.statistics.intervals import POINTS
from studies.keeping import RESULTS, keep

# The model whose answers were looked at while their number grew, and the number of
# problems at the last look before all were drawn.
GROWING = "Qwen2.5-Coder-0.5B-Instruct"
LAST_LOOK = 320
PAIRS = [
    ("mless", "none"),
    ("mless", "hidden-from-layer-1"),
    ("layer-1-only", "gap"),
    ("mful", "none"),
    ("arm", "none"),
]


def checks(draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and pair of PAIRS that is scored.

    draws: sampled answers, from `scored_draws`. The columns added are `worth`, how many
    times as many answers counting would need for an interval of the same width;
    `right`, the % of right answers without slashes; and `refused`, whether the weights
    are too uneven for an estimate.
    """
    table = pass_rate_table(draws, PAIRS)
    by_counting = table["observed_high"] - table["observed_low"]
    by_weights = table["high"] - table["low"]
    without = draws[draws["drawn_under"] == "none"]
    right = without["right"].astype(float).groupby(without["model"]).mean()
    return table.assign(
        worth=(by_counting / by_weights) ** 2,
        right=POINTS * table["model"].map(right),
        refused=table["points"].isna(),
    )


def in_order(answers: pd.DataFrame, seed: int) -> list[str]:
    """Return the ids of answered problems in the order in which a seed samples them,
    stratified by their levels.
    """
    levels = answers.drop_duplicates("problem_id").set_index("problem_id")["level"]
    problems = [
        Problem(unique_id=name, problem="-", answer="-", level=level)
        for name, level in levels.items()
    ]
    return [problem.id for problem in sampling_order(problems, seed)]


def blocks(draws: pd.DataFrame, answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the row of `checks` for slashes on the first LAST_LOOK problems of the
    sample, and on the others.

    answers: with the level of each problem.
    """
    order = in_order(answers, seed)
    is_first = draws["problem_id"].isin(order[:LAST_LOOK])
    parts = {
        f"first {LAST_LOOK}": checks(draws[is_first]).head(1),
        "others": checks(draws[~is_first]).head(1),
    }
    return pd.concat(parts, names=["problems"]).reset_index("problems")


def main() -> None:
    """Write both tables."""
    families = load_profile("families")
    draws = evaluation.draws(families)
    assert draws is not None
    keep(RESULTS / "weights.csv", checks(draws))
    drawn = evaluation.answers(families, "draws")
    growing = draws[draws["model"] == GROWING]
    keep(RESULTS / "blocks.csv", blocks(growing, drawn, families.seed))


if __name__ == "__main__":
    main()
