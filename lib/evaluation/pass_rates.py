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
probabilities. Where they do not, the two halves are counted.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.profiles import HALVES
from lib.statistics import POINTS, format_interval, interval

# The pair whose pass rates can be counted too.
COUNTABLE = ("mless", "none")
# Of log p under one condition less log p under another, over answers, in nats: above it
# counting is narrower, and a few answers decide what weights say.
LARGEST_SPREAD = 1.5
DRAW_FIELDS = ["model", "problem_id", "drawn_under", "sample", "right"]
POINT_ENDS = ["points", "low", "high"]
COUNTED_ENDS = ["counted", "counted_low", "counted_high"]
PASS_RATE_COLUMNS = [
    "model",
    "more",
    "less",
    *POINT_ENDS,
    "by",
    "n",
    "answers",
    "scored",
    *COUNTED_ENDS,
    "effective",
    "largest_weight",
    "spread",
]


def scored_draws(answers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per sampled answer: DRAW_FIELDS, and log p in nats by condition, NaN
    where it is not scored.

    answers: a row per completion, as `lib.evaluation.rows.frame` has them; scores: a
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
    right = answers["right"].astype(float)
    rates = right.groupby([answers["model"], answers["problem_id"]]).transform("mean")
    return rates.between(0, 1, inclusive="neither")


def point_differences(draws: pd.DataFrame, more: str, less: str) -> pd.Series:
    """Return the pass rate under `more` less that under `less`, in points by problem.

    draws: of one model, as `scored_draws` has them. Problems count which have two or
    more answers of each half. Weighted, but for a spread above LARGEST_SPREAD: then
    mless less none is counted, and another pair raises InputError, as do draws without
    such a problem, or with one whose answers are divided and not scored: what is scored
    alone would be a choice of problems.
    """
    draws = _of_both_halves(draws)
    if draws.empty:
        raise InputError(
            "no problem has two answers of each half: draw with --samples 2 or more"
        )
    if unscored := _count_unscored(draws, more, less):
        raise InputError(
            f"{unscored} answers that decide are not scored under {more} and {less}:"
            " score them, too"
        )
    way = _way(draws, more, less)
    if way == "weights":
        return weighted(draws, more, less)
    if way == "counting":
        return counted(draws)
    raise InputError(
        f"the weights of answers explode between {more} and {less}, under which log p"
        f" differs with a spread of {_spread(draws, more, less):.1f} nats (at most"
        f" {LARGEST_SPREAD}): answer under both and count"
    )


def weighted(draws: pd.DataFrame, more: str, less: str) -> pd.Series:
    """Return the difference of the pass rates by the answers' weights, in points by
    problem.
    """
    deciding = draws[is_divided(draws)]
    change = _weights(deciding, more) - _weights(deciding, less)
    advantage = deciding["right"].astype(float) - _baselines(deciding)
    points = POINTS * advantage * change
    by_problem = points.groupby(deciding["problem_id"], sort=False).mean()
    every_problem = pd.Index(draws["problem_id"].drop_duplicates())
    return by_problem.reindex(every_problem, fill_value=0.0)


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

    `points` are those of `point_differences`, NaN where weights explode; `by` says
    whether weights or counting gave them. `counted` is the plain difference of the
    halves, for mless less none alone. `scored` is the number of answers with weights,
    `effective` the effective number of them, (sum of weights)² over the sum of their
    squares, of the condition that has fewer; `spread` the standard deviation of log p
    under the first less log p under the second, in nats.
    """
    rows = []
    for model, of_model in draws.groupby("model", sort=False):
        whole = _of_both_halves(of_model)
        for more, less in pairs:
            if len(whole) and not _count_unscored(whole, more, less):
                row = {"model": model, "more": more, "less": less}
                rows.append(row | _estimates(whole, more, less))
    return pd.DataFrame(rows, columns=PASS_RATE_COLUMNS)


def _estimates(draws: pd.DataFrame, more: str, less: str) -> dict[str, object]:
    """Return the numbers of a row of `pass_rate_table`."""
    scored = draws[_is_scored(draws, more, less)]
    weights = np.stack([_weights(scored, more), _weights(scored, less)])  # (2, scored)
    row: dict[str, object] = {}
    row["by"] = _way(draws, more, less)
    row["n"] = draws["problem_id"].nunique()
    row["answers"] = len(draws)
    row["scored"] = len(scored)
    row["effective"] = min(map(_effective, weights))
    row["largest_weight"] = weights.max(initial=0)
    row["spread"] = _spread(draws, more, less)
    if row["by"]:
        row |= _mean_and_ends(POINT_ENDS, point_differences(draws, more, less))
    if (more, less) == COUNTABLE:
        row |= _mean_and_ends(COUNTED_ENDS, counted(draws))
    return row


def pass_rates_as_text(table: pd.DataFrame) -> str:
    """Return a line per row of `pass_rate_table`: the points, how they were found, and
    how far the weights can be trusted.
    """
    lines = []
    for row in table.to_dict("records"):
        lines.append(
            f"{row['model']}, {row['more']} less {row['less']}: {_points_as_text(row)};"
            f" n = {row['n']}, {row['answers']} answers, {row['scored']} weighted,"
            f" effective {row['effective']:.0f}, largest weight"
            f" {row['largest_weight']:.1f}, spread {row['spread']:.2f}"
        )
    return "\n".join(lines)


def _points_as_text(row: dict) -> str:
    """Return the points of a row, and how they were found."""
    if not row["by"]:
        text = "the weights explode: answer under both and count"
    else:
        text = f"{_ends_as_text(row, POINT_ENDS)} points by {row['by']}"
    if row["by"] == "counting":
        text += ", since the weights are too uneven"
    elif not np.isnan(row["counted"]):
        text += f", {_ends_as_text(row, COUNTED_ENDS)} by counting"
    return text


def _ends_as_text(row: dict, names: Sequence[str]) -> str:
    """Return an estimate and its ends, which have these names in a row."""
    estimate, low, high = names
    return format_interval(row[estimate], row[low], row[high], "+")


def _way(draws: pd.DataFrame, more: str, less: str) -> str:
    """Return how a difference is estimated: by weights, by counting or, empty, not at
    all.
    """
    if _spread(draws, more, less) <= LARGEST_SPREAD:
        return "weights"
    return "counting" if (more, less) == COUNTABLE else ""


def _spread(draws: pd.DataFrame, more: str, less: str) -> float:
    """Return the standard deviation, over answers, of the difference of log p; 0 where
    none is scored.
    """
    nats = draws.reindex(columns=[more, less])
    return float(np.nan_to_num((nats[more] - nats[less]).std()))


def _mean_and_ends(names: Sequence[str], by_problem: pd.Series) -> dict[str, float]:
    """Return the mean of a Series by problem and its ends, under three names."""
    mean = interval(by_problem, by_problem.index)
    return dict(zip(names, (mean.estimate, mean.low, mean.high), strict=True))


def _of_both_halves(draws: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to problems of which each half has two or more."""
    sizes = draws.groupby(["problem_id", "drawn_under"]).size()
    halves = sizes.unstack(fill_value=0).reindex(columns=HALVES, fill_value=0)
    has_enough = halves.min(axis=1) >= 2
    return draws[draws["problem_id"].map(has_enough)]


def _is_scored(draws: pd.DataFrame, more: str, less: str) -> pd.Series:
    """Return for each answer whether it has a weight under both conditions."""
    nats = draws.reindex(columns=list({*HALVES, more, less}))
    return nats.notna().all(axis=1)


def _count_unscored(draws: pd.DataFrame, more: str, less: str) -> int:
    """Return how many answers lack a weight that counts."""
    return int((is_divided(draws) & ~_is_scored(draws, more, less)).sum())


def _weights(draws: pd.DataFrame, condition: str) -> pd.Series:
    """Return p under a condition over p of the mixture that the answers come from."""
    mixture = np.logaddexp(draws[HALVES[0]], draws[HALVES[1]]) - np.log(2)
    return np.exp(draws[condition] - mixture)


def _effective(weights: np.ndarray) -> float:
    """Return how many answers of equal weights would tell as much; 0 without any."""
    squares = (weights**2).sum()
    return float(weights.sum() ** 2 / squares) if len(weights) else 0.0


def _baselines(draws: pd.DataFrame) -> pd.Series:
    """Return for each answer the pass rate of the problem's other answers.

    Both halves count alike, whichever the answer is from. Else its expectation would
    differ between the halves, and the estimate of their difference would shrink.
    """
    right = draws["right"].astype(float)
    half = right.groupby([draws["problem_id"], draws["drawn_under"]])
    own_total = half.transform("sum")
    own_size = half.transform("size")
    problem = right.groupby(draws["problem_id"])
    other_total = problem.transform("sum") - own_total
    other_size = problem.transform("size") - own_size

    in_own_half = (own_total - right) / (own_size - 1)
    in_other_half = other_total / other_size
    return (in_own_half + in_other_half) / 2
