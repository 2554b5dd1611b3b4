"""What a weighted pass rate rests on: the checks that belong beside its number.

    python -m studies.weights

Verdicts rest on the families' sampled answers. Those that were drawn first, with at
most 512 tokens, are in studies/results/shorter: a third and more of them was cut.

Writes studies/results/weights.csv and prints it: for either limit of tokens a row of
`lib.evaluation.pass_rates.pass_rate_table` per model and pair of conditions that the
weights allow, with how many times as many answers counting would take.
"""

import pandas as pd

from lib import evaluation
from lib.evaluation.pass_rates import pass_rate_table, scored_draws
from lib.evaluation.rows import frame
from lib.evaluation.store import read
from lib.profiles import load_profile
from lib.statistics.intervals import POINTS
from studies.keeping import RESULTS, keep

SHORTER = RESULTS / "shorter"
SHORTER_LIMIT = 512  # tokens
PAIRS = [
    ("mless", "none"),
    ("mless", "hidden-from-layer-1"),
    ("layer-1-only", "gap"),
    ("mful", "none"),
    ("arm", "none"),
]


def shorter() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the answers that were drawn first, as `frame` has them, and a row per
    score of one.
    """
    answers = frame(read(SHORTER / "completions.jsonl.gz"))
    return answers, pd.DataFrame(read(SHORTER / "scores.jsonl.gz"))


def checks(draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and pair of PAIRS that is scored and weighted.

    draws: as `lib.evaluation.pass_rates.scored_draws` has them. `worth` is how many
    times as many answers counting would take for an interval as narrow, `right` how
    many % of the answers without slashes are right.
    """
    table = pass_rate_table(draws, PAIRS)
    by_counting = table["counted_high"] - table["counted_low"]
    by_weights = table["high"] - table["low"]
    without = draws[draws["drawn_under"] == "none"]
    right = without["right"].astype(float).groupby(without["model"]).mean()
    table = table.assign(
        worth=(by_counting / by_weights) ** 2, right=POINTS * table["model"].map(right)
    )
    return table.dropna(subset="points")


def main() -> None:
    """Write the table of all sampled answers."""
    families = load_profile("families")
    assert families.pass_rates
    draws = evaluation.draws(families)
    assert draws is not None
    tables = {
        families.pass_rates.max_new_tokens: checks(draws),
        SHORTER_LIMIT: checks(scored_draws(*shorter())),
    }
    both = pd.concat(tables, names=["limit"]).reset_index("limit")
    keep(RESULTS / "weights.csv", both)


if __name__ == "__main__":
    main()
