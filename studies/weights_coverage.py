"""Bias, coverage and power of importance weights on answers like the stored ones.

    python -m studies.weights_coverage [--simulations 4000]

Each simulation draws two answers under either prompt to 500 problems; in their main
statistics they are like the stored answers (studies/simulated.py). Writes
studies/results/weights_coverage.csv and prints it: a row per true effect and estimator,
with the statistics of the simulated answers that can be compared with the stored ones.
"""

import argparse

import numpy as np
import pandas as pd

from lib.statistics.intervals import POINTS
from studies import simulated
from studies.keeping import RESULTS, keep

EFFECTS = (0.0, 0.8, 2.5)  # points
PROBLEMS = 500
EACH = 2  # answers of either prompt
AT_ONCE = 500  # simulations in one array, which limits the memory
WAYS = {
    "weights": simulated.weighted_differences,
    "counting": simulated.observed_differences,
}


def sampled(
    effect: float, simulations: int, seed: int
) -> tuple[simulated.Problems, simulated.Draws]:
    """Return simulated problems and the answers to them."""
    rng = np.random.default_rng(seed)
    problems = simulated.problems((simulations, PROBLEMS), effect, rng)
    return problems, simulated.draw(problems, EACH, rng)


def regime(problems: simulated.Problems, draws: simulated.Draws) -> dict[str, float]:
    """Return statistics of the simulated answers to compare with the stored ones.

    right, mixed: % of right answers, and of problems with right and wrong answers
    effective, spread: of the answers to mixed problems, the effective sample size in %
    and the standard deviation of the log-likelihood ratio in nats
    variance, variance_of_draws: of the weighted difference of a problem, in points
    squared, and its part that is sampling noise
    """
    rate = draws.right.mean((2, 3))
    is_mixed = (rate > 0) & (rate < 1)
    ratio = draws.ratio[is_mixed].ravel()
    weights = np.exp(simulated.log_weights_of(ratio))
    by_problem = simulated.weighted_differences(draws)
    truth = POINTS * (problems.rates[..., 1] - problems.rates[..., 0])
    return {
        "right": POINTS * draws.right.mean(),
        "mixed": POINTS * is_mixed.mean(),
        "effective": POINTS * weights[:, 0].mean() ** 2 / (weights[:, 0] ** 2).mean(),
        "spread": ratio.std(),
        "variance": by_problem.var(),
        "variance_of_draws": (by_problem - truth).var(),
    }


def rows(effect: float, simulations: int) -> list[dict]:
    """Return a row per way to estimate an effect."""
    parts = {way: [] for way in WAYS}
    alike: dict[str, float] = {}
    for seed in range(max(simulations // AT_ONCE, 1)):
        problems, draws = sampled(effect, min(simulations, AT_ONCE), seed)
        alike = alike or regime(problems, draws)
        for way, estimate in WAYS.items():
            parts[way].append(estimate(draws))
    collected = []
    for way, by_problem in parts.items():
        row = {"effect": effect, "way": way, "problems": PROBLEMS, "answers": 2 * EACH}
        row |= simulated.accuracy_of_estimates(np.concatenate(by_problem), effect)
        collected.append(row | alike)
    return collected


def main() -> None:
    """Simulate every effect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=4000)
    simulations = parser.parse_args().simulations
    table = [row for effect in EFFECTS for row in rows(effect, simulations)]
    keep(RESULTS / "weights_coverage.csv", pd.DataFrame(table))


if __name__ == "__main__":
    main()
