"""Whether the weights of sampled answers average 1, as those of right probabilities do.

    python -m studies.mean_weight --out runs/mean-weight

The mean weight under each condition has the expectation 1 over the answers to all
problems. Answers to problems with both right and wrong answers are scored already. Of
the others, whose weights are multiplied by 0 in the estimate, this study scores SAMPLE,
half of them drawn under either prompt and each of another problem: about one hour of
one core. Each score is kept at once, so that the same command goes on after a stop; it
computes nothing again.

Writes studies/results/mean_weight.csv, a row per condition, and prints it: the mean
weight of either kind of answers and of all with its interval over problems, and the
slope of the half on the log ratio in the sample.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib import evaluation
from lib.evaluation.likelihood import draws_wanted, score_models
from lib.evaluation.pass_rates import (
    SLOPE_ENDS,
    is_divided,
    scored_draws,
    slope_of_halves,
)
from lib.evaluation.records import DRAW_SCORE_FIELDS, shared_settings
from lib.profiles import HALVES, Profile, load_profile
from lib.prompts.problems import load_problems
from lib.statistics.importance_weighting import log_weights
from lib.statistics.intervals import Z_ALPHA, interval
from studies.keeping import RESULTS, keep

SAMPLE = 100  # answers to problems whose answers are all right, or all wrong


def sampled(answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return SAMPLE answers to problems without both right and wrong answers: each of
    another problem, half of them drawn under either prompt.
    """
    same = answers.rename(columns={"condition": "drawn_under"})
    same = same[~is_divided(answers)].sample(frac=1, random_state=seed)
    problems = same["problem_id"].drop_duplicates()[:SAMPLE]
    half_of = dict(zip(problems, np.resize(HALVES, len(problems)), strict=True))
    same = same[same["problem_id"].map(half_of) == same["drawn_under"]]
    chosen = same.drop_duplicates("problem_id")["key"]
    return answers[answers["key"].isin(chosen)]


def scored(
    profile: Profile, drawn: pd.DataFrame, problems: str, folder: Path
) -> pd.DataFrame:
    """Return drawn answers with log p under each condition of a profile, scored as far
    as `folder` lacks it.
    """
    assert profile.pass_rates
    section = profile.pass_rates.model_copy(update={"problems": problems})
    shared = shared_settings(section, profile.filler, profile.seed)
    every = load_problems(problems)

    def wanted_of(loaded):
        return draws_wanted(
            loaded, section.scoring, drawn, every, profile.filler, shared
        )

    rows = score_models(section.scoring, folder, shared, wanted_of)
    return scored_draws(drawn, pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS))


def mean_weights(
    mixed: pd.DataFrame, others: pd.DataFrame, share: float, condition: str
) -> dict[str, float]:
    """Return a row: the mean weight under a condition of answers to problems with both
    right and wrong answers, of a sample of the others, and of all.

    mixed, others: as `scored_draws` has them; share: of all answers, that of `mixed`.
    """
    row = {}
    means = []
    for kind, draws in {"mixed": mixed, "others": others}.items():
        halves = draws[list(HALVES)].to_numpy()
        weight = np.exp(log_weights(draws[[condition]].to_numpy(), halves))[:, 0]
        # Each problem has as many answers of either kind, so that one mean is enough.
        by_problem = pd.Series(weight).groupby(draws["problem_id"].to_numpy()).mean()
        mean = interval(by_problem)
        row[f"answers_{kind}"] = len(draws)
        row[f"mean_{kind}"] = mean.estimate
        row[f"low_{kind}"], row[f"high_{kind}"] = mean.low, mean.high
        means.append(mean)
    of_mixed, of_others = means
    row["mean"] = share * of_mixed.estimate + (1 - share) * of_others.estimate
    error = np.hypot(share * of_mixed.error, (1 - share) * of_others.error)
    row["low"] = row["mean"] - Z_ALPHA * error
    row["high"] = row["mean"] + Z_ALPHA * error
    return row


def table(
    draws: pd.DataFrame, others: pd.DataFrame, conditions: Sequence[str]
) -> pd.DataFrame:
    """Return a row per condition.

    draws: all answers, as `scored_draws` has them; others: the sample, scored.
    """
    decides = is_divided(draws)
    slope = dict(zip(SLOPE_ENDS, slope_of_halves(others), strict=True))
    rows = []
    for condition in conditions:
        means = mean_weights(draws[decides], others, decides.mean(), condition)
        rows.append({"condition": condition} | means | slope)
    return pd.DataFrame(rows)


def main() -> None:
    """Score the sample and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default="math500")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    families = load_profile("families")
    draws = evaluation.draws(families)
    assert families.pass_rates
    assert draws is not None
    drawn = sampled(evaluation.answers(families, "draws"), families.seed)
    others = scored(families, drawn, options.problems, options.out)
    conditions = [str(condition) for condition in families.pass_rates.conditions]
    keep(RESULTS / "mean_weight.csv", table(draws, others, conditions))


if __name__ == "__main__":
    main()
