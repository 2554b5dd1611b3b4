"""Tables of hand-written records: what they show is known."""

import math

import numpy as np
import pytest

from lib import statistics
from lib.evaluation.summary import (
    breakdown,
    distinct_2,
    diversity,
    graders,
    groups,
    matrix,
    noise_floor,
    power,
    summarise,
)


def record(condition, problem, correct, sample=0, **others):
    fields = {"model": "m", "condition": condition, "problem_id": problem, "sample": sample, "correct": correct}
    fields |= dict.fromkeys(("correct_authors", "correct_exact", "correct_authors_on_completion"), correct)
    fields |= {"method": "equal", "finish_reason": "stop", "elicited": False, "run_on": False}
    return fields | {"level": 1, "subject": "Algebra", "response": "a b c"} | others


def run(condition, right, n, **others):
    """The first `right` of n problems are solved."""
    return [record(condition, f"p{i}", i < right, **others) for i in range(n)]


def test_conditions_come_in_order_with_none_first():
    records = run("mless:10", 1, 2) + run("none", 1, 2) + run("mless@end", 1, 2)
    assert [condition for _, condition in groups(records)] == ["none", "mless:10", "mless@end"]


def test_a_row_has_accuracy_rates_and_pairs():
    records = run("none", 10, 40) + run("mless", 20, 40, finish_reason="length", run_on=True, method="no-box")
    none, mless = summarise(records, seed=0)
    assert (none["accuracy"], none["n"], none["samples"]) == (25, 40, 1) and "effect" not in none
    assert (mless["effect"], mless["only_none"], mless["only_this"]) == (25, 0, 10)
    assert mless["p_value"] == pytest.approx(statistics.mcnemar_exact([0] * 10, [1] * 10))
    assert (mless["truncated"], mless["run_on"], mless["no_box"]) == (100, 100, 100)
    assert none["low"] < 25 < none["high"] and mless["effect_low"] < 25 < mless["effect_high"]


def test_p_values_are_corrected_over_all_conditions_and_models():
    records = run("none", 10, 40) + run("mless", 20, 40) + run("mful", 14, 40)
    records += [r | {"model": "other"} for r in records]
    tested = [row for row in summarise(records, seed=0) if "p_value" in row]
    assert len(tested) == 4
    expected = statistics.holm([row["p_value"] for row in tested])
    assert [row["p_holm"] for row in tested] == pytest.approx(list(expected))


def test_only_problems_that_both_conditions_answered_are_compared():
    _, mless = summarise(run("none", 5, 10) + run("mless", 9, 30), seed=0)
    assert mless["n"] == 30 and mless["only_none"] + mless["only_this"] == 4 and mless["effect"] == 40


def test_samples_of_one_problem_are_not_independent():
    rng = np.random.default_rng(0)
    solved = rng.random(20) < 0.5
    records = [record("none", f"p{i}", bool(solved[i]), sample) for i in range(20) for sample in range(8)]
    (row,) = summarise(records, seed=0)
    assert (row["n"], row["samples"]) == (20, 8)
    assert row["high"] - row["low"] > 35  # as wide as 20 problems make it, not 160


def test_effects_over_samples_are_tested_by_problem():
    records = [
        record(c, f"p{i}", c == "mless" or s == 0, s) for c in ("none", "mless") for i in range(12) for s in (0, 1)
    ]
    mless = summarise(records, seed=0)[1]
    assert mless["effect"] == pytest.approx(50) and mless["p_value"] == pytest.approx(2 / 2**12)


def test_graders_stand_side_by_side():
    records = run("none", 10, 20) + run("mless", 12, 20)
    for item in records:
        item["correct_authors"] = True
    rows = graders(records, seed=0)
    published = [row for row in rows if row["grader"] == "authors' rule as published"]
    assert [row["accuracy"] for row in published] == [100, 100]
    assert [row["disagree"] for row in published] == [10, 8] and published[1]["effect"] == 0
    assert rows[4]["effect"] == pytest.approx(10)


def test_levels_and_subjects_are_broken_down():
    records = run("none", 2, 4) + [r | {"problem_id": r["problem_id"] + "x", "level": 5} for r in run("none", 0, 4)]
    rows = breakdown(records, "level")
    assert [(row["level"], row["n"], row["accuracy"]) for row in rows] == [(1, 4, 50), (5, 4, 0)]


def test_pass_at_k_and_diversity_come_with_intervals():
    records = [record("none", f"p{i}", s == 0, s, response=f"x{s} y z") for i in range(6) for s in range(4)]
    (row,) = diversity(records, seed=0)
    assert (row["pass@1"], row["pass@3"], row["pass@4"]) == (25, 75, 100) and "pass@8" not in row
    assert row["distinct 2-grams"] == pytest.approx(100 * 5 / 8)
    assert diversity(run("none", 2, 4), seed=0) == []


@pytest.mark.parametrize(
    "texts, share", [(["a b a b"], 2 / 3), (["a b", "a b"], 1 / 2), ([""], 0), (["word"], 0), ([], 0)]
)
def test_distinct_2_grams(texts, share):
    assert distinct_2(texts) == pytest.approx(share)


def test_the_noise_floor_is_what_seeds_alone_change():
    records = [record("none", f"p{i}", (i + s) % 2 == 0, s) for i in range(10) for s in range(2)]
    (row,) = noise_floor(records)
    assert (row["difference"], row["discordant"], row["n"], row["samples"]) == (0, 100, 10, 2)
    assert noise_floor(run("none", 1, 3)) == []


def test_power_says_what_n_shows_and_what_n_is_needed():
    rows = summarise(run("none", 10, 100) + run("mless", 20, 100), seed=0)
    (row,) = power(rows, effect=2)
    assert row["needed"] == statistics.n_needed(0.02, 0.1)
    assert row["smallest"] == pytest.approx(100 * statistics.smallest_effect(100, 0.1))
    same = summarise(run("none", 10, 100) + run("mless", 10, 100), seed=0)
    assert math.isnan(power(same, effect=2)[0]["needed"])


def test_a_missing_sample_is_not_a_wrong_one():
    records = [record("none", "a", True), record("none", "a", True, 1), record("none", "b", False)]
    values = matrix(records, "correct")
    assert values[0].tolist() == [1, 1] and np.isnan(values[1, 1])
