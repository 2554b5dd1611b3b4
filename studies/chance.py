"""P-values of two findings that were noticed by looking at parts of the data.

    python -m studies.chance

The weighted differences of the first 320 problems and of the others differ in the model
whose data were looked at while they grew, and under some token limits the change of
greedy answers by slashes is significant. Both were found by looking at the data.

Writes studies/results/chance.csv and prints it: a row per question, with its statistic
and p-value. If many cuts or limits could have been chosen, the p-value compares the
largest statistic with its null distribution: that of shuffled problems for cuts and
blocks, of random signs of the problems' changes for limits.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import scipy

from lib import evaluation
from lib.evaluation.answer_tables import accuracy_by_problem, with_token_limit
from lib.evaluation.weighted_pass_rates import weighted_differences
from lib.profiles import load_profile
from lib.statistics.intervals import RESAMPLES, holm
from lib.statistics.proportions import mcnemar_exact
from studies.keeping import RESULTS, keep
from studies.limits import LIMITS
from studies.weights import GROWING, LAST_LOOK, in_order

# Enough for a standard error of 0.001 in the p-value of a cut, which is near 0.05.
SHUFFLES = 60_000
CUTS = np.arange(100, 401)  # problems before the cut
BLOCKS = 10


def of_blocks(points: np.ndarray) -> list[dict]:
    """Return rows on whether the effect depends on a problem's position in the sample.

    points: the weighted change of each problem, in the sample's order. A cut compares
    the problems before it with those after it.
    """
    rng = np.random.default_rng(0)
    cut = float(z_of_cuts(points, np.array([LAST_LOOK]))[0])
    largest = np.abs(z_of_cuts(points, CUTS)).max()
    spread = _spread_of_blocks(points)
    by_chance, spreads = [], []
    for _ in range(SHUFFLES):
        shuffled = rng.permutation(points)
        by_chance.append(np.abs(z_of_cuts(shuffled, CUTS)).max())
        spreads.append(_spread_of_blocks(shuffled))
    return [
        _row(f"cut at {LAST_LOOK}", cut, 2 * scipy.stats.norm.sf(abs(cut))),
        _row(
            f"largest of cuts from {CUTS[0]} to {CUTS[-1]}",
            largest,
            _share_reaching(by_chance, largest),
        ),
        _row(f"{BLOCKS} blocks", spread, _share_reaching(spreads, spread)),
    ]


def z_of_cuts(points: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return for each cut the mean before it minus the mean after it, in standard
    errors of that difference.
    """
    n = len(points)
    sums, squares = np.cumsum(points), np.cumsum(points**2)
    before, after = cuts, n - cuts
    sum_before, square_before = sums[cuts - 1], squares[cuts - 1]
    mean_before = sum_before / before
    mean_after = (sums[-1] - sum_before) / after
    variance_before = square_before / before - mean_before**2
    variance_after = (squares[-1] - square_before) / after - mean_after**2
    error = np.sqrt(variance_before / (before - 1) + variance_after / (after - 1))
    return (mean_before - mean_after) / error


def _spread_of_blocks(points: np.ndarray) -> float:
    """Return the standard deviation over the means of BLOCKS blocks, in points."""
    means = [block.mean() for block in np.array_split(points, BLOCKS)]
    return float(np.std(means, ddof=1))


def of_limits(answers: pd.DataFrame) -> list[dict]:
    """Return rows on the change of one model's greedy answers under LIMITS: the limit
    with the smallest p-value by itself, after Holm's correction, and as the largest of
    all.
    """
    changes = np.stack(list(_changes(answers)), axis=1)  # (problems, limits)
    gained = (changes > 0).sum(0)
    lost = (changes < 0).sum(0)
    p_values = [mcnemar_exact(*pair) for pair in zip(lost, gained, strict=True)]
    best = int(np.argmin(p_values))

    # Standard errors of the sums without an effect; a limit without any change has
    # a z of 0.
    errors = np.sqrt((changes**2).sum(0)).clip(min=1)
    z = changes.sum(0) / errors
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(RESAMPLES, len(changes)))
    by_chance = np.abs(signs @ changes / errors).max(1)
    largest = np.abs(z).max()
    return [
        _row(f"limit of {LIMITS[best]} tokens", z[best], p_values[best]),
        _row(
            f"the same, Holm over {len(LIMITS)} limits",
            z[best],
            holm(p_values)[best],
        ),
        _row(
            f"largest of {len(LIMITS)} limits",
            largest,
            _share_reaching(by_chance, largest),
        ),
    ]


def _changes(answers: pd.DataFrame) -> Iterator[np.ndarray]:
    """Yield for each limit the change of each problem by slashes: 1, 0 or -1."""
    for limit in LIMITS:
        cut = with_token_limit(answers, limit)
        right = [
            accuracy_by_problem(cut[cut["condition"] == name])
            for name in ("mless", "none")
        ]
        yield np.sign(right[0] - right[1]).dropna().to_numpy()


def _share_reaching(by_chance: np.ndarray | list[float], found: float) -> float:
    """Return the p-value: the share of statistics, including the observed one, that are
    at least as large as the observed one, up to rounding.
    """
    reached = np.asarray(by_chance) >= found * (1 - 1e-9)
    return (reached.sum() + 1) / (len(reached) + 1)


def _row(question: str, statistic: float, p_value: float) -> dict:
    return {"question": question, "statistic": statistic, "p_value": p_value}


def main() -> None:
    """Write the table of the families' answers."""
    families = load_profile("families")
    draws = evaluation.draws(families)
    assert draws is not None
    drawn = evaluation.answers(families, "draws")
    growing = draws[draws["model"] == GROWING]
    points = weighted_differences(growing, "mless", "none")
    order = in_order(drawn, families.seed)
    tables = {"weighted samples": of_blocks(points.loc[order].to_numpy())}
    answers = evaluation.answers(families)
    model = answers["model"].iloc[0]
    tables["greedy answers"] = of_limits(answers[answers["model"] == model])
    frames = {of: pd.DataFrame(rows) for of, rows in tables.items()}
    keep(RESULTS / "chance.csv", pd.concat(frames, names=["of"]).reset_index("of"))


if __name__ == "__main__":
    main()
