"""Tabulate importance-weighted differences in pass rate, with the diagnostics of their
weights.

`draws` is the table of `reproduction.evaluation.weighted_pass_rates.scored_draws`,
which also defines the terms *half* and *mixed*.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.statistics import importance_weighting
from lib.statistics.importance_weighting import MIN_MIXED_PROBLEMS
from lib.statistics.intervals import POINTS, interval
from reproduction.evaluation.answer_tables import mean_and_bounds
from reproduction.evaluation.rows import is_truncated
from reproduction.evaluation.weighted_pass_rates import (
    balanced_draws,
    is_mixed,
    is_too_uneven,
    log_weights_of_pair,
    observed_differences,
    weighted_differences,
)
from reproduction.profiles import SAMPLING_CONDITIONS

# The treatment and the reference under both of which answers are sampled, so that their
# pass rates can also be compared without weights. SAMPLING_CONDITIONS has the reverse
# order.
SAMPLED_PAIR = ("mless", "none")
POINTS_INTERVAL = ["points", "low", "high"]
OBSERVED_INTERVAL = ["observed", "observed_low", "observed_high"]
SLOPE_INTERVAL = ["slope", "slope_low", "slope_high"]
PASS_RATE_COLUMNS = [
    "model",
    "treatment",
    "reference",
    *POINTS_INTERVAL,
    "n",
    "mixed_problems",
    "mixed_answers",
    "effective_sample_size",
    "largest_weight",
    "log_ratio_sd",
    *OBSERVED_INTERVAL,
    *SLOPE_INTERVAL,
    "cut_none",
    "cut_mless",
]


def pass_rate_table(
    draws: pd.DataFrame, pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Return the weighted differences in pass rate with their diagnostics.

    The table has one row of PASS_RATE_COLUMNS per model and pair (treatment,
    reference), unless an answer to a mixed problem has no log-likelihood under one of
    the pair, none or mless.

    - points: mean of `weighted_differences`; NaN if a condition of the pair sampled
      nothing and effective_sample_size is below MIN_EFFECTIVE_SHARE of mixed_answers.
      Its interval is NaN if fewer problems are mixed than an interval needs
    - n, mixed_problems: number of problems, and of those that are mixed
    - mixed_answers: number of answers to the mixed problems
    - effective_sample_size: Kish's, (sum of weights)² / (sum of squared weights), of
      these answers, under the condition for which it is smaller
    - largest_weight: of one of these answers, under either condition
    - log_ratio_sd: standard deviation of the log-likelihood ratio, in nats
    - observed: mean of `observed_differences`; for SAMPLED_PAIR only
    - slope: `slope_of_draws`
    - cut_none, cut_mless: % of each half's answers that a limit cut off
    """
    rows = []
    for model, of_model in draws.groupby("model", sort=False):
        balanced = balanced_draws(of_model)
        if balanced.empty:
            continue
        mixed = balanced[is_mixed(balanced)]
        diagnostics = _diagnostics(balanced, mixed)
        for treatment, reference in pairs:
            log_weights = log_weights_of_pair(mixed, treatment, reference)
            if log_weights.notna().all(axis=None):
                row = {"model": model, "treatment": treatment, "reference": reference}
                estimates = _estimates(balanced, log_weights, treatment, reference)
                if diagnostics["mixed_problems"] < MIN_MIXED_PROBLEMS:
                    estimates |= dict.fromkeys(POINTS_INTERVAL[1:], np.nan)
                rows.append(row | diagnostics | estimates)
    return pd.DataFrame(rows, columns=PASS_RATE_COLUMNS)


def _diagnostics(draws: pd.DataFrame, mixed: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of `pass_rate_table` that are the same for every pair."""
    row: dict[str, Any] = {"n": draws["problem_id"].nunique()}
    row["mixed_problems"] = mixed["problem_id"].nunique()
    row["mixed_answers"] = len(mixed)
    row |= zip(SLOPE_INTERVAL, slope_of_draws(draws), strict=True)
    for half, share in is_truncated(draws).groupby(draws["drawn_under"]).mean().items():
        row[f"cut_{half}"] = POINTS * share
    return row


def _estimates(
    draws: pd.DataFrame, log_weights: pd.DataFrame, treatment: str, reference: str
) -> dict[str, object]:
    """Return the columns of `pass_rate_table` that depend on the pair."""
    effective = importance_weighting.effective_sample_size(log_weights.to_numpy())
    largest = np.exp(log_weights.to_numpy().max(initial=-np.inf))
    log_ratio_sd = (log_weights[treatment] - log_weights[reference]).std()
    row: dict[str, object] = {"effective_sample_size": effective}
    row["largest_weight"] = float(largest)
    row["log_ratio_sd"] = float(np.nan_to_num(log_ratio_sd))
    if not is_too_uneven(log_weights):
        points = weighted_differences(draws, treatment, reference)
        row |= mean_and_bounds(POINTS_INTERVAL, points, "mean")
    if (treatment, reference) == SAMPLED_PAIR:
        row |= mean_and_bounds(OBSERVED_INTERVAL, observed_differences(draws), "mean")
    return row


def slope_of_draws(draws: pd.DataFrame) -> tuple[float, float, float]:
    """Return the calibration slope of the log-likelihood ratio, and both bounds of its
    95 % interval.

    This is the slope of a logistic regression, over all scored answers, of the half
    that an answer belongs to on log p_mless - log p_none. Given an answer, the
    probability that it was sampled under mless is p_mless / (p_none + p_mless). So the
    slope is 1 if answers were sampled with the likelihoods that they are scored with,
    as the weights assume. The interval is clustered by problem. All three are NaN if a
    half has no scored answer, if too few problems are scored, or if the ratio separates
    the halves perfectly, because the slope is then infinite.
    """
    nats = draws.reindex(columns=list(SAMPLING_CONDITIONS))
    log_ratio = (nats["mless"] - nats["none"]).to_numpy()
    is_scored = np.isfinite(log_ratio)
    scored = draws[is_scored]
    under_mless = scored["drawn_under"].eq("mless").to_numpy()
    slopes = importance_weighting.slope_values(log_ratio[is_scored], under_mless)
    min_problems = importance_weighting.MIN_PROBLEMS
    if np.isnan(slopes).any() or scored["problem_id"].nunique() < min_problems:
        return np.nan, np.nan, np.nan
    mean = interval(slopes, scored["problem_id"])
    return mean.estimate, mean.low, mean.high
