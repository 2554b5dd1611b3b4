"""Whether the weights of sampled answers average 1, as those of right probabilities do.

    python -m studies.mean_weight --model Qwen2.5-Coder-1.5B-Instruct
    python -m studies.mean_weight --model Qwen2.5-Coder-0.5B-Instruct --out runs/weights

The mean weight under each condition has the expectation 1 over the answers to all
problems. Answers to problems with both right and wrong answers are scored already, and
the first command takes these alone. Of the others, whose weights are multiplied by 0 in
the estimate, the second one scores SAMPLE, half of them drawn under either prompt and
each of another problem: about an hour and a half of one core. Each score is kept at
once, so that the same command goes on after a stop.

Replaces the model's rows in studies/results/mean_weight.csv, one per condition, and
prints the table: the mean weight of answers to problems with both right and wrong
answers and, once the others are scored, of these and of all, with the interval over
problems; and the slope of the half on the log ratio among the others.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib.prompts.problems import load_problems
from lib.statistics.importance_weighting import log_weights
from lib.statistics.intervals import Interval, interval
from reproduction import evaluation
from reproduction.evaluation.pass_rate_tables import SLOPE_INTERVAL, slope_of_draws
from reproduction.evaluation.rows import DRAW_SCORE_FIELDS, recorded_settings
from reproduction.evaluation.score_run import ScoreRun
from reproduction.evaluation.scored_texts import draw_texts
from reproduction.evaluation.weighted_pass_rates import is_mixed, scored_draws
from reproduction.profiles import SAMPLING_CONDITIONS, Profile, load_profile
from reproduction.row_keys import draw_scores_wanted
from studies.keeping import RESULTS, keep

TABLE = RESULTS / "mean_weight.csv"
MIXED_ENDS = ["of_mixed", "of_mixed_low", "of_mixed_high"]
OTHERS_ENDS = ["of_others", "of_others_low", "of_others_high"]
ALL_ENDS = ["of_all", "of_all_low", "of_all_high"]
SAMPLE = 100  # answers to problems whose answers are all right, or all wrong


def sampled(answers: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return SAMPLE answers to problems without both right and wrong answers: each of
    another problem, half of them drawn under either prompt.
    """
    same = answers.rename(columns={"condition": "drawn_under"})
    same = same[~is_mixed(answers)].sample(frac=1, random_state=seed)
    problems = same["problem_id"].drop_duplicates()[:SAMPLE]
    half_of = dict(
        zip(problems, np.resize(SAMPLING_CONDITIONS, len(problems)), strict=True)
    )
    same = same[same["problem_id"].map(half_of) == same["drawn_under"]]
    chosen = same.drop_duplicates("problem_id")["key"]
    return answers[answers["key"].isin(chosen)]


def scored(
    profile: Profile, drawn: pd.DataFrame, problems: str, folder: Path
) -> pd.DataFrame:
    """Return drawn answers with log p under each condition of a profile, scored as far
    as `folder` lacks it.
    """
    rates = profile.pass_rates
    assert rates
    scoring = rates.scoring_settings.model_copy(update={"problems": problems})
    wanted_of = draw_scores_wanted(
        scoring,
        profile.filler,
        profile.seed,
        rates.temperature,
        drawn.to_dict("records"),
    )
    texts = {one.id: one for one in load_problems(problems)}
    settings = recorded_settings(scoring, profile.filler, profile.seed)
    run = ScoreRun(scoring, wanted_of, folder, settings)
    for loaded, format, missing in run.incomplete_models():
        run.score(loaded, draw_texts(loaded, format, profile.filler, texts, missing))
    return scored_draws(drawn, pd.DataFrame(run.rows(), columns=DRAW_SCORE_FIELDS))


def mean_weight(draws: pd.DataFrame, condition: str) -> Interval:
    """Return the mean weight of answers under a condition, with its interval over
    problems. draws: as `scored_draws` has them, as many of each problem.
    """
    halves = draws[list(SAMPLING_CONDITIONS)].to_numpy()
    weight = np.exp(log_weights(draws[[condition]].to_numpy(), halves))[:, 0]
    return interval(pd.Series(weight).groupby(draws["problem_id"].to_numpy()).mean())


def table(
    draws: pd.DataFrame, others: pd.DataFrame | None, conditions: Sequence[str]
) -> pd.DataFrame:
    """Return a row per condition.

    draws: all answers, as `scored_draws` has them; others: the sample, if it is scored.
    """
    decides = is_mixed(draws)
    rows = []
    for condition in conditions:
        mixed = mean_weight(draws[decides], condition)
        row: dict[str, object] = {"condition": condition, "answers": decides.sum()}
        row |= zip(MIXED_ENDS, (mixed.estimate, mixed.low, mixed.high), strict=True)
        if others is not None:
            of_others = mean_weight(others, condition)
            row["others"] = len(others)
            row |= _of_all(mixed, of_others, decides.mean())
            row |= zip(SLOPE_INTERVAL, slope_of_draws(others), strict=True)
        rows.append(row)
    return pd.DataFrame(rows)


def _of_all(mixed: Interval, others: Interval, share: float) -> dict[str, float]:
    """Return the mean weight of other answers and of all, of which `mixed` are a
    share.
    """
    mean = share * mixed.estimate + (1 - share) * others.estimate
    # From both intervals, which reach further to one side (MOVER: Zou and Donner 2008,
    # Stat. Med. 27:1693).
    below = np.hypot(
        share * (mixed.estimate - mixed.low),
        (1 - share) * (others.estimate - others.low),
    )
    above = np.hypot(
        share * (mixed.high - mixed.estimate),
        (1 - share) * (others.high - others.estimate),
    )
    ends = (mean, mean - below, mean + above)
    row = dict(
        zip(OTHERS_ENDS, (others.estimate, others.low, others.high), strict=True)
    )
    return row | dict(zip(ALL_ENDS, ends, strict=True))


def main() -> None:
    """Score the sample and replace the model's rows in the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--problems", default="math500")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    families = load_profile("families")
    draws = evaluation.draws(families)
    assert families.pass_rates
    assert draws is not None
    draws = draws[draws["model"] == options.model]
    others = None
    if options.out:
        answers = evaluation.answers(families, "draws")
        drawn = sampled(answers[answers["model"] == options.model], families.seed)
        others = scored(families, drawn, options.problems, options.out)
    conditions = [str(condition) for condition in families.pass_rates.conditions]
    rows = table(draws, others, conditions).assign(model=options.model)
    stored = pd.read_csv(TABLE) if TABLE.is_file() else rows[:0]
    kept = pd.concat([stored[stored["model"] != options.model], rows])
    keep(TABLE, kept.convert_dtypes())


if __name__ == "__main__":
    main()
