"""Measure how rounding to bfloat16 changes the weights of sampled answers.

The answers of Qwen2.5-Coder-1.5B-Instruct in studies/results/shorter were drawn in
bfloat16. Their scores there are computed in float32, by the same weights; these are the
ones in bfloat16:

    python -m lib likelihood --model Qwen2.5-Coder-1.5B-Instruct --problems math500 \\
        --answers runs/draws --conditions none,mless,hidden-from-layer-1 \\
        --dtype bfloat16 --out runs/rounded
    python -m studies.bfloat16 runs/rounded...

A checkpoint that was converted from GGUF has another revision in each dtype. So for
float32 a copy of the converted folder, named like the model, is scored:

    cp -r ~/.cache/meaningless-tokens/gguf/qwen2.5-coder-1.5b-*/bfloat16 \\
        runs/Qwen2.5-Coder-1.5B-Instruct
    python -m lib likelihood --model runs/Qwen2.5-Coder-1.5B-Instruct \\
        --problems math500 --answers runs/draws --dtype float32 \\
        --conditions none,mless,hidden-from-layer-1 --out runs/exact

Writes studies/results/bfloat16.csv and prints it: one row per model and pair of
conditions, with the change of the log-likelihood ratio by rounding, in nats, and the
importance-weighted difference in accuracy in either dtype, in points.
"""

import pandas as pd

from lib.errors import InputError
from lib.evaluation.answer_tables import mean_and_bounds
from lib.evaluation.pass_rate_tables import pass_rate_table
from lib.evaluation.records import SCORES
from lib.evaluation.weighted_pass_rates import scored_draws
from studies.keeping import RESULTS, keep, kept_draws, rows_of_runs
from studies.weights import SHORTER

PAIRS = [("mless", "none"), ("mless", "hidden-from-layer-1")]
PAIR_COLUMNS = ["treatment", "reference"]
# The columns that identify a score in both dtypes.
SAME_SCORE = ["answer", "condition"]
# The columns of `pass_rate_table` that are reported for both dtypes.
REPORTED = ["points", "low", "high", "log_ratio_sd"]


def changes(
    exact: pd.DataFrame, rounded: pd.DataFrame, treatment: str, reference: str
) -> dict[str, float]:
    """Return how much rounding changes the log-likelihood ratio of two conditions: the
    mean absolute change in nats with its interval over problems, and the maximum.

    exact, rounded: the same answers, from `scored_draws`.
    """
    pair = [treatment, reference]
    change = rounded[pair] - exact[pair]
    size = (change[treatment] - change[reference]).abs()
    size = size.set_axis(exact.problem_id).dropna()
    ends = ["ratio_change", "ratio_change_low", "ratio_change_high"]
    mean = mean_and_bounds(ends, size, "mean")
    return mean | {"ratio_change_largest": size.max()}


def compared(
    answers: pd.DataFrame, exact: pd.DataFrame, rounded: pd.DataFrame
) -> pd.DataFrame:
    """Return weighted pass rates and log-likelihood ratios in both dtypes, one row per
    model and pair of conditions, from the scores that exist in both.

    answers: completions, from `lib.evaluation.records.frame`; exact, rounded: one row
    per answer and condition. Raises InputError if an answer to a mixed problem has a
    score in only one dtype.
    """
    in_both = exact[SAME_SCORE].merge(rounded[SAME_SCORE])
    exact, rounded = exact.merge(in_both), rounded.merge(in_both)
    rows = []
    for model, of_model in exact.groupby("model", sort=False):
        model_answers = answers[answers.model == model]
        of_rounded = rounded[rounded.model == model]
        draws_32 = scored_draws(model_answers, of_model)
        draws_16 = scored_draws(model_answers, of_rounded)
        in_float32, in_bfloat16 = _points(draws_32), _points(draws_16)
        for pair in PAIRS:
            row = dict(
                zip(("model", "treatment", "reference"), (model, *pair), strict=True)
            )
            row["n"] = in_float32.loc[pair, "n"]
            row["scored"] = in_float32.loc[pair, "mixed_answers"]
            row |= changes(draws_32, draws_16, *pair)
            row |= in_float32.loc[pair, REPORTED].add_suffix("_float32")
            row |= in_bfloat16.loc[pair, REPORTED].add_suffix("_bfloat16")
            rows.append(row)
    return pd.DataFrame(rows)


def _points(draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row of `pass_rate_table` per pair of conditions of one model."""
    table = pass_rate_table(draws, PAIRS)
    if len(table) < len(PAIRS):
        raise InputError(
            f"{draws.model.iloc[0]}: answers to problems with both right and wrong"
            " answers have no score in one dtype: let the run finish"
        )
    return table.set_index(PAIR_COLUMNS)


def main() -> None:
    """Compare the scores of all folders with the stored ones and write the table."""
    rounded = pd.DataFrame(rows_of_runs(__doc__, SCORES))
    keep(RESULTS / "bfloat16.csv", compared(*kept_draws(SHORTER), rounded))


if __name__ == "__main__":
    main()
