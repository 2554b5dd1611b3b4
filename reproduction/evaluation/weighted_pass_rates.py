"""Estimate differences in pass rate between prompt conditions by importance sampling.

Half of the answers to each problem are sampled under the condition `none`, the other
half under `mless`; these are the two *halves*. Each answer is graded once, and its
log-likelihood is computed under every condition. The pass rate under a condition c (the
treatment) minus that under a condition d (the reference) is estimated by the mean over
answers of

    (right - baseline) * (p_c - p_d) / p_mix,    p_mix = (p_none + p_mless) / 2.

The baseline is the mean of the pass rates of both halves of the same problem, without
this answer. It is a leave-one-out control variate (Owen, Monte Carlo theory, chapters 8
and 9). The estimate is unbiased for every condition, including attention masks under
which no text can be generated. If answers are sampled in bfloat16 and scored in
float32, it is only approximately unbiased, because they come from a slightly different
distribution than p_mix states.

A problem is *mixed* if it has both right and wrong answers. The other problems
contribute a difference of 0, so their answers need no log-likelihoods.

    draws = scored_draws(answers, scores)  # one row per answer
    differences = weighted_differences(draws, "mless", "none")  # points by problem

Importance weighting is more precise than comparing the halves as long as both
conditions give the answers similar likelihoods, and never much less precise. A
condition under which no answer was sampled may have a few large weights. If the
effective sample size of a pair with such a condition is too small, no weighted estimate
is reported. `reproduction.evaluation.pass_rate_tables` has the diagnostics.
"""

from collections.abc import Sequence

import pandas as pd

from lib.errors import InputError
from lib.statistics import importance_weighting
from lib.statistics.importance_weighting import MIN_MIXED_PROBLEMS
from lib.statistics.intervals import POINTS
from reproduction.evaluation.rows import DRAW_SCORE_FIELDS
from reproduction.profiles import SAMPLING_CONDITIONS

# The smallest accepted effective sample size, as a share of the answers to mixed
# problems, under either condition of a pair if one of the two sampled none of them.
# Weights under the sampled conditions are at most 2 and average 1, so that they have
# about this share or more. In simulations with 20 to 240 mixed problems and
# heavy-tailed log ratios, 95 % intervals covered the true difference in 92 to 98 % of
# runs at a share of 1/2, in 90 to 95 % at 1/3 and in 80 % at 1/10. The standard
# deviation of the log ratios could not replace this limit: at 0.8 nats the coverage was
# 81 % with these ratios and 97 % with normal ones.
MIN_EFFECTIVE_SHARE = 0.5
DRAW_FIELDS = ["model", "problem_id", "drawn_under", "sample", "right", "finish_reason"]


def scored_draws(answers: pd.DataFrame, scores: Sequence[dict]) -> pd.DataFrame:
    """Join sampled answers with their log-likelihoods, one row per answer.

    answers: one row per completion, from `reproduction.evaluation.rows.frame`. scores:
    the rows of scores.jsonl, one per answer and condition; their field `answer` is the
    completion's key. The result has DRAW_FIELDS and one column of log-likelihoods per
    condition, in nats, NaN if the answer was not scored under it.
    """
    drawn = answers.rename(columns={"condition": "drawn_under"})
    drawn = drawn.set_index("key")[DRAW_FIELDS]
    nats = pd.DataFrame(scores, columns=DRAW_SCORE_FIELDS).pivot(
        index="answer", columns="condition", values="nats"
    )
    return drawn.join(nats).reset_index(drop=True)


def is_mixed(answers: pd.DataFrame) -> pd.Series:
    """Return for each answer whether its model answered the problem both rightly and
    wrongly. Only these answers affect the weighted estimate.
    """
    problem = [answers["model"], answers["problem_id"]]
    rates = answers["right"].astype(float).groupby(problem).transform("mean")
    return rates.between(0, 1, inclusive="neither")


