"""Accuracy in points under any condition, from answers drawn under two of them.

Answers are drawn at a temperature, half of them under `none` and half under `mless`;
each is graded once, and its log probability is computed under every condition. The
pass rate under condition c less that under condition d is then the mean over answers of

    (right - baseline) * (p_c - p_d) / p_mix,    p_mix = (p_none + p_mless) / 2,

where the baseline is the pass rate of the problem's other answers, which does not know
the answer itself: a control variate (Owen, Monte Carlo theory, chapters 8 and 9). The
mean is unbiased for every condition, also for masks that nobody can generate with.

    draws = scored_draws(answers, scores)  # a row per answer, log p by condition
    table = pass_rate_table(draws, [("mless", "none")])  # in points, per model
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.statistics import POINTS, interval

HALVES = ("none", "mless")  # what answers are drawn under
LARGEST_SPREAD = 1.5  # of log p_mless - log p_none: above it counting is narrower
DRAW_FIELDS = ["model", "problem_id", "drawn_under", "sample", "right"]
POINT_ENDS = ["points", "low", "high"]
COUNTED_ENDS = ["counted", "counted_low", "counted_high"]
PASS_RATE_COLUMNS = [
    "model",
    "more",
    "less",
    *POINT_ENDS,
    "n",
    "answers",
    *COUNTED_ENDS,
]
PASS_RATE_COLUMNS += ["effective", "largest_weight", "spread"]


def scored_draws(answers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per drawn answer: DRAW_FIELDS, and log p in nats under each
    condition.

    answers: a row per completion, as `lib.evaluation.store.frame` has them; scores: a
    row per answer and condition, which `answer` names by its completion's key.
    """
    drawn = answers.rename(columns={"condition": "drawn_under"})
    drawn = drawn.set_index("key")[DRAW_FIELDS]
    nats = scores.pivot(index="answer", columns="condition", values="nats")
    return drawn.join(nats, how="inner").reset_index(drop=True)


def point_differences(draws: pd.DataFrame, more: str, less: str) -> pd.Series:
    """Return the pass rate under `more` less that under `less`, in points by problem.

    draws: of one model, as `scored_draws` has them. Problems count whose answers are
    all scored under both conditions and which have two or more answers of each half.
    """
    draws = _scored(draws, more, less)
    change = _weights(draws, more) - _weights(draws, less)
    values = POINTS * (draws["right"].astype(float) - _baselines(draws)) * change
    return values.groupby(draws["problem_id"], sort=False).mean()


def counted(draws: pd.DataFrame) -> pd.Series:
    """Return the share of right answers under mless less that under none, in points by
    problem: what the two halves say without weights.
    """
    halves = draws.groupby(["problem_id", "drawn_under"], sort=False)["right"].mean()
    rates = halves.astype(float).unstack()
    return POINTS * (rates[HALVES[1]] - rates[HALVES[0]])


def pass_rate_table(
    draws: pd.DataFrame, pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Return a row of PASS_RATE_COLUMNS per model and pair of conditions that is
    scored.

    `points` are weighted, `counted` the plain difference of the halves, for mless less
    none alone. `effective` is the effective number of answers, (sum of weights)² over
    the sum of their squares, of the condition that has fewer; `spread` the standard
    deviation of log p under the first less log p under the second, in nats.
    """
    rows = []
    for model, of_model in draws.groupby("model", sort=False):
        for more, less in pairs:
            if {more, less} <= set(of_model.columns):
                row = {"model": model, "more": more, "less": less}
                rows.append(row | _estimates(of_model, more, less))
    return pd.DataFrame(rows, columns=PASS_RATE_COLUMNS)


def _estimates(draws: pd.DataFrame, more: str, less: str) -> dict[str, float]:
    """Return the numbers of a row of `pass_rate_table`."""
    draws = _scored(draws, more, less)
    weights = np.stack([_weights(draws, more), _weights(draws, less)])  # (2, answers)
    effective = weights.sum(1) ** 2 / (weights**2).sum(1)
    row = _mean_and_ends(POINT_ENDS, point_differences(draws, more, less))
    if (more, less) == HALVES[::-1]:
        row |= _mean_and_ends(COUNTED_ENDS, counted(draws))
    return row | {
        "n": draws["problem_id"].nunique(),
        "answers": len(draws),
        "effective": effective.min(),
        "largest_weight": weights.max(),
        "spread": (draws[more] - draws[less]).std(),
    }


def _mean_and_ends(names: Sequence[str], by_problem: pd.Series) -> dict[str, float]:
    """Return the mean of a Series by problem and its ends, under three names."""
    mean = interval(by_problem, by_problem.index)
    return dict(zip(names, (mean.estimate, mean.low, mean.high), strict=True))


def _scored(draws: pd.DataFrame, more: str, less: str) -> pd.DataFrame:
    """Return the answers to problems of which every answer is scored, and each half has
    two or more; raises InputError where there is none.
    """
    known = draws[[*HALVES, more, less]].notna().all(axis=1)
    whole = known.groupby(draws["problem_id"]).transform("all")
    halves = draws.groupby(["problem_id", "drawn_under"]).size().unstack(fill_value=0)
    enough = halves.reindex(columns=HALVES, fill_value=0).min(axis=1) >= 2
    scored = draws[whole & draws["problem_id"].map(enough)]
    if scored.empty:
        raise InputError(
            f"no problem has two answers of each half scored under {more} and {less}:"
            " draw with --samples 2 or more, and score all of them"
        )
    return scored


def _weights(draws: pd.DataFrame, condition: str) -> pd.Series:
    """Return p under a condition over p of the mixture that the answers come from."""
    mixture = np.logaddexp(draws[HALVES[0]], draws[HALVES[1]]) - np.log(2)
    return np.exp(draws[condition] - mixture)


def _baselines(draws: pd.DataFrame) -> pd.Series:
    """Return for each answer the pass rate of the problem's other answers.

    Both halves count alike, whichever the answer is from. Else its expectation would
    differ between the halves, and the estimate of their difference would shrink.
    """
    right = draws["right"].astype(float)
    half = right.groupby([draws["problem_id"], draws["drawn_under"]])
    own_total, own_size = half.transform("sum"), half.transform("size")
    problem = right.groupby(draws["problem_id"])
    other_total = problem.transform("sum") - own_total
    other_size = problem.transform("size") - own_size
    return ((own_total - right) / (own_size - 1) + other_total / other_size) / 2
