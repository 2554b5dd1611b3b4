"""Bias, coverage and power of importance weights, on simulated answers like the stored
ones.

    python -m studies.weights_simulated

Of the answers in data/families/draws 10 % are right, and 22 % of the problems have both
right and wrong ones. The simulated pass rates of problems have a beta distribution with
these two numbers. Log p under the second prompt minus log p under the first (the log
ratio) is normal, given the problem and whether an answer is right. Its mean follows
from its variance and the pass rates, so that the probabilities under each prompt add up
to 1 and the true difference is known exactly. Its standard deviation differs between
problems. In the stored answers it is 1.25 nats.

Writes two tables to studies/results and prints them. weights_coverage.csv has a row per
true effect and way to estimate it. weights_few.csv has how often the interval covers
the truth, in %, by the number of problems with both right and wrong answers.
tests/test_weight_studies.py compares the simulated answers with the stored ones.

Arrays have a row per simulation: S simulations, N problems, 2 prompts, EACH answers.
"""

from functools import cache

import numpy as np
import pandas as pd
import scipy

from lib.statistics.importance_weighting import differences
from lib.statistics.intervals import POINTS, interval
from studies.keeping import RESULTS, keep

RATE = 0.096  # of right answers under the first prompt
CONCENTRATION = 2.24  # of the beta distribution: 22 % of problems have mixed answers
SPREAD = 0.82  # median over problems, in nats, of the standard deviation of log ratios
SPREAD_BETWEEN = 0.45  # standard deviation of its logarithm between problems
# Standard deviation between problems of the effect on the log odds: 3 points. The
# stored differences have a variance of 134, of which draws make 125.
EFFECT_BETWEEN = 0.33
EACH = 2  # answers of either prompt

EFFECTS = (0.0, 0.8, 2.5)  # points
PROBLEMS = 500
FEW = (20, 30, 40, 60, 90, 130)  # problems, of which about 23 % are mixed
EDGES = [0, 1, 3, 5, 10, 15, 20, 30]  # mixed problems
SIMULATIONS = 4000
AT_ONCE = 500  # simulations in one array, which limits the memory


def pass_rates(
    shape: tuple[int, ...], effect: float, rng: np.random.Generator
) -> np.ndarray:
    """Return pass rates (S, N, 2) of problems on which the second prompt changes them
    by `effect` points on average, over all problems that could be drawn.
    """
    odds = _odds(shape, rng)
    second = odds + log_odds_change(effect) + rng.normal(0, EFFECT_BETWEEN, shape)
    return scipy.special.expit(np.stack([odds, second], axis=-1))


