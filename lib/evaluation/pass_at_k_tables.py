"""What several samples of each answer show: pass@k, and how diverse they are."""

import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from lib.evaluation.answer_tables import mean_and_bounds, rows_of_groups
from lib.statistics.intervals import POINTS

PASSES = (1, 3, 4, 8, 16)  # k of the pass@k that are shown


def diversity(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition with several samples: pass@k and distinct
    2-grams, in %, with intervals.
    """
    rows = []
    for row, group, values in rows_of_groups(answers):
        if row["samples"] < 2:
            continue
        shares = pd.DataFrame(index=values.index)
        for k in PASSES:
            if k <= row["samples"]:
                shares[f"pass@{k}"] = pass_at_k(values, k)
        texts = group.groupby("problem_id", sort=False)["response"]
        shares["distinct 2-grams"] = texts.agg(distinct_2)
        rows.append(row | _means(shares))
    return pd.DataFrame(rows)


def pass_at_k(correct: ArrayLike, k: int) -> np.ndarray:
    """Return the chance (N,) that one of k samples is right, without bias.

    From right or wrong (N, S), NaN where there is no sample: 1 - C(S - c, k) / C(S, k)
    with c of S samples right (Chen et al. 2021, arXiv 2107.03374); NaN where a problem
    has fewer than k.
    """
    correct = np.asarray(correct, dtype=float)
    samples = np.isfinite(correct).sum(1)
    wrong = (correct == 0).sum(1)
    choices = np.where(samples < k, np.nan, special.comb(samples, k))
    return 1 - special.comb(wrong, k) / choices


def distinct_2(texts: Iterable[str]) -> float:
    """Return the share of distinct pairs of neighbouring words among all of them, over
    the texts; 0 without any.
    """
    pairs = []
    for text in texts:
        words = text.split()
        pairs += itertools.pairwise(words)
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def _means(shares: pd.DataFrame) -> dict[str, float]:
    """Return the mean of each column in %, with its ends, over the problems that have
    samples enough.
    """
    means = {}
    for name, share in shares.items():
        names = [str(name), f"{name} low", f"{name} high"]
        means |= mean_and_bounds(names, POINTS * share.dropna())
    return means
