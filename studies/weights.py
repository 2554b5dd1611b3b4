"""What a weighted pass rate rests on: the checks that belong beside its number.

    python -m studies.weights

Only answers to problems that are partly right and partly wrong have a weight that
counts, so the effective number and the largest weight are of these. The weights
presuppose that an answer was drawn with the probabilities that it is scored with:
given an answer, the chance that it comes from the half under `mless` is then
p_mless / (p_none + p_mless), so that a logistic regression of the half on the log ratio
has slope 1.

Writes studies/results/weights.csv and prints it: a row per model and pair of
conditions.
"""

from collections.abc import Iterator

import pandas as pd

from lib import evaluation
from lib.evaluation.of_profile import stored_answers
from lib.evaluation.pass_rates import is_divided, pass_rate_table
from lib.profiles import load_profile
from lib.statistics import POINTS, interval, logistic_slopes
from studies.keeping import RESULTS, keep

PAIRS = [
    ("mless", "none"),
    ("mless", "hidden-from-layer-1"),
    ("layer-1-only", "gap"),
    ("mful", "none"),
    ("arm", "none"),
]


def slope_of_halves(draws: pd.DataFrame) -> dict[str, float]:
    """Return the slope of the half on log p under mless less log p under none, over all
    answers that are scored, with its interval over problems.
    """
    scored = draws.dropna(subset=["mless", "none"])
    ratio = (scored["mless"] - scored["none"]).to_numpy()
    under_mless = (scored["drawn_under"] == "mless").to_numpy()
    slopes, _ = logistic_slopes(ratio, under_mless)
    mean = interval(slopes, scored["problem_id"])
    return {
        "slope": mean.estimate,
        "slope_low": mean.low,
        "slope_high": mean.high,
        "slope_answers": len(scored),
    }


def halves(answers: pd.DataFrame) -> dict[str, float]:
    """Return the % of answers that are right, and of those that the token limit cut,
    under either condition, and in how many problems it cut them all.
    """
    is_cut = answers["finish_reason"] != "stop"
    cut = POINTS * is_cut.groupby(answers["condition"]).mean()
    right = POINTS * answers.groupby("condition")["right"].mean()
    all_cut = is_cut.groupby(answers["problem_id"]).all()
    return {
        "right_none": right["none"],
        "right_mless": right["mless"],
        "cut_none": cut["none"],
        "cut_mless": cut["mless"],
        "all_cut": int(all_cut.sum()),
    }


def checks(draws: pd.DataFrame, answers: pd.DataFrame) -> Iterator[dict]:
    """Yield a row per model and pair of PAIRS that is scored.

    draws: as `lib.evaluation.pass_rates.scored_draws` has them; answers: the same ones,
    as they were drawn.
    """
    for model, of_model in draws.groupby("model", sort=False):
        of_all = {
            **slope_of_halves(of_model),
            **halves(answers[answers["model"] == model]),
        }
        deciding = of_model[is_divided(of_model)]
        table = pass_rate_table(of_model, PAIRS)
        divided = pass_rate_table(deciding, PAIRS)
        columns = ["n", "answers", "effective", "largest_weight", "spread"]
        told = table[["model", "more", "less", "n", "points", "low", "high"]]
        beside = divided[columns].rename(columns={"n": "divided"})
        for row in told.join(beside).to_dict("records"):
            yield row | of_all


def main() -> None:
    """Write the table of the families' sampled answers."""
    families = load_profile("families")
    draws = evaluation.stored_draws(families)
    assert draws is not None
    table = pd.DataFrame(checks(draws, stored_answers(families, "draws")))
    keep(RESULTS / "weights.csv", table)
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
