"""The difference in accuracy between two prompts, from one importance-weighted sample.

Half of the answers to each problem are drawn under a first prompt and half under a
second one, so that they are a sample from the even mixture of both (the balance
heuristic: Veach and Guibas 1995, SIGGRAPH; Owen and Zhou 2000, JASA 95:135). The
accuracy under the second prompt minus that under the first is estimated by the mean of

    (right - baseline) * (p_second - p_first) / p_mixture.

The baseline is a control variate: the pass rate of the other answers to the problem,
the mean of both prompts' (see `baselines`).
The factor behind it is, twice over, the expectation given the text of a label that is 1
if the second prompt drew it and -1 if the first did. So the estimate counts right
answers with this expectation in the label's place (Rao-Blackwellisation). If no text
can be drawn under both prompts, it is the difference of the counted pass rates.

    result = accuracy_difference(right, log_p, drawn_from, problem)
    result.difference.estimate, result.difference.low, result.difference.high

No estimate is refused here: whether log p is that of the draws, the caller has to read
from the slope and the mean weights. docs/weighted_pass_rates.md says how, what the
estimate presupposes, and when not to use it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lib.statistics.intervals import POINTS, Interval, interval

MIN_PROBLEMS = 5  # with a likelihood, below which no slope is estimated
# Problems with both right and wrong answers, below which a difference has no interval:
# in simulations intervals covered the truth in 75 % of samples with one or two such
# problems, in 91 % with three or four, and in about 95 % with five or more
# (studies/weights_simulated.py). Twice as many allow for longer tails than simulated.
MIN_MIXED_PROBLEMS = 10
MOST_STEPS = 50  # of Newton's method, which needs about 7

NO_MEAN = Interval(np.nan, np.nan, np.nan, np.nan, 0)  # there are too few problems


@dataclass(frozen=True)
class AccuracyDifference:
    """The difference in accuracy between two prompts, and what it rests on."""

    difference: Interval  # second prompt minus first, in percentage points
    counted: Interval  # the same by counting right answers, without log p
    problems: int
    scored_problems: int  # with log p, on which the slope and the mean weights rest
    mixed_problems: int  # with both right and wrong answers
    mixed_answers: int  # to these problems
    # Of these answers, under the prompt with fewer. If the compared prompts drew them,
    # it lies between half of them, as in counting, and all of them.
    effective_sample_size: float
    largest_weight: float  # of one of these answers, under either prompt
    # The calibration slope: 1 if log p is that of the draws, NaN if both prompts give
    # every answer the same log p.
    slope: Interval
    # Each 1 if log p is that of the draws and all problems are scored; among problems
    # with both right and wrong answers alone it differs from 1 even then. Those of the
    # prompts that drew add up to 2.
    mean_weights: tuple[Interval, Interval]


def accuracy_difference(
    right: ArrayLike,
    log_p: ArrayLike,
    drawn_from: ArrayLike,
    problem: ArrayLike,
    log_p_compared: ArrayLike | None = None,
) -> AccuracyDifference:
    """Return the accuracy under a second prompt minus that under a first one.

    right: (N,) of N answers; log_p: (N, 2), the log-likelihood of each answer under
    both prompts, in nats, -inf under a prompt that cannot give it; drawn_from: (N,), 0
    or 1, the prompt that drew it; problem: (N,), the id of its problem. An answer may
    lack log_p (NaN) if all answers to its problem are right, or all wrong.
    log_p_compared: (N, 2), the log-likelihoods under two other prompts, if those are to
    be compared.

    The interval takes problems as independent, so an answer or a problem must not be
    entered twice. It has no bounds (NaN) if fewer than MIN_MIXED_PROBLEMS problems have
    both right and wrong answers: every other problem contributes exactly 0, and too few
    are left to say how far the estimate varies.

    Raises ValueError for no answers, for arrays of other shapes or with other values,
    for a problem that has not as many answers of one prompt as of the other, or fewer
    than two, and for a missing log_p.
    """
    right = np.asarray(right, dtype=float)
    drawn_from = np.asarray(drawn_from)
    log_p = np.asarray(log_p, dtype=float)
    compared = log_p if log_p_compared is None else np.asarray(log_p_compared, float)
    names, problem = np.unique(np.asarray(problem), return_inverse=True)
    _require_shapes(right, log_p, compared, drawn_from, problem)
    drawn_from = drawn_from.astype(int)
    _require_even_halves(names, drawn_from, problem)

    log_weight = log_weights(compared, log_p)
    is_mixed = mixed(right, problem)
    if np.isnan(log_weight[is_mixed]).any():
        raise ValueError(
            "an answer to a problem with both right and wrong answers lacks log_p"
        )
    of_mixed = log_weight[is_mixed]
    mixed_problems = np.unique(problem[is_mixed])
    by_problem = np.zeros(len(names))
    by_problem[mixed_problems] = POINTS * differences(
        right[is_mixed], of_mixed, drawn_from[is_mixed], problem[is_mixed]
    )
    difference = interval(by_problem)
    counted = interval(POINTS * counted_differences(right, drawn_from, problem))
    if len(mixed_problems) < MIN_MIXED_PROBLEMS:
        difference = replace(NO_MEAN, estimate=difference.estimate)
        counted = replace(NO_MEAN, estimate=counted.estimate)
    has_weight = ~np.isnan(log_weight).any(axis=1)
    return AccuracyDifference(
        difference=difference,
        counted=counted,
        problems=len(names),
        scored_problems=len(np.unique(problem[has_weight])),
        mixed_problems=len(mixed_problems),
        mixed_answers=int(is_mixed.sum()),
        effective_sample_size=effective_sample_size(of_mixed),
        largest_weight=float(np.exp(of_mixed.max(initial=-np.inf))),
        slope=calibration_slope(log_p, drawn_from, problem),
        mean_weights=mean_weights(log_weight, problem),
    )


def log_weights(log_p_compared: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """Return log p minus log p of the even mixture of the prompts that drew.

    log_p_compared: (N, C) under any C prompts; log_p: (N, 2) under those that drew.
    """
    with np.errstate(invalid="ignore"):  # numpy warns of NaN
        mixture = np.logaddexp(log_p[:, 0], log_p[:, 1]) - np.log(2)
    return log_p_compared - mixture[:, None]


def mixed(right: np.ndarray, problem: np.ndarray) -> np.ndarray:
    """Return (N,): whether an answer's problem has both right and wrong answers.

    problem: (N,), counted from 0.
    """
    rate = np.bincount(problem, right) / np.maximum(np.bincount(problem), 1)
    return ((rate > 0) & (rate < 1))[problem]


def differences(
    right: np.ndarray,
    log_weight: np.ndarray,
    drawn_from: np.ndarray,
    problem: np.ndarray,
) -> np.ndarray:
    """Return the importance-weighted difference in accuracy of each problem, as a
    share, in the order of the problems' ids.

    log_weight: (N, 2), the `log_weights` under the first and the second prompt.
    """
    problem = np.unique(problem, return_inverse=True)[1]
    weight = np.exp(log_weight)
    change = weight[:, 1] - weight[:, 0]
    advantage = right - baselines(right, drawn_from, problem)
    return np.bincount(problem, advantage * change) / np.bincount(problem)


def counted_differences(
    right: np.ndarray, drawn_from: np.ndarray, problem: np.ndarray
) -> np.ndarray:
    """Return the share of right answers of the second prompt minus that of the first,
    of each problem. problem: (N,), counted from 0, with equal halves.
    """
    label = 2 * drawn_from - 1
    return 2 * np.bincount(problem, right * label) / np.bincount(problem)


def baselines(
    right: np.ndarray, drawn_from: np.ndarray, problem: np.ndarray
) -> np.ndarray:
    """Return for each answer the pass rate of the other answers to its problem.

    Both prompts' answers count alike, whichever drew the answer. Otherwise the
    expectation of the baseline would differ between the halves, and the estimated
    difference would shrink.
    """
    half = 2 * problem + drawn_from
    total = np.bincount(half, right, 2 * problem.max(initial=-1) + 2)
    size = np.bincount(half, minlength=len(total))
    other = 2 * problem + 1 - drawn_from
    in_same_half = (total[half] - right) / (size[half] - 1)
    return (in_same_half + total[other] / size[other]) / 2


def effective_sample_size(log_weight: np.ndarray) -> float:
    """Return how many answers of equal weight would be worth as much as these, under
    the prompt with fewer (Kish); 0 without answers, or if a prompt gives none of them.

    log_weight: (N, C), -inf for an answer that a prompt does not give.
    """
    largest = log_weight.max(axis=0, initial=-np.inf)
    if not np.isfinite(largest).all():
        return 0.0
    # Relative to the largest one, because the squares of small weights underflow.
    weight = np.exp(log_weight - largest)
    return float((weight.sum(0) ** 2 / (weight**2).sum(0)).min())


def calibration_slope(
    log_p: np.ndarray, drawn_from: np.ndarray, problem: np.ndarray
) -> Interval:
    """Return the slope of a logistic regression of the prompt that drew an answer on
    log p under the second prompt minus log p under the first.

    Given an answer, the probability that the second prompt drew it is
    p_second / (p_first + p_second). So the slope is 1 if answers were drawn with the
    probabilities that log_p (N, 2) states. Answers that only one of the prompts can
    give (log p -inf under the other) say nothing about it and are left out. NaN if the
    slope cannot be estimated.
    """
    with np.errstate(invalid="ignore"):  # numpy warns of -inf minus -inf
        ratio = log_p[:, 1] - log_p[:, 0]
    has_ratio = np.isfinite(ratio)
    from_second = drawn_from[has_ratio] == 1
    scored = np.unique(problem[has_ratio], return_inverse=True)[1]
    values = slope_values(ratio[has_ratio], from_second)
    count = scored.max(initial=-1) + 1
    if count < MIN_PROBLEMS or np.isnan(values).any():
        return NO_MEAN
    slope = values.mean()
    influence = np.bincount(scored, values - slope) / len(values)
    return interval(slope + count * influence)


def slope_values(ratio: np.ndarray, from_second: np.ndarray) -> np.ndarray:
    """Return (N,) whose mean is the slope of a logistic regression of `from_second` on
    `ratio`; NaN if the ratios alone separate both classes, if there is only one class,
    or if Newton's method does not converge.

    Their standard error of the mean is that of the slope (the sandwich estimator).
    """
    first, second = ratio[~from_second], ratio[from_second]
    if len(first) == 0 or len(second) == 0:
        return np.full(len(ratio), np.nan)
    if second.min() >= first.max() or first.min() >= second.max():
        return np.full(len(ratio), np.nan)
    design = np.stack([np.ones_like(ratio), ratio - ratio.mean()], axis=1)  # (N, 2)
    beta = np.zeros(2)
    for _ in range(MOST_STEPS):
        chance = (1 + np.tanh(design @ beta / 2)) / 2  # the logistic function
        curvature = design.T @ (design * (chance * (1 - chance))[:, None])
        gradients = design * (from_second - chance)[:, None]  # (N, 2)
        influence = np.linalg.pinv(curvature) @ gradients.T  # (2, N)
        left = np.abs(gradients.sum(0))  # 0 at the maximum of the likelihood
        if (left <= 1e-9 * np.abs(gradients).sum(0)).all():
            return beta[1] + len(ratio) * influence[1]
        beta = beta + influence.sum(1)
    return np.full(len(ratio), np.nan)


def mean_weights(
    log_weight: np.ndarray, problem: np.ndarray
) -> tuple[Interval, Interval]:
    """Return the mean weight under either prompt, over problems with log-likelihoods;
    NaN if there are none.

    Over answers to all problems its expectation is 1 if log p is that of the draws, and
    a constant error of log p under one prompt shifts it. Over answers to problems with
    both right and wrong answers it is only near 1, because these were selected.
    """
    has_weight = ~np.isnan(log_weight).any(axis=1)
    if not has_weight.any():
        return NO_MEAN, NO_MEAN
    scored = np.unique(problem[has_weight], return_inverse=True)[1]
    size = np.bincount(scored)
    first, second = (
        interval(np.bincount(scored, weight) / size)
        for weight in np.exp(log_weight[has_weight]).T
    )
    return first, second


def _require_shapes(
    right: np.ndarray,
    log_p: np.ndarray,
    compared: np.ndarray,
    drawn_from: np.ndarray,
    problem: np.ndarray,
) -> None:
    """Raise ValueError for arrays that do not have a row for each of N answers."""
    n = right.size
    shapes = {"right": right.shape, "drawn_from": drawn_from.shape}
    shapes["problem"] = problem.shape
    pairs = {"log_p": log_p.shape, "log_p_compared": compared.shape}
    expected = dict.fromkeys(shapes, (n,)) | dict.fromkeys(pairs, (n, 2))
    for name, shape in (shapes | pairs).items():
        if shape != expected[name]:
            raise ValueError(f"{name} has shape {shape}, expected {expected[name]}")
    if n == 0:
        raise ValueError("there are no answers")
    if not np.isin(right, (0, 1)).all():
        raise ValueError("right has values other than True and False")
    if not np.isin(drawn_from, (0, 1)).all():
        raise ValueError("drawn_from has values other than 0 and 1")


def _require_even_halves(
    names: np.ndarray, drawn_from: np.ndarray, problem: np.ndarray
) -> None:
    """Raise ValueError for a problem without as many answers of either prompt."""
    first = np.bincount(problem[drawn_from == 0], minlength=len(names))
    second = np.bincount(problem[drawn_from == 1], minlength=len(names))
    uneven = (first != second) | (first < 2)
    if uneven.any():
        at = uneven.argmax()
        raise ValueError(
            f"problem {names[at]} has {first[at]} answers of the first prompt and"
            f" {second[at]} of the second: each must have as many, and at least two"
        )
