"""Accuracy in points under any condition, from answers drawn under two of them.

Answers are drawn at a temperature, half of them under `none` and half under `mless`;
each is graded once, and its log probability is computed under every condition. The
pass rate under condition c less that under condition d is then the mean over answers of

    (right - baseline) * (p_c - p_d) / p_mix,    p_mix = (p_none + p_mless) / 2,

where the baseline is the pass rate of the problem's other answers, which does not know
the answer itself: a control variate (Owen, Monte Carlo theory, chapters 8 and 9). The
mean is unbiased for every condition, also for masks that nobody can generate with.
Of answers that were drawn in bfloat16 and scored in float32 it is so but for the
rounding of the draw, since p_mix is then the unrounded model's (studies/bfloat16.py).
Where all answers to a problem are right, or all wrong, the first factor is 0: they
count, but no probability of theirs is needed.

    draws = scored_draws(answers, scores)  # a row per answer, log p by condition
    table = pass_rate_table(draws, [("mless", "none")])  # in points, per model

Weights say more than counts as long as both conditions give an answer like
probabilities. Where a few answers take most of the weight, no number is told. Every
number stands beside what it rests on: `pass_rate_table`.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.evaluation.answer_tables import mean_and_ends
from lib.profiles import HALVES
from lib.statistics import importance_weighting
from lib.statistics.intervals import POINTS, interval

# The pair whose pass rates can be counted too.
COUNTABLE = ("mless", "none")
# Of the answers that decide, as many of equal weights have to tell as much as they do.
# In simulations with 20 to 240 divided problems the interval covers 92 to 98 % where
# half of them remain, 90 to 95 % where a third does and 80 % where a tenth does (log
# ratios like |Y| to the power of 1.6). How far log p varies does not tell: with a
# spread of 0.8 nats it covers 81 % for these ratios and 97 % for normal ones.
LEAST_EFFECTIVE = 0.5
DRAW_FIELDS = ["model", "problem_id", "drawn_under", "sample", "right", "finish_reason"]
POINT_ENDS = ["points", "low", "high"]
COUNTED_ENDS = ["counted", "counted_low", "counted_high"]
SLOPE_ENDS = ["slope", "slope_low", "slope_high"]
PASS_RATE_COLUMNS = [
    "model",
    "more",
    "less",
    *POINT_ENDS,
    "n",
    "divided",
    "answers",
    "effective",
    "largest_weight",
    "spread",
    *COUNTED_ENDS,
    *SLOPE_ENDS,
    "cut_none",
    "cut_mless",
]


def scored_draws(answers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per sampled answer: DRAW_FIELDS, and log p in nats by condition, NaN
    where it is not scored.

    answers: a row per completion, as `lib.evaluation.records.frame` has them; scores: a
    row per answer and condition, which `answer` names by its completion's key.
    """
    drawn = answers.rename(columns={"condition": "drawn_under"})
    drawn = drawn.set_index("key")[DRAW_FIELDS]
    nats = scores.pivot(index="answer", columns="condition", values="nats")
    return drawn.join(nats).reset_index(drop=True)


def is_divided(answers: pd.DataFrame) -> pd.Series:
    """Return for each answer whether those to its problem, by the same model, are
    partly right and partly wrong: only then does its weight count.
    """
    problem = answers.groupby(["model", "problem_id"]).ngroup().to_numpy()
    right = answers["right"].to_numpy(dtype=float)
    mixed = importance_weighting.mixed(right, problem)
    return pd.Series(mixed, index=answers.index)


def point_differences(draws: pd.DataFrame, more: str, less: str) -> pd.Series:
    """Return the pass rate under `more` less that under `less`, in points by problem.

    draws: of one model, as `scored_draws` has them. Problems count which have two or
    more answers of each half. Raises InputError where less than LEAST_EFFECTIVE of the
    answers that decide are effective, and for draws without such a problem, or with one
    whose answers are divided and not scored: what is scored alone would be a choice of
    problems.
    """
    draws = _of_both_halves(draws)
    if draws.empty:
        raise InputError(
            "no problem has two answers of each half: draw with --samples 2 or more"
        )
    logs = _log_weights(draws[is_divided(draws)], more, less)
    if unscored := logs.isna().any(axis=1).sum():
        raise InputError(
            f"{unscored} answers that decide are not scored under {more} and {less}:"
            " score them, too"
        )
    effective = importance_weighting.effective_sample_size(logs.to_numpy())
    if effective < LEAST_EFFECTIVE * len(logs):
        raise InputError(
            f"the weights of answers explode between {more} and {less}: {effective:.0f}"
            f" of {len(logs)} answers are effective, less than"
            f" {LEAST_EFFECTIVE:.0%}: answer under both and count"
        )
    return weighted(draws, more, less)


def weighted(draws: pd.DataFrame, more: str, less: str) -> pd.Series:
    """Return the importance-weighted difference of the pass rates, in points by
    problem.
    """
    deciding = draws[is_divided(draws)]
    problem, divided = pd.factorize(deciding["problem_id"])
    shares = importance_weighting.differences(
        deciding["right"].to_numpy(dtype=float),
        _log_weights(deciding, less, more).to_numpy(),
        deciding["drawn_under"].eq(HALVES[1]).to_numpy(dtype=int),
        problem,
    )
    points = pd.Series(POINTS * shares, index=divided)
    every_problem = pd.Index(draws["problem_id"].drop_duplicates())
    return points.reindex(every_problem, fill_value=0.0)


