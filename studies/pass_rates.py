"""How narrow weighted pass rates are, and how often their intervals cover the truth.

    python -m studies.pass_rates [--simulations 200]

In a simulated model each problem has twelve possible answers, some of them right. A
filler changes their log probabilities by normal noise of a given size, and makes right
ones a little more likely. Two answers are drawn under either prompt; the same answers
are weighted and counted. Writes studies/results/pass_rates.csv and prints it: a row per
number of problems and size of the noise, with half-widths (1.96 standard deviations
over simulations) and bias in points, and coverage in %.
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd

from lib.evaluation.weighted_pass_rates import (
    observed_differences,
    weighted_differences,
)
from lib.profiles import SAMPLING_CONDITIONS
from lib.statistics.intervals import POINTS, interval
from studies.keeping import RESULTS, keep

PROBLEMS = (120, 500)
NOISES = (0.5, 0.9, 1.5, 3.0)  # standard deviations, in nats
POSSIBLE = 12  # answers to a problem
SAMPLES = 2  # answers under each prompt
GAIN = 0.1  # nats by which the filler raises the log probability of right answers


def draw(
    problems: int, noise: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, float]:
    """Return answers in the columns of `scored_draws`, and the true change of the pass
    rate by the filler, in points.
    """
    rates = rng.beta(0.45, 0.7, (problems, 1))
    right = rng.random((problems, POSSIBLE)) < rates
    none = rng.dirichlet(np.full(POSSIBLE, 0.7), problems)
    mless = none * np.exp(noise * rng.normal(size=none.shape) + GAIN * right)
    mless /= mless.sum(1, keepdims=True)

    probabilities = {"none": none, "mless": mless}
    tables = []
    for half, sample in product(SAMPLING_CONDITIONS, range(SAMPLES)):
        # The first answer whose cumulative probability exceeds a uniform number.
        exceeds = probabilities[half].cumsum(1) > rng.random((problems, 1))
        chosen = np.arange(problems), exceeds.argmax(1)
        table = pd.DataFrame({"problem_id": chosen[0], "right": right[chosen]})
        table = table.assign(drawn_under=half, sample=sample, model="simulated")
        for name, probability in probabilities.items():
            table[name] = np.log(probability[chosen])
        tables.append(table)
    gains = ((mless - none) * right).sum(1)
    return pd.concat(tables, ignore_index=True), float(POINTS * gains.mean())


def simulate(problems: int, noise: float, simulations: int) -> dict[str, float]:
    """Return a row with the precision, bias and coverage of weighting and of counting
    the same answers.
    """
    rng = np.random.default_rng(0)
    errors = {"weights": [], "counting": []}
    covered = {"weights": [], "counting": []}
    spreads = []
    for _ in range(simulations):
        draws, truth = draw(problems, noise, rng)
        spreads.append((draws["mless"] - draws["none"]).std())
        by_problem = {
            "weights": weighted_differences(draws, "mless", "none"),
            "counting": observed_differences(draws),
        }
        for way, points in by_problem.items():
            mean = interval(points, points.index)
            errors[way].append(mean.estimate - truth)
            covered[way].append(mean.low <= truth <= mean.high)
    row = {"problems": problems, "noise": noise, "spread": np.mean(spreads)}
    row["simulations"] = simulations
    for way in errors:
        row[f"half_width_{way}"] = 1.96 * np.std(errors[way])
        row[f"bias_{way}"] = np.mean(errors[way])
        row[f"coverage_{way}"] = POINTS * np.mean(covered[way])
    return row


def main() -> None:
    """Simulate every number of problems with every size of noise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=200)
    simulations = parser.parse_args().simulations
    rows = [simulate(*case, simulations) for case in product(PROBLEMS, NOISES)]
    keep(RESULTS / "pass_rates.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
