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
    *COUNTED_ENDS,
    "effective",
    "largest_weight",
    "spread",
]


def scored_draws(answers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per sampled answer: DRAW_FIELDS, and log p in nats by condition.

    answers: a row per completion, as `lib.evaluation.rows.frame` has them; scores: a
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
    Weighted, but for a spread above LARGEST_SPREAD: then mless less none is counted,
    and another pair raises InputError, as do draws without such a problem.
    """
    draws = _scored(draws, more, less)
    if draws.empty:
        raise InputError(
            f"no problem has two answers of each half scored under {more} and {less}:"
            " draw with --samples 2 or more, and score all of them"
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
    change = _weights(draws, more) - _weights(draws, less)
    advantage = draws["right"].astype(float) - _baselines(draws)
    points = POINTS * advantage * change
    return points.groupby(draws["problem_id"], sort=False).mean()


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
    """Return a row of PASS_RATE_COLUMNS per model and pair of conditions that is
    scored.

    `points` are those of `point_differences`, NaN where weights explode; `by` says
    whether weights or counting gave them. `counted` is the plain difference of the
    halves, for mless less none alone. `effective` is the effective number of answers,
    (sum of weights)² over the sum of their squares, of the condition that has fewer;
    `spread` the standard deviation of log p under the first less log p under the
    second, in nats.
    """
    rows = []
    for model, of_model in draws.groupby("model", sort=False):
        for more, less in pairs:
            scored = _scored(of_model, more, less)
            if not scored.empty:
                row = {"model": model, "more": more, "less": less}
                rows.append(row | _estimates(scored, more, less))
    return pd.DataFrame(rows, columns=PASS_RATE_COLUMNS)


def _estimates(draws: pd.DataFrame, more: str, less: str) -> dict[str, object]:
    """Return the numbers of a row of `pass_rate_table`."""
    weights = np.stack([_weights(draws, more), _weights(draws, less)])  # (2, answers)
    effective = weights.sum(1) ** 2 / (weights**2).sum(1)
    row: dict[str, object] = {}
    row["by"] = _way(draws, more, less)
    row["n"] = draws["problem_id"].nunique()
    row["answers"] = len(draws)
    row["effective"] = effective.min()
    row["largest_weight"] = weights.max()
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
            f" n = {row['n']}, {row['answers']} answers, effective"
            f" {row['effective']:.0f}, largest weight {row['largest_weight']:.1f},"
            f" spread {row['spread']:.2f}"
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
    """Return the standard deviation, over answers, of the difference of log p."""
    return float((draws[more] - draws[less]).std())


def _mean_and_ends(names: Sequence[str], by_problem: pd.Series) -> dict[str, float]:
    """Return the mean of a Series by problem and its ends, under three names."""
    mean = interval(by_problem, by_problem.index)
    return dict(zip(names, (mean.estimate, mean.low, mean.high), strict=True))


def _scored(draws: pd.DataFrame, more: str, less: str) -> pd.DataFrame:
    """Return the answers to problems of which every answer is scored, and each half has
    two or more.
    """
    problems = draws["problem_id"]
    nats = draws.reindex(columns=list({*HALVES, more, less}))
    is_scored = nats.notna().all(axis=1)
    is_whole = is_scored.groupby(problems).transform("all")

    sizes = draws.groupby(["problem_id", "drawn_under"]).size()
    halves = sizes.unstack(fill_value=0).reindex(columns=HALVES, fill_value=0)
    has_enough = halves.min(axis=1) >= 2
    return draws[is_whole & problems.map(has_enough)]


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
    own_total = half.transform("sum")
    own_size = half.transform("size")
    problem = right.groupby(draws["problem_id"])
    other_total = problem.transform("sum") - own_total
    other_size = problem.transform("size") - own_size

    in_own_half = (own_total - right) / (own_size - 1)
    in_other_half = other_total / other_size
    return (in_own_half + in_other_half) / 2
