"""What picking the best of several gives: of n samples of a problem (Table 8), and of many settings (Fig. 12)."""

import functools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from lib.evaluation.summary import groups, matrix, shares
from lib.statistics import RESAMPLES, bootstrap_mean, pass_at_k


def best_of(records: Sequence[dict], n: int, seed: int) -> list[dict]:
    """Return a row per model and condition with n samples or more, in %, with intervals over problems.

    one: a single sample; best: one of n samples is right (pass@n); majority: the most frequent answer of the first
    n samples is right, the earliest of equally frequent ones.
    """
    rows = []
    for (model, condition), group in groups(records).items():
        values = matrix(group, "correct")
        if values.shape[1] < n:
            continue
        ways = {"one": values.mean(1), "best": pass_at_k(values, n), "majority": _majority(group, n)}
        row = {"model": model, "condition": condition, "n": len(values)}
        for name, share in ways.items():
            mean = bootstrap_mean(share, seed)
            row |= {name: 100 * mean.estimate, f"{name} low": 100 * mean.low, f"{name} high": 100 * mean.high}
        rows.append(row)
    return rows


def _majority(group: Sequence[dict], n: int) -> np.ndarray:
    """Return per problem whether the most frequent answer of its first n samples is right; no answer is no vote."""
    samples: dict[str, list[dict]] = {}
    for record in sorted(group, key=lambda record: record["sample"]):
        samples.setdefault(record["problem_id"], []).append(record)
    right = []
    for some in samples.values():
        votes = Counter(record["extracted"] for record in some[:n] if record["extracted"])
        chosen = votes.most_common(1)[0][0] if votes else None
        right.append(any(record["correct"] for record in some[:n] if record["extracted"] == chosen))
    return np.array(right, dtype=float)


def largest_by_chance(records: Sequence[dict], seed: int) -> list[dict]:
    """Return a row per model: the largest effect against none among its conditions, in points, and what chance gives.

    Under no effect a problem's differences are as likely to have the other sign: `expected` is the mean of the largest
    effect over such flips, `p_value` how often it is at least as large (a max-T test, Westfall and Young 1993).
    """
    by_group, rows = groups(records), []
    for model in dict.fromkeys(record["model"] for record in records):
        if (model, "none") not in by_group:
            continue
        found = {name: shares(group) for (m, name), group in by_group.items() if m == model}
        common = [p for p in found["none"] if all(p in some for some in found.values())]
        changed = [name for name in found if name != "none"]
        if not changed or not common:
            continue
        apart = np.array([[found[name][p] - found["none"][p] for name in changed] for p in common])  # (N, C)
        largest, chance = apart.mean(0).max(), largest_of_flipped(apart, seed) / len(common)
        row = {"model": model, "conditions": len(changed), "n": len(common), "largest": float(largest)}
        p_value = (1 + np.sum(chance >= largest - 1e-9)) / (1 + RESAMPLES)
        rows.append(row | {"expected": float(chance.mean()), "p_value": float(p_value)})
    return rows


def largest_of_flipped(apart: np.ndarray, seed: int) -> np.ndarray:
    """Return the largest column sum of differences (N, C) in each of RESAMPLES random flips of the rows' signs."""
    return (_signs(len(apart), seed) @ apart).max(1)


@functools.lru_cache(maxsize=1)
def _signs(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(RESAMPLES, n))
