"""Whether problems whose reference solution is more likely are solved more often.

    python -m studies.solved

Writes two tables and prints them. studies/results/solved.csv has a row per model and
order of the problems, with the area under the ROC curve: in how many % of the pairs of
a solved and an unsolved problem the solved one comes first. Long solutions have a low
log p, and hard problems have long solutions, so the orders by log p and by log p per
token are compared with the order by length. nats_and_points.csv has a row per model
with
sampled answers: the rank correlation over problems between the slashes' change in the
log p of the solution and their change in accuracy.
"""

import numpy as np
import pandas as pd
import scipy

from lib import evaluation
from lib.evaluation.answer_tables import accuracy_by_problem, mean_and_bounds
from lib.evaluation.weighted_pass_rates import is_mixed, weighted_differences
from lib.profiles import load_profile
from lib.statistics.intervals import POINTS, Z_ALPHA
from lib.statistics.roc_auc import roc_values
from studies.keeping import RESULTS, keep

ENDS = ["area", "low", "high"]


def orders(scores: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and order, over the problems that are scored and answered
    under none.

    scores: log-likelihoods of solutions; answers: greedy ones. The area is 50 % by
    chance.
    """
    rows = []
    scored = scores[scores["condition"] == "none"]
    answered = answers[answers["condition"] == "none"]
    for model, of_model in answered.groupby("model", sort=False):
        solutions = scored[scored["model"] == model].set_index("problem_id")
        right = accuracy_by_problem(of_model).rename("right")
        both = solutions[["nats", "tokens"]].astype(float).join(right, how="inner")
        solved = both["right"].to_numpy() > POINTS / 2
        by_order = {
            "log p": both["nats"],
            "log p per token": both["nats"] / both["tokens"],
            "shorter": -both["tokens"],
        }
        for order, numbers in by_order.items():
            pairs = POINTS * roc_values(numbers.to_numpy(), solved)
            row = {"model": model, "order": order, "n": len(both)}
            row["solved"] = int(solved.sum())
            by_problem = pd.Series(pairs, both.index)
            rows.append(row | mean_and_bounds(ENDS, by_problem))
    return pd.DataFrame(rows)


def nats_and_points(scores: pd.DataFrame, draws: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model: Spearman's correlation over problems between the change
    of log p of the solution and that of accuracy, both by slashes.

    scores: of solutions; draws: sampled answers, as `scored_draws` has them.
    """
    rows = []
    for model, drawn in draws.groupby("model", sort=False):
        nats = scores[scores["model"] == model].pivot(
            index="problem_id", columns="condition", values="nats"
        )
        of_solution = (nats["mless"] - nats["none"]).astype(float)
        both = pd.DataFrame(
            {
                "nats": of_solution,
                "points": weighted_differences(drawn, "mless", "none"),
            }
        ).dropna()
        mixed = drawn.loc[is_mixed(drawn), "problem_id"]
        rho, p_value = scipy.stats.spearmanr(both["nats"], both["points"])
        low, high = correlation_ends(rho, len(both))
        row = {"model": model, "rho": rho, "rho_low": low, "rho_high": high}
        row |= {"p_value": p_value, "n": len(both)}
        rows.append(row | {"mixed_problems": int(both.index.isin(mixed).sum())})
    return pd.DataFrame(rows)


def correlation_ends(rho: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a rank correlation (Bonett and Wright 2000)."""
    error = np.sqrt((1 + rho**2 / 2) / (n - 3))
    center = np.arctanh(rho)
    low, high = np.tanh([center - Z_ALPHA * error, center + Z_ALPHA * error])
    return float(low), float(high)


def main() -> None:
    """Write both tables of the families' scores and answers."""
    families = load_profile("families")
    every = evaluation.scores(families)
    scores = every[every["target"] == "solution"]
    keep(RESULTS / "solved.csv", orders(scores, evaluation.answers(families)))
    draws = evaluation.draws(families)
    assert draws is not None
    keep(RESULTS / "nats_and_points.csv", nats_and_points(scores, draws))


if __name__ == "__main__":
    main()