def checked_weighted_differences(
    draws: pd.DataFrame, treatment: str, reference: str
) -> pd.Series:
    """Return the importance-weighted difference in pass rate, treatment minus
    reference, in points by problem, if the draws support an estimate.

    draws: rows of one model from `scored_draws`. Only problems with equally many
    answers in both halves, and at least two in each, are used. Raises InputError if
    there is no such problem, if an answer to a mixed problem has no log-likelihood
    (because leaving it out would select problems), if fewer problems are mixed than an
    interval needs, or if a condition of the pair sampled nothing and the effective
    sample size under either is below MIN_EFFECTIVE_SHARE of the answers to mixed
    problems.
    """
    draws = balanced_draws(draws)
    if draws.empty:
        raise InputError(
            "no problem has equally many answers of both halves, at least two of each:"
            " draw with --samples 2 or more, and let the run end"
        )
    mixed = draws[is_mixed(draws)]
    _require_log_likelihoods(mixed, [treatment, reference])
    log_weights = log_weights_of_pair(mixed, treatment, reference)
    mixed_problems = mixed["problem_id"].nunique()
    if mixed_problems < MIN_MIXED_PROBLEMS:
        raise InputError(
            f"{mixed_problems} problems have both right and wrong answers: an interval"
            f" needs {MIN_MIXED_PROBLEMS}, so answer more problems"
        )
    if is_too_uneven(log_weights):
        effective = importance_weighting.effective_sample_size(log_weights.to_numpy())
        raise InputError(
            f"the importance weights for {treatment} minus {reference} are too uneven:"
            f" the effective sample size is {effective:.0f} of {len(log_weights)}"
            f" answers, less than {MIN_EFFECTIVE_SHARE:.0%}; where texts can be"
            " generated under both conditions, compare sampled answers instead"
        )
    return weighted_differences(draws, treatment, reference)


def _require_log_likelihoods(mixed: pd.DataFrame, pair: Sequence[str]) -> None:
    """Raise InputError if an answer to a mixed problem has no log-likelihood under one
    of the conditions that the weights of a pair require.
    """
    required = dict.fromkeys([*pair, *SAMPLING_CONDITIONS])
    is_missing = mixed.reindex(columns=list(required)).isna()
    if unscored := is_missing.any(axis=1).sum():
        conditions = " or ".join(is_missing.columns[is_missing.any()])
        raise InputError(
            f"{unscored} answers to problems with both right and wrong answers have no"
            f" log-likelihood under {conditions}, which the weights require: score them"
        )


def weighted_differences(
    draws: pd.DataFrame, treatment: str, reference: str
) -> pd.Series:
    """Return the importance-weighted difference in pass rate, treatment minus
    reference, in points by problem, without any check of the draws.
    """
    mixed = draws[is_mixed(draws)]
    problem, mixed_problems = pd.factorize(mixed["problem_id"])
    shares = importance_weighting.differences(
        mixed["right"].to_numpy(dtype=float),
        # `differences` are second minus first, so the reference comes first.
        log_weights_of_pair(mixed, reference, treatment).to_numpy(),
        mixed["drawn_under"].eq("mless").to_numpy(dtype=int),
        problem,
    )
    points = pd.Series(POINTS * shares, index=mixed_problems)
    every_problem = pd.Index(draws["problem_id"].drop_duplicates())
    return points.reindex(every_problem, fill_value=0.0)


def observed_differences(draws: pd.DataFrame) -> pd.Series:
    """Return the unweighted difference in pass rate between the halves, mless minus
    none, in points by problem.
    """
    halves = draws.groupby(["problem_id", "drawn_under"], sort=False)["right"].mean()
    rates = halves.astype(float).unstack()
    return POINTS * (rates["mless"] - rates["none"])


def is_too_uneven(log_weights: pd.DataFrame) -> bool:
    """Return whether one of two conditions sampled no answer, and the effective sample
    size under either is below MIN_EFFECTIVE_SHARE of the answers.

    Between the two sampled conditions the weighted estimate is never much less precise
    than `observed_differences`, so there is no limit.
    """
    if set(log_weights).issubset(SAMPLING_CONDITIONS):
        return False
    effective = importance_weighting.effective_sample_size(log_weights.to_numpy())
    return effective < MIN_EFFECTIVE_SHARE * len(log_weights)


def balanced_draws(draws: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to problems with equally many answers, two or more, in both
    halves. The weights assume that p_mix is an even mixture.
    """
    sizes = draws.groupby(["problem_id", "drawn_under"]).size()
    halves = sizes.unstack(fill_value=0).reindex(
        columns=SAMPLING_CONDITIONS, fill_value=0
    )
    fewest = halves.min(axis=1)
    has_enough = (fewest == halves.max(axis=1)) & (fewest >= 2)
    return draws[draws["problem_id"].map(has_enough)]


def log_weights_of_pair(draws: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Return the log importance weights log(p / p_mix) of each answer under two
    conditions, a column each; NaN if a log-likelihood is missing.
    """
    pair = [first, second]
    nats = draws.reindex(columns=list({*SAMPLING_CONDITIONS, *pair}))
    log_weights = importance_weighting.log_weights(
        nats[pair].to_numpy(), nats[list(SAMPLING_CONDITIONS)].to_numpy()
    )
    return pd.DataFrame(log_weights, index=draws.index, columns=pair)
