"""Estimators of the difference in accuracy between two prompts: this project's method
and its rivals. Each takes simulated problems and returns for each problem the estimate
in points and the cost of its answers and scores.
"""

from collections.abc import Callable

import numpy as np

from lib.statistics.importance_weighting import baselines
from lib.statistics.intervals import POINTS
from studies.simulated import (
    LEVELS,
    Draws,
    Problems,
    draw,
    observed_differences,
    weighted_differences,
)

SCORE_COST = 0.5  # of drawing an answer: 0.44 on a CPU, below 0.02 on a GPU
TOKENS = 12  # of an answer, which share its log ratio
MOST_PER_TOKEN = np.log(1.2)
FOLDS = 2  # of problems, for cross-fitting
KEPT_OF_OTHERS = 0.2  # share of the problems that are not mixed that get new answers

# The result of an estimator for each problem (S, N): the estimate in points, the cost.
Estimated = tuple[np.ndarray, np.ndarray]
Way = Callable[[Problems, int, np.random.Generator], Estimated]


def is_mixed(right: np.ndarray) -> np.ndarray:
    """Return whether a problem has both right and wrong answers; right: (S, N, ...)."""
    rate = right.reshape(*right.shape[:2], -1).mean(-1)
    return (rate > 0) & (rate < 1)


def cost(answers: np.ndarray | int, scored: np.ndarray | int) -> np.ndarray:
    """Return the cost of answers, of which `scored` are scored under both prompts."""
    return np.asarray(answers + 2 * SCORE_COST * scored)


def baselines_of(right: np.ndarray) -> np.ndarray:
    """Return the pass rate of the other answers to a problem; right: (S, N, 2, M)."""
    count = right.shape[0] * right.shape[1]
    problem = np.repeat(np.arange(count), 2 * right.shape[3])
    drawn_from = np.tile(np.repeat([0, 1], right.shape[3]), count)
    return baselines(right.ravel(), drawn_from, problem).reshape(right.shape)


