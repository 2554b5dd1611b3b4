"""Coverage of the weighted difference's interval if few problems are mixed.

    python -m studies.weights_few [--simulations 4000]

Answers are simulated as studies/simulated.py says, at a true difference of 2.5 points,
two of either prompt to each of a few problems. Samples are grouped by how many of their
problems have both right and wrong answers. Writes studies/results/weights_few.csv and
prints it: a row per group, with how often the interval over problems covers the truth,
in %, and the Monte-Carlo standard error of that share.
"""

import argparse

import numpy as np
import pandas as pd

from lib.statistics.intervals import POINTS, interval
from studies import simulated
from studies.keeping import RESULTS, keep
from studies.rival_estimators import is_mixed

EFFECT = 2.5  # points
EACH = 2  # answers of either prompt
SIZES = (20, 30, 40, 60, 90, 130)  # problems, of which about 23 % are mixed
EDGES = [0, 1, 3, 5, 10, 15, 20, 30]  # mixed problems


def sampled(problems: int, simulations: int) -> pd.DataFrame:
    """Return the interval of each simulation, and its number of mixed problems."""
    rng = np.random.default_rng(problems)
    given = simulated.problems((simulations, problems), EFFECT, rng)
    draws = simulated.draw(given, EACH, rng)
    found = [interval(values) for values in simulated.weighted_differences(draws)]
    ends = [(mean.low, mean.high) for mean in found]
    table = pd.DataFrame(ends, columns=["low", "high"])
    return table.assign(mixed=is_mixed(draws.right).sum(1))


def table(samples: list[pd.DataFrame]) -> pd.DataFrame:
    """Return a row per group of samples with similar numbers of mixed problems."""
    found = pd.concat(samples, ignore_index=True)
    covers = (found["low"] <= EFFECT) & (found["high"] >= EFFECT)
    groups = covers.groupby(pd.cut(found["mixed"], EDGES, right=False), observed=True)
    share = groups.mean()
    rows = {
        "fewest": [group.left for group in share.index],
        "most": [group.right - 1 for group in share.index],
        "simulations": groups.size(),
        "coverage": POINTS * share,
        "coverage_error": POINTS * np.sqrt(share * (1 - share) / groups.size()),
    }
    return pd.DataFrame(rows)


def main() -> None:
    """Simulate every number of problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=4000)
    simulations = parser.parse_args().simulations
    keep(RESULTS / "weights_few.csv", table([sampled(n, simulations) for n in SIZES]))


if __name__ == "__main__":
    main()
