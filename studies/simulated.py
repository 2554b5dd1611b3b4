"""A simulated model whose sampled answers are like the stored ones, for studies of
importance weights.

Of the answers in data/families/draws 10 % are right, and 22 % of the problems have both
right and wrong ones. The simulated pass rates of problems have a beta distribution with
these two numbers. Log p under the second prompt minus log p under the first (the log
ratio) is normal, given the problem and whether an answer is right. Its mean follows
from its variance and the pass rates, so that the probabilities under each prompt add up
to 1 and the true difference is known exactly. Its standard deviation differs between
problems. In the stored answers it is 1.25 nats, and half of the mean absolute
difference of both weights, the total variation, is 0.35.

All arrays have a row per simulation: S simulations, N problems, 2 prompts, M answers.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from lib.statistics.importance_weighting import differences
from lib.statistics.intervals import POINTS, interval

RATE = 0.096  # of right answers under the first prompt
CONCENTRATION = 2.24  # of the beta distribution: 22 % of problems have mixed answers
SPREAD = 0.82  # median over problems, in nats, of the standard deviation of log ratios
SPREAD_BETWEEN = 0.45  # standard deviation of its logarithm between problems
# Standard deviation between problems of the effect on the log odds: 3 points. The
# stored differences have a variance of 134, of which draws make 125.
EFFECT_BETWEEN = 0.33
LEVELS = 5  # of difficulty, by which some of the pass rate can be predicted


@dataclass(frozen=True)
class Problems:
    """The true properties of simulated problems, (S, N)."""

    rates: np.ndarray  # (S, N, 2): pass rates under each prompt
    spread: np.ndarray  # standard deviation of the log ratio, in nats
    level: np.ndarray  # 0 to LEVELS - 1


@dataclass(frozen=True)
class Draws:
    """Sampled answers (S, N, 2, M), M of each prompt."""

    right: np.ndarray  # 1 or 0
    ratio: np.ndarray  # log p under the second prompt minus under the first
    length: np.ndarray  # standardised log p, which is higher for right answers


def problems(shape: tuple[int, int], effect: float, rng: np.random.Generator):
    """Return problems (S, N) on which the second prompt changes the pass rate by
    `effect` points on average, over all problems that could be drawn.
    """
    odds = scipy.special.logit(_rates(shape, rng))
    varying = rng.normal(0, EFFECT_BETWEEN, shape)
    second = odds + log_odds_change(effect) + varying
    rates = scipy.special.expit(np.stack([odds, second], axis=-1))
    spread = SPREAD * np.exp(SPREAD_BETWEEN * rng.normal(size=shape))
    # A problem's level predicts its pass rate, with noise.
    hardness = rng.normal(-odds, odds.std() * 1.5)
    edges = np.quantile(hardness, np.arange(1, LEVELS) / LEVELS)
    return Problems(rates, spread, np.searchsorted(edges, hardness))


def _rates(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    shapes = CONCENTRATION * RATE, CONCENTRATION * (1 - RATE)
    return rng.beta(*shapes, shape).clip(1e-9, 1 - 1e-9)


@cache
def log_odds_change(effect: float) -> float:
    """Return the change in the log odds of all problems that raises the mean pass rate
    by `effect` points.
    """
    rng = np.random.default_rng(0)
    size = 1_000_000
    odds = scipy.special.logit(_rates((size,), rng))
    varying = odds + rng.normal(0, EFFECT_BETWEEN, size)
    # Before and after use the same problems, which removes most of the noise.
    before = scipy.special.expit(odds).mean()

    def missed(change: float) -> float:
        after = scipy.special.expit(varying + change).mean()
        return POINTS * (after - before) - effect

    return scipy.optimize.brentq(missed, -3, 3)


def draw(given: Problems, each: int, rng: np.random.Generator) -> Draws:
    """Return `each` answers under either prompt to every problem."""
    of_prompt = given.rates[..., None]  # (S, N, 2, 1)
    shape = (*given.rates.shape, each)
    right = rng.random(shape) < of_prompt
    changes = np.log([1 - given.rates, given.rates])  # wrong and right
    gain = (changes[..., 1] - changes[..., 0])[..., None, None]  # (2, S, N, 1, 1)
    variance = (given.spread**2)[..., None, None]
    under = np.array([-0.5, 0.5])[:, None] * variance  # (S, N, 2, 1)
    mean = np.where(right, gain[1], gain[0]) + under
    ratio = mean + given.spread[..., None, None] * rng.normal(size=shape)
    length = 0.8 * right + rng.normal(size=shape)
    return Draws(right.astype(float), ratio, length)


def weighted_differences(draws: Draws) -> np.ndarray:
    """Return the importance-weighted difference of each problem (S, N), in points."""
    simulations, count, _, each = draws.right.shape
    problem = np.repeat(np.arange(simulations * count), 2 * each)
    drawn_from = np.tile(np.repeat([0, 1], each), simulations * count)
    ratio = draws.ratio.ravel()
    weights = log_weights_of(ratio)
    by_problem = differences(draws.right.ravel(), weights, drawn_from, problem)
    return POINTS * by_problem.reshape(simulations, count)


def log_weights_of(ratio: np.ndarray) -> np.ndarray:
    """Return the log weights (N, 2) under both prompts, from log ratios (N,)."""
    mixture = np.logaddexp(0, ratio) - np.log(2)
    return np.stack([-mixture, ratio - mixture], axis=1)


def observed_differences(draws: Draws) -> np.ndarray:
    """Return the unweighted difference of each problem (S, N), in points."""
    by_prompt = draws.right.mean(-1)
    return POINTS * (by_prompt[..., 1] - by_prompt[..., 0])


def accuracy_of_estimates(by_problem: np.ndarray, effect: float) -> dict[str, float]:
    """Return how well the mean over problems (S, N) estimates the effect: bias and root
    mean squared error in points with their standard errors over simulations, the
    coverage of the interval, and how often it excludes 0, in %.

    The variance of the mean is computed as the variance over all problems divided by N,
    which is much more precise than the variance of the S means; problems are
    independent.
    """
    found = [interval(values) for values in by_problem]
    errors = np.array([mean.estimate - effect for mean in found])
    covers = [mean.low <= effect <= mean.high for mean in found]
    excludes_0 = [mean.low > 0 or mean.high < 0 for mean in found]
    simulations, problems = by_problem.shape
    bias = errors.mean()
    bias_error = errors.std(ddof=1) / simulations**0.5
    rmse = np.sqrt(by_problem.var() / problems + bias**2)
    variance_error = by_problem.var(1).std(ddof=1) / problems / simulations**0.5
    square_error = np.hypot(variance_error, 2 * bias * bias_error)
    return {
        "simulations": simulations,
        "bias": bias,
        "bias_error": bias_error,
        "rmse": rmse,
        "rmse_error": square_error / (2 * rmse),
        "coverage": POINTS * np.mean(covers),
        "excludes_0": POINTS * np.mean(excludes_0),
    }
