"""What a weighted pass rate rests on: the checks that belong beside its number.

    python -m studies.weights

Writes studies/results/weights.csv and prints it: a row of
`lib.evaluation.pass_rates.pass_rate_table` per model and pair of conditions that the
weights allow, with how many times as many answers counting would take.
"""

import pandas as pd

from lib import evaluation
from lib.evaluation.pass_rates import pass_rate_table
from lib.profiles import load_profile
from studies.keeping import RESULTS, keep

PAIRS = [
    ("mless", "none"),
    ("mless", "hidden-from-layer-1"),
    ("layer-1-only", "gap"),
    ("mful", "none"),
    ("arm", "none"),
]


def checks(draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and pair of PAIRS that is scored and weighted.

    draws: as `lib.evaluation.pass_rates.scored_draws` has them. `worth` is how many
    times as many answers counting would take for an interval as narrow.
    """
    table = pass_rate_table(draws, PAIRS)
    by_counting = table["counted_high"] - table["counted_low"]
    by_weights = table["high"] - table["low"]
    table = table.assign(worth=(by_counting / by_weights) ** 2)
    return table.dropna(subset="points")


def main() -> None:
    """Write the table of the families' sampled answers."""
    draws = evaluation.draws(load_profile("families"))
    assert draws is not None
    keep(RESULTS / "weights.csv", checks(draws))


if __name__ == "__main__":
    main()
