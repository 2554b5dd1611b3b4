"""Compare likelihoods under plain prompts, as in the paper, with those under chat
prompts.

The likelihoods of data/families are of chat prompts if a model has a chat template. The
authors used instruction and problem without a template, for chat models, too:

    python -m reproduction likelihood --model demo --problems math500 --limit 100 \\
        --format plain --conditions none,mless,random,mful,hidden-from-layer-1 \\
        --dtype float32 --out runs/plain
    python -m studies.plain runs/plain...

Writes studies/results/plain.csv and prints it: one row per model and pair of conditions
with their difference in the log-likelihood of the reference solution, in nats, under
plain prompts, and under chat prompts on the same problems if these are stored.
"""

import pandas as pd

from reproduction import evaluation
from reproduction.claims.answer_measures import likelihood_differences
from reproduction.claims.decision_rule import Untestable
from reproduction.evaluation.answer_tables import mean_and_bounds
from reproduction.evaluation.rows import SCORES
from reproduction.profiles import load_profile
from studies.keeping import RESULTS, keep, rows_of_runs

PAIRS = [
    ("mless", "none"),
    ("random", "none"),
    ("mful", "none"),
    ("mless", "hidden-from-layer-1"),
]


def difference(
    scores: pd.DataFrame, treatment: str, reference: str
) -> dict[str, float]:
    """Return the mean difference of two conditions in one model's log p(solution), with
    its interval and n; an empty dict if one of them was not scored.
    """
    try:
        values = likelihood_differences(scores, "solution", [(treatment, reference)])
    except Untestable:
        return {}
    differences = values.isel(network=0, component=0).to_series().dropna()
    mean = mean_and_bounds(["effect", "low", "high"], differences, "mean")
    return mean | {"n": len(differences)}


def compared(plain: pd.DataFrame, chat: pd.DataFrame) -> pd.DataFrame:
    """Return the differences between conditions under both forms of the prompt, one row
    per model and pair of conditions.
    """
    rows = []
    solutions = plain[plain.target == "solution"]
    for model, scores in solutions.groupby("model", sort=False):
        in_chat = chat[(chat.model == model) & chat.problem_id.isin(scores.problem_id)]
        for treatment, reference in PAIRS:
            row = {"model": model, "treatment": treatment, "reference": reference}
            row |= difference(scores, treatment, reference)
            for name, value in difference(in_chat, treatment, reference).items():
                row[f"{name}_in_chat"] = value
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Compare the scores of all folders with the stored ones and write the table."""
    plain = pd.DataFrame(rows_of_runs(__doc__, SCORES))
    table = compared(plain, evaluation.scores(load_profile("families")))
    keep(RESULTS / "plain.csv", table)


if __name__ == "__main__":
    main()
