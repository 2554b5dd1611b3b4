"""Best of several samples, and the largest of many effects, on small tables."""

import numpy as np
import pytest
from hand_written import record, run

from lib.evaluation.samples import best_of, distinct_2, diversity, largest_by_chance, noise_floor
from lib.statistics import largest_of_flipped


def answered(problem, sample, correct, extracted="1"):
    return record("none", problem, correct, sample, extracted=extracted)


def test_majority_counts_answers_and_best_counts_any():
    records = [answered("a", i, answer == "7", answer) for i, answer in enumerate(["7", "3", "7", "", "3"])]
    records += [answered("b", i, answer == "2", answer) for i, answer in enumerate(["5", "5", "2", "", ""])]
    records += [answered("c", i, False, "") for i in range(5)]
    (row,) = best_of(records, 5).to_dict("records")
    assert row["one"] == pytest.approx(100 * (2 / 5 + 1 / 5 + 0) / 3)
    assert row["majority"] == pytest.approx(100 / 3) and row["best"] == pytest.approx(200 / 3) and row["n"] == 3


def test_the_best_of_fewer_samples_is_that_of_the_first_in_their_order():
    answers = {"a": ["3", "7", "7", "7", "7"], "b": ["2", "2", "5", "5", "5"]}
    records = [answered(name, i, x in "72", x) for name, some in answers.items() for i, x in enumerate(some)]
    (row,) = best_of(records[::-1], 3).to_dict("records")
    # One of three is right: surely of five with four right ones; of b all but where the three others are drawn.
    assert (row["majority"], row["one"], row["samples"]) == (100, 60, 5)
    assert row["best"] == pytest.approx(100 * (1 + 1 - 1 / 10) / 2)
    (row,) = best_of(records, 1).to_dict("records")
    assert (row["majority"], row["best"]) == (50, 60)


def test_too_few_samples_give_no_row():
    assert best_of([answered("a", i, True) for i in range(4)], 5).empty
    assert best_of([], 5).empty


def effects(rng, conditions, planted):
    records = []
    for problem in range(60):
        for name in ("none", *conditions):
            chance = 0.9 if name == planted else 0.3
            records.append(record(name, str(problem), bool(rng.random() < chance)))
    return records


def test_the_largest_of_many_effects_is_judged_against_chance():
    rng, names = np.random.default_rng(0), [f"arm:c={i}" for i in range(9)]
    (real,) = largest_by_chance(effects(rng, names, planted="arm:c=3"), 0).to_dict("records")
    assert real["p_value"] < 0.01 and real["largest"] > 2 * real["expected"] > 0
    tables = [largest_by_chance(effects(rng, names, planted=None), seed) for seed in range(40)]
    p_values = [table["p_value"].iloc[0] for table in tables]
    assert np.mean(np.array(p_values) < 0.05) < 0.2 and np.median(p_values) > 0.2


def test_effects_that_are_all_ties_are_chance():
    (row,) = largest_by_chance(run("none", 3, 8) + run("a", 3, 8) + run("b", 3, 8), 0).to_dict("records")
    assert (row["largest"], row["expected"], row["p_value"], row["conditions"], row["n"]) == (0, 0, 1, 2, 8)


def test_the_largest_effect_is_over_the_problems_that_every_condition_answered():
    (row,) = largest_by_chance(run("none", 0, 9) + run("a", 1, 1), 0).to_dict("records")
    assert (row["n"], row["largest"]) == (1, 100)
    assert row["p_value"] == pytest.approx(0.5, abs=0.03) and row["expected"] == pytest.approx(0, abs=5)


def test_the_flips_are_the_seeds():
    apart = np.arange(12.0).reshape(6, 2)
    one, again, other = (largest_of_flipped(apart, seed) for seed in (1, 1, 2))
    assert (one == again).all() and (one != other).any()
    assert abs(largest_of_flipped(np.ones((1, 1)), 0).mean()) < 0.05


def test_without_a_baseline_or_conditions_there_is_nothing_to_choose():
    assert largest_by_chance([record("arm", "a", True)], 0).empty
    assert largest_by_chance([record("none", "a", True)], 0).empty


def test_pass_at_k_and_diversity_come_with_intervals():
    records = [record("none", f"p{i}", s == 0, s, response=f"x{s} y z") for i in range(6) for s in range(4)]
    (row,) = diversity(records).to_dict("records")
    assert (row["pass@1"], row["pass@3"], row["pass@4"]) == (25, 75, 100) and "pass@8" not in row
    assert row["distinct 2-grams"] == pytest.approx(100 * 5 / 8)
    assert diversity(run("none", 2, 4)).empty


@pytest.mark.parametrize(
    "texts, share", [(["a b a b"], 2 / 3), (["a b", "a b"], 1 / 2), ([""], 0), (["word"], 0), ([], 0)]
)
def test_distinct_2_grams(texts, share):
    assert distinct_2(texts) == pytest.approx(share)


def test_the_noise_floor_is_what_seeds_alone_change():
    records = [record("none", f"p{i}", (i + s) % 2 == 0, s) for i in range(10) for s in range(2)]
    (row,) = noise_floor(records).to_dict("records")
    assert (row["difference"], row["discordant"], row["n"], row["samples"]) == (0, 100, 10, 2)
    assert noise_floor(run("none", 1, 3)).empty
    records = [record("none", f"p{i}", i < solved, s) for s, solved in enumerate((2, 5, 6)) for i in range(10)]
    (row,) = noise_floor(records).to_dict("records")
    assert [row[name] for name in ("difference", "largest", "discordant")] == pytest.approx([80 / 3, 40, 80 / 3])
