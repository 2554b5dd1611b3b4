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

    weights = log_weights(log_p, log_p)
    mean = interval(POINTS * differences(right, weights, drawn_from, problem))

No estimate is refused here: whether log p is that of the draws, the caller has to read
from the slope (`slope_values`). docs/weighted_pass_rates.md says how, what the estimate
presupposes, and when not to use it. `reproduction.evaluation.weighted_pass_rates` does
the same for tables of stored answers, with checks.
"""

import numpy as np

MIN_PROBLEMS = 5  # with a likelihood, below which no slope is estimated
# Problems with both right and wrong answers, below which a difference has no interval:
# in simulations intervals covered the truth in 75 % of samples with one or two such
# problems, in 91 % with three or four, and in about 95 % with five or more
# (studies/weights_simulated.py). Twice as many allow for longer tails than simulated.
MIN_MIXED_PROBLEMS = 10
MOST_STEPS = 50  # of Newton's method, which needs about 7


def log_weights(log_p_compared: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """Return log p minus log p of the even mixture of the prompts that drew.

    log_p_compared: (N, C) under any C prompts; log_p: (N, 2) under those that drew.
    """
    with np.errstate(invalid="ignore"):  # numpy warns of NaN
        mixture = np.logaddexp(log_p[:, 0], log_p[:, 1]) - np.log(2)
    return log_p_compared - mixture[:, None]


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
