"""Importance weighting compared with other estimators, at equal cost.

    python -m studies.weights_rivals [--simulations 1000]

Each estimator has the budget of 500 problems with four weighted answers. Drawing an
answer costs 1 and scoring it under one prompt half of that, so estimators that need
fewer scores get more problems. Answers are simulated as studies/simulated.py says.
Writes studies/results/weights_rivals.csv and prints it: a row per estimator (`way`) and
number of answers to a problem, with the number of problems within the budget, the root
mean squared error in points at two true effects, bias and coverage at the larger one,
and how many times as much paired counting would cost for the same error (`worth`, with
its standard error over simulations).
"""

import argparse

import numpy as np
import pandas as pd

from studies.keeping import RESULTS, keep
from studies.rival_estimators import WAYS, Way, by_weights
from studies.simulated import accuracy_of_estimates, problems

EFFECTS = (0.0, 2.5)  # points
BUDGETED = 500  # problems with weighted answers, two of either prompt
AT_ONCE = 250  # simulations in one array, which limits the memory


def mean_cost(way: Way, each: int) -> float:
    """Return the mean cost of an estimator per problem, in drawn answers."""
    rng = np.random.default_rng(0)
    _, costs = way(problems((40, 500), EFFECTS[-1], rng), each, rng)
    return float(costs.mean())


def simulated(way: Way, each: int, count: int, effect: float, simulations: int) -> dict:
    """Return the accuracy of an estimator's effect on `count` problems."""
    parts = []
    for seed in range(max(simulations // AT_ONCE, 1)):
        rng = np.random.default_rng([seed, 1])
        given = problems((min(simulations, AT_ONCE), count), effect, rng)
        parts.append(way(given, each, rng)[0])
    return accuracy_of_estimates(np.concatenate(parts), effect)


def row(name: str, each: int, budget: float, simulations: int) -> dict:
    """Return a row of the table: the accuracy of an estimator within a budget."""
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
