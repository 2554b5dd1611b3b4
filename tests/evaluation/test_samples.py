"""Best of several samples, and the largest of many effects, on small tables."""

import numpy as np
import pytest

from lib.evaluation.samples import best_of, largest_by_chance


def record(problem, sample, correct, extracted="1", condition="none", model="m"):
    names = ("model", "condition", "problem_id", "sample", "correct", "extracted")
    return dict(zip(names, (model, condition, problem, sample, correct, extracted), strict=True))


def test_majority_counts_answers_and_best_counts_any():
    records = [record("a", i, answer == "7", answer) for i, answer in enumerate(["7", "3", "7", "", "3"])]
    records += [record("b", i, answer == "2", answer) for i, answer in enumerate(["5", "5", "2", "", ""])]
    records += [record("c", i, False, "") for i in range(5)]
    (row,) = best_of(records, 5, 0)
    assert row["one"] == pytest.approx(100 * (2 / 5 + 1 / 5 + 0) / 3)
    assert row["majority"] == pytest.approx(100 / 3) and row["best"] == pytest.approx(200 / 3) and row["n"] == 3


def test_too_few_samples_give_no_row():
    assert best_of([record("a", i, True) for i in range(4)], 5, 0) == []
    assert best_of([], 5, 0) == []


def effects(rng, conditions, planted):
    records = []
    for problem in range(60):
        for name in ("none", *conditions):
            chance = 0.9 if name == planted else 0.3
            records.append(record(str(problem), 0, bool(rng.random() < chance), condition=name))
    return records


def test_the_largest_of_many_effects_is_judged_against_chance():
    rng, names = np.random.default_rng(0), [f"arm:c={i}" for i in range(9)]
    (real,) = largest_by_chance(effects(rng, names, planted="arm:c=3"), 0)
    assert real["p_value"] < 0.01 and real["largest"] > 2 * real["expected"] > 0
    p_values = [largest_by_chance(effects(rng, names, planted=None), seed)[0]["p_value"] for seed in range(40)]
    assert np.mean(np.array(p_values) < 0.05) < 0.2 and np.median(p_values) > 0.2


def test_without_a_baseline_or_conditions_there_is_nothing_to_choose():
    assert largest_by_chance([record("a", 0, True, condition="arm")], 0) == []
    assert largest_by_chance([record("a", 0, True)], 0) == []