def counted(draws: pd.DataFrame) -> pd.Series:
    """Return the share of right answers under mless less that under none, in points by
    problem: what the two halves say without weights.
    """
    halves = draws.groupby(["problem_id", "drawn_under"], sort=False)["right"].mean()
    rates = halves.astype(float).unstack()
    return POINTS * (rates["mless"] - rates["none"])


def pass_rate_table(
    draws: pd.DataFrame, pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Return a row of PASS_RATE_COLUMNS per model and pair of conditions under which
    all answers are scored that decide.

    `points` are those of `point_differences`, NaN where weights explode. `counted` is
    the plain difference of the halves, for mless less none alone. What weights rest on:
    of n problems `divided` have right and wrong answers, `answers` in all; `effective`
    is the effective number of these, (sum of weights)² over the sum of their squares,
    of the condition that has fewer, `largest_weight` the largest under either, `spread`
    the standard deviation of log p under the first less log p under the second, in
    nats. `slope` is that of `slope_of_halves`; `cut_none` and `cut_mless` are the % of
    each half's answers that the token limit cut.
    """
    rows = []
    for model, of_model in draws.groupby("model", sort=False):
        whole = _of_both_halves(of_model)
        if whole.empty:
            continue
        deciding = whole[is_divided(whole)]
        checks = _checks(whole)
        for more, less in pairs:
            logs = _log_weights(deciding, more, less)
            if logs.notna().all(axis=None):
                row = {"model": model, "more": more, "less": less, **checks}
                rows.append(row | _estimates(whole, logs, more, less))
    return pd.DataFrame(rows, columns=PASS_RATE_COLUMNS)


def _checks(draws: pd.DataFrame) -> dict[str, object]:
    """Return what a row of `pass_rate_table` says of the draws, whatever the pair."""
    deciding = draws[is_divided(draws)]
    row: dict[str, object] = {"n": draws["problem_id"].nunique()}
    row["divided"] = deciding["problem_id"].nunique()
    row["answers"] = len(deciding)
    row |= zip(SLOPE_ENDS, slope_of_halves(draws), strict=True)
    is_cut = draws["finish_reason"] == "length"
    for half, share in is_cut.groupby(draws["drawn_under"]).mean().items():
        row[f"cut_{half}"] = POINTS * share
    return row


def _estimates(
    draws: pd.DataFrame, logs: pd.DataFrame, more: str, less: str
) -> dict[str, object]:
    """Return what a row of `pass_rate_table` says of a pair; logs: `_log_weights`."""
    effective = importance_weighting.effective_sample_size(logs.to_numpy())
    largest = np.exp(logs.to_numpy().max(initial=-np.inf))
    spread = (logs[more] - logs[less]).std()
    row: dict[str, object] = {"effective": effective}
    row["largest_weight"] = float(largest)
    row["spread"] = float(np.nan_to_num(spread))
    if effective >= LEAST_EFFECTIVE * len(logs):
        row |= mean_and_ends(POINT_ENDS, weighted(draws, more, less), "mean")
    if (more, less) == COUNTABLE:
        row |= mean_and_ends(COUNTED_ENDS, counted(draws), "mean")
    return row


def slope_of_halves(draws: pd.DataFrame) -> tuple[float, float, float]:
    """Return the slope of the half that an answer is from on log p under mless less log
    p under none, with the ends of its interval over problems.

    A logistic regression over all answers that are scored. Given an answer, the chance
    that it was drawn under mless is p_mless / (p_none + p_mless), so that the slope is
    1 where answers were drawn with the chances that they are scored with, which weights
    presuppose. NaN where no half, or one alone, is scored, of too few problems, and
    where the ratios alone tell the halves apart: no slope is steep enough for that.
    """
    nats = draws.reindex(columns=list(HALVES))
    ratio = (nats["mless"] - nats["none"]).to_numpy()
    is_scored = ~np.isnan(ratio)
    scored = draws[is_scored]
    under_mless = scored["drawn_under"].eq("mless").to_numpy()
    slopes = importance_weighting.slope_values(ratio[is_scored], under_mless)
    enough = importance_weighting.MIN_PROBLEMS
    if np.isnan(slopes).any() or scored["problem_id"].nunique() < enough:
        return np.nan, np.nan, np.nan
    mean = interval(slopes, scored["problem_id"])
    return mean.estimate, mean.low, mean.high


def _of_both_halves(draws: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to problems of which each half has two or more, and as many as
    the other: weights are over an even mixture.
    """
    sizes = draws.groupby(["problem_id", "drawn_under"]).size()
    halves = sizes.unstack(fill_value=0).reindex(columns=HALVES, fill_value=0)
    is_even = halves.min(axis=1) == halves.max(axis=1)
    has_enough = is_even & (halves.min(axis=1) >= 2)
    return draws[draws["problem_id"].map(has_enough)]


def _log_weights(draws: pd.DataFrame, more: str, less: str) -> pd.DataFrame:
    """Return log p under two conditions minus log p of the mixture that the answers
    come from; NaN for an answer that is not scored.
    """
    nats = draws.reindex(columns=list({*HALVES, more, less}))
    pair = [more, less]
    logs = importance_weighting.log_weights(
        nats[pair].to_numpy(), nats[list(HALVES)].to_numpy()
    )
    return pd.DataFrame(logs, index=draws.index, columns=pair)
