"""Importance weights beside other estimators of the same difference, at equal cost.

    python -m studies.weights_rivals [--simulations 1000]

Each way may spend what 500 problems with four weighted answers cost. To draw an answer
costs 1 and to score it under one prompt half of that, so that ways which need no score,
or scores of fewer answers, get more problems. Answers are simulated as
studies/simulated.py says. Writes studies/results/weights_rivals.csv and prints it: a
row per way and number of answers to a problem, with the number of problems that it can
afford, its root mean squared error in points at two true effects, its bias and coverage
at the larger one, and how many times as much paired counting would cost for the same
error (`worth`, with its standard error over simulations).
"""

import argparse

import numpy as np
import pandas as pd

from studies.keeping import RESULTS, keep
from studies.rival_estimators import WAYS, Way, by_weights
from studies.simulated import accuracy_of_estimates, problems

EFFECTS = (0.0, 2.5)  # points
BUDGETED = 500  # problems that the weighted answers may have, two of either prompt
AT_ONCE = 250  # simulations: bounds the memory


def mean_cost(way: Way, each: int) -> float:
    """Return what a way costs for a problem."""
    rng = np.random.default_rng(0)
    _, costs = way(problems((40, 500), EFFECTS[-1], rng), each, rng)
    return float(costs.mean())


def simulated(way: Way, each: int, count: int, effect: float, simulations: int) -> dict:
    """Return how well a way estimates an effect on so many problems."""
    parts = []
    for seed in range(max(simulations // AT_ONCE, 1)):
        rng = np.random.default_rng([seed, 1])
        given = problems((min(simulations, AT_ONCE), count), effect, rng)
        parts.append(way(given, each, rng)[0])
    return accuracy_of_estimates(np.concatenate(parts), effect)


def row(name: str, each: int, budget: float, simulations: int) -> dict:
    """Return a row of the table: how well a way estimates for a budget."""
    way, _ = WAYS[name]
    cost = mean_cost(way, each)
    count = round(budget / cost)
    small, large = (
        simulated(way, each, count, effect, simulations) for effect in EFFECTS
    )
    kept = ("rmse", "rmse_error", "bias", "bias_error", "coverage", "simulations")
    return {
        "way": name,
        "answers": 2 * each,
        "problems": count,
        "cost": cost,
        "rmse_0": small["rmse"],
        **{field: large[field] for field in kept},
    }


def main() -> None:
    """Simulate every way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1000)
    simulations = parser.parse_args().simulations
    budget = BUDGETED * mean_cost(by_weights, 2)
    cases = [(name, each) for name, (_, sizes) in WAYS.items() for each in sizes]
    table = pd.DataFrame([row(*case, budget, simulations) for case in cases])
    pairs = table[table["way"] == "paired counting"].iloc[0]
    table["worth"] = (pairs["rmse"] / table["rmse"]) ** 2
    relative = table["rmse_error"] / table["rmse"]
    of_both = np.hypot(relative, pairs["rmse_error"] / pairs["rmse"])
    table["worth_error"] = 2 * table["worth"] * of_both
    table.loc[pairs.name, "worth_error"] = 0.0  # counting, compared with itself
    keep(RESULTS / "weights_rivals.csv", table)


if __name__ == "__main__":
    main()
