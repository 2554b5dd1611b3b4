"""What several samples of a problem give (pass@k, best of n, diversity, noise), and the best of many settings."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib.evaluation.records import Record, groups, matrix, shares
from lib.evaluation.summary import over_problems
from lib.statistics import POINTS, RESAMPLES, largest_of_flipped, pass_at_k

KS = (1, 3, 4, 8, 16)


def diversity(records: Sequence[Record], outcome: str = "correct") -> pd.DataFrame:
    """Return a row per model and condition with several samples: pass@k and distinct 2-grams, in %, with intervals."""

    def measures(group: pd.DataFrame, values: np.ndarray) -> dict[str, np.ndarray]:
        found = {f"pass@{k}": pass_at_k(values, k) for k in KS if k <= values.shape[1]}
        return found | {"distinct 2-grams": np.array([distinct_2(texts) for texts in by_problem(group).values()])}

    return _means(records, 2, outcome, measures)


def best_of(records: Sequence[Record], n: int, outcome: str = "correct") -> pd.DataFrame:
    """Return a row per model and condition, in %: one sample, best of n (pass@n), majority of the first n; Table 8."""

    def measures(group: pd.DataFrame, values: np.ndarray) -> dict[str, np.ndarray]:
        return {"one": values.mean(1), "best": pass_at_k(values, n), "majority": _majority(group, n, outcome)}

    return _means(records, n, outcome, measures)


def _means(records: Sequence[Record], least: int, outcome: str, measures: Callable) -> pd.DataFrame:
    """Return a row per model and condition with so many samples: the mean over problems of each of its measures."""
    rows = []
    for (model, condition), group in groups(records).items():
        values = matrix(group, outcome)  # (problems, samples)
        if values.shape[1] < least:
            continue
        row = {"model": model, "condition": condition, "n": len(values), "samples": values.shape[1]}
        for name, share in measures(group, values.to_numpy()).items():
            found = pd.Series(POINTS * share, values.index)
            row |= over_problems(found, "share", name, f"{name} low", f"{name} high")
        rows.append(row)
    return pd.DataFrame(rows)


def _majority(group: pd.DataFrame, n: int, outcome: str) -> np.ndarray:
    """Return per problem whether the first of the most frequent answers of n samples is right; none is no vote."""
    right = []
    for _, some in group.sort_values("sample", kind="stable").groupby("problem_id", sort=False):
        first = some.head(n)
        votes = Counter(answer for answer in first["extracted"] if answer).most_common(1)
        right.append(bool(votes) and first[outcome][first["extracted"] == votes[0][0]].any())
    return np.array(right, dtype=float)


def by_problem(group: pd.DataFrame) -> dict[str, list[str]]:
    """Return the responses to each problem, in the order in which `matrix` has the problems."""
    return group.groupby("problem_id", sort=False)["response"].agg(list).to_dict()


def distinct_2(texts: Sequence[str]) -> float:
    """Return the share of distinct pairs of neighbouring words among all of them, over the texts; 0 without any."""
    pairs = [two for text in texts for two in zip(text.split(), text.split()[1:], strict=False)]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def noise_floor(records: Sequence[Record], outcome: str = "correct") -> pd.DataFrame:
    """Return a row per model: how far two runs of none that differ in nothing but the seed lie apart, in points.

    `difference` and `largest` are of two samples' accuracies, `discordant` of problems that one of the two solves.
    """
    rows = []
    for (model, condition), group in groups(records).items():
        values = matrix(group, outcome).to_numpy()
        if condition == "none" and values.shape[1] > 1:
            first, second = np.triu_indices(values.shape[1], 1)
            apart = 100 * (values[:, first] - values[:, second])  # (problems, pairs of samples)
            between = np.abs(apart.mean(0))
            row = {"model": model, "n": len(values), "samples": values.shape[1], "difference": between.mean()}
            rows.append(row | {"discordant": np.abs(apart).mean(), "largest": between.max()})
    return pd.DataFrame(rows)


def largest_by_chance(records: Sequence[Record], seed: int, outcome: str = "correct") -> pd.DataFrame:
    """Return a row per model: the largest effect against none among its conditions, in points, and what chance gives.

    Under no effect a problem's differences are as likely to have the other sign: `expected` is the mean of the largest
    effect over such flips, `p_value` how often it is at least as large (a max-T test, Westfall and Young 1993).
    """
    rows, found = [], {name: shares(group, outcome) for name, group in groups(records).items()}
    for model in dict.fromkeys(model for model, _ in found):
        table = pd.concat({c: some for (m, c), some in found.items() if m == model}, axis=1, join="inner")
        if "none" in table and table.shape[1] > 1 and len(table):
            apart = table.drop(columns="none").sub(table["none"], axis=0).to_numpy()  # (N, conditions)
            largest, chance = apart.mean(0).max(), largest_of_flipped(apart, seed) / len(apart)
            p_value = (1 + np.sum(chance >= largest - 1e-9)) / (1 + RESAMPLES)
            row = {"model": model, "conditions": apart.shape[1], "n": len(apart), "largest": largest}
            rows.append(row | {"expected": chance.mean(), "p_value": p_value})
    return pd.DataFrame(rows)
