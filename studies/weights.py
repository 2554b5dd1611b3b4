"""Checks of the weighted pass rates: effective sample size, slope, mean weights.

    python -m studies.weights

Verdicts are based on the families' sampled answers. Answers that were drawn earlier,
with at most 512 tokens, are in studies/results/shorter; a third or more of them was
truncated.

Writes two tables and prints them. studies/results/weights.csv has for either token
limit a row of `pass_rate_table` per model and pair of conditions, and the factor by
which counting would need more answers; blocks.csv has the rows of slashes for the
problems before the last look at the growing data, and for those after it.
"""

import pandas as pd

from lib import evaluation
from lib.evaluation.pass_rate_tables import pass_rate_table
from lib.evaluation.weighted_pass_rates import scored_draws
from lib.profiles import load_profile
from lib.prompts.problem import Problem
from lib.prompts.sampling import sampling_order
from lib.statistics.intervals import POINTS
from studies.keeping import RESULTS, keep, kept_draws

SHORTER = RESULTS / "shorter"
SHORTER_LIMIT = 512  # tokens
LAST_LOOK = 320  # problems at the last look before all answers were drawn
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
    """Write the table of all sampled answers."""
    families = load_profile("families")
    assert families.pass_rates
    draws = evaluation.draws(families)
    assert draws is not None
    drawn = evaluation.answers(families, "draws")
    keep(RESULTS / "blocks.csv", blocks(draws, drawn, families.seed))
    tables = {
        families.pass_rates.max_new_tokens: checks(draws),
        SHORTER_LIMIT: checks(scored_draws(*kept_draws(SHORTER))),
    }
    both = pd.concat(tables, names=["limit"]).reset_index("limit")
    keep(RESULTS / "weights.csv", both)


if __name__ == "__main__":
    main()