def token_ratios(
    given: Problems, draws: Draws, tokens: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the log ratio of each token (S, N, 2, M, tokens); those of an answer have
    equal variance and add up to the answer's.
    """
    noise = rng.normal(size=(*draws.ratio.shape, tokens))
    noise -= noise.mean(-1, keepdims=True)
    noise *= given.spread[..., None, None, None] / tokens**0.5
    return draws.ratio[..., None] / tokens + noise


def by_weights(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Weight answers of both prompts, which is this project's method."""
    draws = draw(given, each, rng)
    return weighted_differences(draws), cost(2 * each, 2 * each * is_mixed(draws.right))


def by_counting(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Count right answers of either prompt to the same problems."""
    points = observed_differences(draw(given, each, rng))
    return points, np.full(points.shape, 2.0 * each)


def by_coupling(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Count right answers under the best possible common random numbers.

    This is the maximal coupling of answers: an answer of the first prompt is also that
    of the second with probability min(1, p_second / p_first); no sampler can do better.
    """
    return _coupled(given, each, rng, tokens=1)


def by_token(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Count right answers under common random numbers for each token, as a real sampler
    can use them: after the first token that differs, the answers are independent.
    """
    return _coupled(given, each, rng, tokens=TOKENS)


def _coupled(
    given: Problems, each: int, rng: np.random.Generator, tokens: int
) -> Estimated:
    draws = draw(given, each, rng)
    of_first = draws.right[:, :, 0]
    of_second = of_first.copy()
    log_kept = np.minimum(token_ratios(given, draws, tokens, rng), 0).sum(-1)
    waits = rng.random(of_first.shape) >= np.exp(log_kept[:, :, 0])
    rows, columns, _ = np.nonzero(waits)
    of_second[waits] = _surplus(_at(given, rows, columns), tokens, rng)
    points = POINTS * (of_second - of_first).mean(-1)
    return points, np.full(points.shape, 2.0 * each)


def _surplus(given: Problems, tokens: int, rng: np.random.Generator) -> np.ndarray:
    """Return for each problem (1, N) whether an answer is right that is drawn, by
    rejection, in proportion to the positive part of p_second - p_first.
    """
    right = np.empty(given.level.size)
    waiting = np.arange(given.level.size)
    while len(waiting):
        some = _at(given, np.zeros_like(waiting), waiting)
        again = draw(some, 1, rng)
        log_more = np.maximum(token_ratios(some, again, tokens, rng), 0).sum(-1)
        taken = rng.random(len(waiting)) < 1 - np.exp(-log_more[0, :, 1, 0])
        right[waiting[taken]] = again.right[0, taken, 1, 0]
        waiting = waiting[~taken]
    return right


def _at(given: Problems, rows: np.ndarray, columns: np.ndarray) -> Problems:
    """Return these problems as one simulation (1, N)."""
    fields = (given.rates, given.spread, given.level)
    return Problems(*(values[None, rows, columns] for values in fields))


def from_one_prompt(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Draw all answers under the first prompt, as off-policy evaluation does."""
    draws = draw(given, 2 * each, rng)
    right, ratio = draws.right[:, :, 0], draws.ratio[:, :, 0]
    others = (right.sum(-1, keepdims=True) - right) / (2 * each - 1)
    points = POINTS * ((right - others) * (np.exp(ratio) - 1)).mean(-1)
    return points, cost(2 * each, 2 * each * is_mixed(right))


def without_baseline(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Weight answers of both prompts without the control variate."""
    draws = draw(given, each, rng)
    change = 2 * np.tanh(draws.ratio / 2)
    points = POINTS * (draws.right * change).mean((2, 3))
    return points, cost(2 * each, draws.right.sum((2, 3)))


def self_normalised(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Divide the weights of a problem by their sum."""
    draws = draw(given, each, rng)
    rates = []
    for sign in (-1, 1):
        weight = 1 / (1 + np.exp(-sign * draws.ratio))
        rates.append((weight * draws.right).sum((2, 3)) / weight.sum((2, 3)))
    points = POINTS * (rates[1] - rates[0])
    return points, cost(2 * each, 2 * each * is_mixed(draws.right))


def truncated(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Truncate the log ratio of each token, as policy optimisation does."""
    draws = draw(given, each, rng)
    ratios = token_ratios(given, draws, TOKENS, rng)
    ratio = ratios.clip(-MOST_PER_TOKEN, MOST_PER_TOKEN).sum(-1)
    points = weighted_differences(Draws(draws.right, ratio, draws.length))
    return points, cost(2 * each, 2 * each * is_mixed(draws.right))


def doubly_robust(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Predict whether an answer is right from its problem's level, the other answers
    and its log p, and weight the residuals.

    Every answer needs its scores, since a prediction is seldom exactly right or wrong.
    """
    draws = draw(given, each, rng)
    level = given.level[..., None, None, None] == np.arange(LEVELS)
    level = np.broadcast_to(level, (*draws.right.shape, LEVELS))
    further = [baselines_of(draws.right), draws.length]
    x = np.concatenate([level, np.stack(further, axis=-1)], axis=-1)
    predicted = np.empty_like(draws.right)
    fold = np.arange(draws.right.shape[1]) % FOLDS
    for number in range(FOLDS):
        fit = x[:, fold != number], draws.right[:, fold != number]
        predicted[:, fold == number] = _predictions(*fit, x[:, fold == number])
    change = 2 * np.tanh(draws.ratio / 2)
    left = ((draws.right - predicted) * change).mean((2, 3))
    of_prompt = predicted.mean(-1)
    points = POINTS * (of_prompt[..., 1] - of_prompt[..., 0] + left)
    return points, np.full(points.shape, cost(2 * each, 2 * each))


def _predictions(x: np.ndarray, right: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return least-squares predictions of other answers, simulation by simulation."""
    features = x.reshape(len(x), -1, x.shape[-1])
    squares = np.einsum("sik,sil->skl", features, features)
    products = np.einsum("sik,si->sk", features, right.reshape(len(right), -1))
    slopes = np.linalg.solve(squares, products[..., None])[..., 0]
    return np.einsum("snhmk,sk->snhm", other, slopes)


def more_where_mixed(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Draw the same number of answers again, only to mixed problems, and weight all
    answers together.
    """
    first, again = draw(given, each, rng), draw(given, each, rng)
    more = is_mixed(first.right)
    points = np.where(more, weighted_differences(_together(first, again)), 0)
    answers = 2 * each * (1 + more)
    return points, cost(answers, answers * more)


def by_plug_in(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Draw twice as many answers to every problem, but eight times as many to those
    whose first answers are mixed, and weight all answers together.
    """
    first, again = draw(given, each, rng), draw(given, each, rng)
    much_more = draw(given, 6 * each, rng)
    varies = is_mixed(first.right)
    few = _together(first, again)
    many = _together(few, much_more)
    points = np.where(varies, weighted_differences(many), weighted_differences(few))
    answers = 2 * each * np.where(varies, 8, 2)
    scored = answers * np.where(varies, True, is_mixed(few.right))
    return points, cost(answers, scored)


def with_some_others(given: Problems, each: int, rng: np.random.Generator) -> Estimated:
    """Estimate from new answers only: to all problems whose first answers are mixed,
    and to a random share of the others, weighted by the inverse of this share.
    """
    first, again = draw(given, each, rng), draw(given, each, rng)
    probability = np.where(is_mixed(first.right), 1, KEPT_OF_OTHERS)
    more = rng.random(probability.shape) < probability
    points = np.where(more, weighted_differences(again) / probability, 0)
    answers = 2 * each * (1 + more)
    return points, cost(answers, 2 * each * more * is_mixed(again.right))


def _together(one: Draws, other: Draws) -> Draws:
    """Return the answers of both to the same problems."""
    fields = ("right", "ratio", "length")
    both = {
        name: np.concatenate([getattr(one, name), getattr(other, name)], axis=-1)
        for name in fields
    }
    return Draws(**both)


WAYS: dict[str, tuple[Way, tuple[int, ...]]] = {  # with answers of either prompt
    "this method": (by_weights, (2, 4, 8)),
    "paired counting": (by_counting, (2, 4, 8)),
    "common random numbers, at best": (by_coupling, (2,)),
    "common random numbers, token by token": (by_token, (2,)),
    "answers of one prompt alone": (from_one_prompt, (2,)),
    "without a baseline": (without_baseline, (2,)),
    "self-normalised": (self_normalised, (2,)),
    "truncated per token": (truncated, (2,)),
    "doubly robust": (doubly_robust, (2,)),
    "more answers where they were mixed": (more_where_mixed, (2,)),
    "allocation by first answers": (by_plug_in, (2,)),
    "new answers, with some of the others": (with_some_others, (2,)),
}