def _odds(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    shapes = CONCENTRATION * RATE, CONCENTRATION * (1 - RATE)
    return scipy.special.logit(rng.beta(*shapes, shape).clip(1e-9, 1 - 1e-9))


@cache
def log_odds_change(effect: float) -> float:
    """Return the change in the log odds of all problems that raises the mean pass rate
    by `effect` points.
    """
    rng = np.random.default_rng(0)
    odds = _odds((1_000_000,), rng)
    varying = odds + rng.normal(0, EFFECT_BETWEEN, odds.shape)
    # Before and after use the same problems, which removes most of the noise.
    before = scipy.special.expit(odds).mean()

    def missed(change: float) -> float:
        after = scipy.special.expit(varying + change).mean()
        return POINTS * (after - before) - effect

    return scipy.optimize.brentq(missed, -3, 3)


def draw(rates: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return answers to problems (S, N, 2, EACH): whether each is right, and its log
    ratio.
    """
    spread = SPREAD * np.exp(SPREAD_BETWEEN * rng.normal(size=rates.shape[:2]))
    spread = spread[..., None, None]
    right = rng.random((*rates.shape, EACH)) < rates[..., None]
    changes = np.log([1 - rates, rates])  # of wrong and of right answers
    by_grade = (changes[..., 1] - changes[..., 0])[..., None, None]
    of_prompt = np.array([-0.5, 0.5])[:, None] * spread**2
    mean = np.where(right, by_grade[1], by_grade[0]) + of_prompt
    return right.astype(float), mean + spread * rng.normal(size=right.shape)


def by_weights(right: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return the importance-weighted difference of each problem (S, N), in points."""
    count = right[..., 0, 0].size
    problem = np.repeat(np.arange(count), 2 * EACH)
    drawn_from = np.tile(np.repeat([0, 1], EACH), count)
    given = right.ravel(), _log_weights(ratio.ravel()), drawn_from, problem
    return POINTS * differences(*given).reshape(right.shape[:2])


def _log_weights(ratio: np.ndarray) -> np.ndarray:
    """Return the log weights (N, 2) under both prompts, from log ratios (N,)."""
    mixture = np.logaddexp(0, ratio) - np.log(2)
    return np.stack([-mixture, ratio - mixture], axis=1)


def by_counting(right: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return the unweighted difference of each problem (S, N), in points."""
    return POINTS * np.subtract(right[:, :, 1], right[:, :, 0]).mean(-1)


WAYS = {"weights": by_weights, "counting": by_counting}


def intervals_of(by_problem: np.ndarray) -> pd.DataFrame:
    """Return the mean of each simulation's problems (S, N) with its interval."""
    means = [interval(values) for values in by_problem]
    ends = [(mean.estimate, mean.low, mean.high) for mean in means]
    return pd.DataFrame(ends, columns=["estimate", "low", "high"])


def covers(found: pd.DataFrame, truth: float) -> pd.Series:
    """Return whether each interval includes the truth."""
    return (found["low"] <= truth) & (found["high"] >= truth)


def is_mixed(right: np.ndarray) -> np.ndarray:
    """Return whether a problem (S, N) has both right and wrong answers."""
    rate = right.mean((2, 3))
    return (rate > 0) & (rate < 1)


def rows(effect: float, simulations: int) -> list[dict]:
    """Return a row per way to estimate an effect."""
    found = {way: [] for way in WAYS}
    for seed in range(max(simulations // AT_ONCE, 1)):
        rng = np.random.default_rng(seed)
        shape = min(simulations, AT_ONCE), PROBLEMS
        answers = draw(pass_rates(shape, effect, rng), rng)
        for way, estimate in WAYS.items():
            found[way].append(intervals_of(estimate(*answers)))
    collected = []
    for way, parts in found.items():
        means = pd.concat(parts)
        missed = means["estimate"] - effect
        row = {"effect": effect, "way": way, "problems": PROBLEMS, "answers": 2 * EACH}
        row |= {"simulations": len(means), "bias": missed.mean()}
        row |= {"bias_error": missed.sem(), "rmse": (missed**2).mean() ** 0.5}
        row["coverage"] = POINTS * covers(means, effect).mean()
        row["excludes_0"] = POINTS * (1 - covers(means, 0).mean())
        collected.append(row)
    return collected


def with_few(problems: int, simulations: int) -> pd.DataFrame:
    """Return for each simulation of the largest effect whether its interval covers the
    truth, and its number of mixed problems.
    """
    rng = np.random.default_rng(problems)
    answers = draw(pass_rates((simulations, problems), EFFECTS[-1], rng), rng)
    covered = covers(intervals_of(by_weights(*answers)), EFFECTS[-1])
    return pd.DataFrame({"covers": covered, "mixed": is_mixed(answers[0]).sum(1)})


def by_mixed_problems(samples: list[pd.DataFrame]) -> pd.DataFrame:
    """Return a row per group of samples with similar numbers of mixed problems."""
    found = pd.concat(samples, ignore_index=True)
    bins = pd.cut(found["mixed"], EDGES, right=False)
    groups = found["covers"].groupby(bins, observed=True)
    rows = {
        "fewest": [group.left for group in groups.groups],
        "most": [group.right - 1 for group in groups.groups],
        "simulations": groups.size(),
        "coverage": POINTS * groups.mean(),
        "coverage_error": POINTS * groups.sem(),
    }
    return pd.DataFrame(rows)


def main() -> None:
    """Simulate every effect, and every small number of problems."""
    table = [row for effect in EFFECTS for row in rows(effect, SIMULATIONS)]
    keep(RESULTS / "weights_coverage.csv", pd.DataFrame(table))
    few = by_mixed_problems([with_few(n, SIMULATIONS) for n in FEW])
    keep(RESULTS / "weights_few.csv", few)


if __name__ == "__main__":
    main()
