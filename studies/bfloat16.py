"""What rounding to bfloat16 does to the weights of sampled answers.

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

Writes studies/results/bfloat16.csv, a row per model and pair of conditions, and prints
it: by how much rounding changes the difference of log p between the two conditions, in
nats, and what weights say in either dtype, in points.
"""

import pandas as pd

from lib.errors import InputError
from lib.evaluation.answer_tables import mean_and_ends
from lib.evaluation.pass_rates import pass_rate_table, scored_draws
from lib.evaluation.records import SCORES
from studies.keeping import RESULTS, keep, rows_of_runs
from studies.weights import shorter

PAIRS = [("mless", "none"), ("mless", "hidden-from-layer-1")]
# What an answer's score is known by in both dtypes.
SAME_SCORE = ["answer", "condition"]
# Of a row of `pass_rate_table`: what is told of both dtypes.
TOLD = ["points", "low", "high", "spread"]


def changes(
    exact: pd.DataFrame, rounded: pd.DataFrame, more: str, less: str
) -> dict[str, float]:
    """Return how far rounding moves the difference of log p between `more` and `less`:
    the mean absolute change in nats with its interval over problems, and the largest.

    exact, rounded: the same answers, as `scored_draws` has them.
    """
    change = rounded[[more, less]] - exact[[more, less]]
    size = (change[more] - change[less]).abs().set_axis(exact.problem_id).dropna()
    ends = ["ratio_change", "ratio_change_low", "ratio_change_high"]
    told = mean_and_ends(ends, size, "mean")
    return told | {"ratio_change_largest": size.max()}


def compared(
    answers: pd.DataFrame, exact: pd.DataFrame, rounded: pd.DataFrame
) -> pd.DataFrame:
    """Return a row per model and pair of conditions whose scores both dtypes have.

    answers: as `lib.evaluation.records.frame` has completions; exact, rounded: a row
    per answer and condition. Raises InputError for a model of which an answer that
    decides is scored in one dtype alone.
    """
    in_both = exact[SAME_SCORE].merge(rounded[SAME_SCORE])
    exact, rounded = exact.merge(in_both), rounded.merge(in_both)
    rows = []
    for model, of_model in exact.groupby("model", sort=False):
        own_answers = answers[answers.model == model]
        of_rounded = rounded[rounded.model == model]
        draws_32 = scored_draws(own_answers, of_model)
        draws_16 = scored_draws(own_answers, of_rounded)
        in_float32, in_bfloat16 = _points(draws_32), _points(draws_16)
        for pair in PAIRS:
            row = dict(zip(("model", "more", "less"), (model, *pair), strict=True))
            row["n"] = in_float32.loc[pair, "n"]
            row["scored"] = in_float32.loc[pair, "answers"]
            row |= changes(draws_32, draws_16, *pair)
            row |= in_float32.loc[pair, TOLD].add_suffix("_float32")
            row |= in_bfloat16.loc[pair, TOLD].add_suffix("_bfloat16")
            rows.append(row)
    return pd.DataFrame(rows)


def _points(draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row of `pass_rate_table` per pair of conditions of one model."""
    table = pass_rate_table(draws, PAIRS)
    if len(table) < len(PAIRS):
        raise InputError(
            f"{draws.model.iloc[0]}: answers that decide lack a score in one dtype:"
            " let the run finish"
        )
    return table.set_index(["more", "less"])


def main() -> None:
    """Compare the scores of all folders with the stored ones and write the table."""
    rounded = pd.DataFrame(rows_of_runs(__doc__, SCORES))
    keep(RESULTS / "bfloat16.csv", compared(*shorter(), rounded))


if __name__ == "__main__":
    main()
