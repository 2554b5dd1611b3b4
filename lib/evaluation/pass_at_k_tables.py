"""Tabulate several samples per problem: pass@k, and how diverse the samples are."""

import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from lib.evaluation.answer_tables import (
    EFFECT_INTERVAL,
    GROUP_COLUMNS,
    mean_and_bounds,
    rows_of_groups,
)
from lib.statistics.intervals import POINTS

PASSES = (1, 3, 4, 5, 8, 16)  # the k for which pass@k is shown
DIFFERENCE_COLUMNS = [*GROUP_COLUMNS, "measure", "n", *EFFECT_INTERVAL]


def diversity(answers: pd.DataFrame) -> pd.DataFrame:
    """Return pass@k and the share of distinct 2-grams, in % with intervals, in a row
    per model and condition that has several samples of each problem.
    """
    rows = []
    for row, group, values in rows_of_groups(answers):
        if row["samples"] < 2:
            continue
        rows.append(row | _means(_measures_by_problem(group, values)))
    return pd.DataFrame(rows)


def paired_differences(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the change of each measure of `diversity` from `none` to each other
    condition on the same problems, in points with its interval.

    A row per model, condition and measure has n, the problems with the measure under
    both. There is no row if `none` lacks several samples of each problem.
    """
    rows = []
    of_none: dict[str, pd.DataFrame] = {}  # by model; answer_groups has none first
    for row, group, values in rows_of_groups(answers):
        if row["samples"] < 2:
            continue
        measures = _measures_by_problem(group, values)
        if row["condition"] == "none":
            of_none[row["model"]] = measures
        elif row["model"] in of_none:
            for name, change in (measures - of_none[row["model"]]).items():
                known = change.dropna()
                if known.empty:
                    continue
                fields = {"measure": name, "n": len(known)}
                fields |= mean_and_bounds(EFFECT_INTERVAL, known, "difference")
                rows.append({key: row[key] for key in GROUP_COLUMNS} | fields)
    return pd.DataFrame(rows, columns=DIFFERENCE_COLUMNS)


def _measures_by_problem(group: pd.DataFrame, values: pd.DataFrame) -> pd.DataFrame:
    """Return pass@k and the share of distinct 2-grams by problem, in %.

    group: the answers of one model and condition. values: their `right_by_sample`.
    """
    samples = values.shape[1]
    measures = {f"pass@{k}": pass_at_k(values, k) for k in PASSES if k <= samples}
    shares = pd.DataFrame(measures, index=values.index)
    shares["distinct 2-grams"] = distinct_2_by_problem(group)
    return POINTS * shares


def pass_at_k(correct: ArrayLike, k: int) -> np.ndarray:
    """Return the unbiased estimate (N,) of the probability that at least one of k
    samples of a problem is right.

    correct: (N, S), 1 for right, 0 for wrong, NaN for a missing sample. With c of S
    samples right, the estimate is 1 - C(S - c, k) / C(S, k) (Chen et al. 2021, arXiv
    2107.03374); NaN for a problem with fewer than k samples.
    """
    correct = np.asarray(correct, dtype=float)
    samples = np.isfinite(correct).sum(1)
    wrong = (correct == 0).sum(1)
    choices = np.where(samples < k, np.nan, special.comb(samples, k))
    return 1 - special.comb(wrong, k) / choices


def distinct_2_by_problem(group: pd.DataFrame) -> pd.Series:
    """Return `distinct_2` of the answers of one model and condition to each problem."""
    return group.groupby("problem_id", sort=False)["response"].agg(distinct_2)


def distinct_2(texts: Iterable[str]) -> float:
    """Return the share (0 to 1) of distinct pairs among all pairs of neighbouring words
    in the texts; 0 if there is no pair.
    """
    pairs = []
    for text in texts:
        words = text.split()
        pairs += itertools.pairwise(words)
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def _means(shares: pd.DataFrame) -> dict[str, float]:
    """Return the mean of each column, with the bounds of its interval, over the
    problems that have enough samples for it; without columns that no problem has.
    """
    means = {}
    for name, share in shares.dropna(axis=1, how="all").items():
        names = [str(name), f"{name} low", f"{name} high"]
        means |= mean_and_bounds(names, share.dropna())
    return means
