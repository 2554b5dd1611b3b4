"""Studies of the precision of the stored answers, and of differences by chance
alone.
"""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy
from hand_written import record, run

from lib.evaluation.rows import frame
from lib.evaluation.weighted_pass_rates import weighted_differences
from lib.prompts.conditions import INSTRUCTION
from lib.prompts.problems import Problem
from studies import (
    chance,
    greedy_and_sampled,
    limits,
    pooled,
    precision,
    solved,
    spelling,
)


def solutions(tokens, changes=None):
    """Return log-likelihoods of solutions with so many tokens, at -0.5 nats a token
    under none, and changed by so many nats under mless.
    """
    problems = [f"p{number}" for number in range(len(tokens))]
    none = pd.DataFrame({"problem_id": problems, "tokens": tokens, "model": "m"})
    none = none.assign(condition="none", nats=-0.5 * np.array(tokens))
    if changes is None:
        return none
    mless = none.assign(condition="mless", nats=none.nats + changes)
    return pd.concat([none, mless], ignore_index=True)


def test_short_solutions_have_a_high_log_likelihood_but_an_average_one_per_token():
    answers = frame(run("none", right=12, n=30))
    table = solved.orders(solutions(range(10, 40)), answers).set_index("order")
    assert table.area.to_dict() == {"log p": 100, "log p per token": 50, "shorter": 100}
    assert set(table.n) == {30}
    assert set(table.solved) == {12}


def draws_of(rows):
    """Return a row per sampled answer, with log p under none and under mless."""
    columns = ["problem_id", "drawn_under", "right", "none", "mless"]
    return pd.DataFrame(rows, columns=columns).assign(model="m")


def mixed(problem, gain):
    """Return four answers to a problem; slashes raise the log-likelihood of the right
    ones by `gain` nats and lower that of the wrong ones.
    """
    return [
        (problem, "none", True, -1.0, -1.0 + gain),
        (problem, "none", False, -1.0, -1.0 - gain),
        (problem, "mless", True, -1.0, -1.0 + gain),
        (problem, "mless", False, -1.0, -1.0 - gain),
    ]


def test_changes_of_likelihood_and_accuracy_are_compared_by_problem():
    gains = [0.1 * number for number in range(-10, 10)]
    rows = [row for i, gain in enumerate(gains) for row in mixed(f"p{i}", gain)]
    draws = draws_of(rows)
    # The last problem has no scored solution, and two problems swap their ranks.
    changes = [gains[1], gains[0], *gains[2:-1]]
    (row,) = solved.nats_and_points(solutions(range(19), changes), draws).itertuples()
    assert (row.n, row.mixed_problems) == (19, 19)
    assert row.rho == pytest.approx(1 - 6 * 2 / (19 * (19**2 - 1)))
    assert row.rho_low < row.rho < row.rho_high
    assert row.p_value < 1e-6


def test_the_interval_of_a_correlation_is_fishers_z_interval():
    low, high = solved.correlation_ends(0.0, 403)
    assert (low, high) == pytest.approx((-0.0977, 0.0977), abs=1e-4)


def test_the_z_of_a_cut_equals_that_of_welchs_test():
    points = np.random.default_rng(1).normal(size=60)
    points[:25] += 1
    by_cut = chance.z_of_cuts(points, np.array([20, 25]))
    for cut, z in zip((20, 25), by_cut, strict=True):
        welch = scipy.stats.ttest_ind(points[:cut], points[cut:], equal_var=False)
        assert z == pytest.approx(welch.statistic)


def test_many_cuts_have_a_larger_p_value_than_one(monkeypatch):
    monkeypatch.setattr(chance, "SHUFFLES", 5000)
    points = np.random.default_rng(2).normal(size=500)
    points[: chance.LAST_LOOK] += 0.2
    one, largest, blocks = chance.of_blocks(points)
    assert abs(one["statistic"]) <= largest["statistic"]
    assert one["p_value"] < largest["p_value"] < 1
    assert one["p_value"] < blocks["p_value"] < 1


def test_a_token_limit_counts_longer_samples_as_wrong():
    rows = []
    for number in range(10):
        for condition in ("none", "mless"):
            # Without slashes one of two answers is right, but for one problem, and
            # right answers are long.
            for sample in range(2):
                right = sample == 1 and condition == "none" and number > 0
                answer = record(condition, f"p{number}", right)
                tokens = 600 if right else 200
                rows.append(answer | {"sample": sample, "completion_tokens": tokens})
    table = limits.of_samples(frame(rows), [512, 768]).set_index("limit")
    assert table.effect.to_dict() == {512: 0, 768: -45}
    assert table.effect_low[768] < -45 < table.effect_high[768] < 0
    assert set(table.n) == {10}


def test_the_largest_of_many_limits_is_compared_with_the_largest_by_chance():
    rows = []
    for number in range(60):
        # With slashes ten more problems are solved, by answers so long that only the
        # highest limits do not truncate them.
        tokens = 600 if number < 10 else 200
        for condition in ("none", "mless"):
            right = condition == "mless" if number < 10 else number % 2 == 0
            answer = record(condition, f"p{number}", right)
            rows.append(answer | {"completion_tokens": tokens})
    alone, corrected, largest = chance.of_limits(frame(rows))
    assert alone["question"] == "limit of 640 tokens"
    assert alone["p_value"] == pytest.approx(2 / 2**10)
    assert corrected["p_value"] == pytest.approx(9 * 2 / 2**10)
    # Three limits truncate none of these answers, and the others all ten.
    assert largest["p_value"] == pytest.approx(2 / 2**10, abs=1e-3)


def test_models_are_pooled_by_problem():
    rows = []
    for model in ("a", "b"):
        rows += run("none", right=4, n=40, model=model)
        rows += run("repeat", right=12, n=40, model=model)
        rows += run("mless", right=4, n=40, model=model)
    repeat, slashes = pooled.pooled(frame(rows)).itertuples()
    assert (repeat.condition, repeat.models, repeat.n) == ("repeat", 2, 40)
    assert (repeat.effect, repeat.gained, repeat.lost) == (20, 16, 0)
    # Two models that gain on the same problems are no more evidence than one.
    alone = pooled.pooled(frame(rows[:120]))
    assert repeat.low == pytest.approx(alone.low[0])
    assert (slashes.effect, slashes.p_holm) == (0, 1)
    assert repeat.p_holm == pytest.approx(2 * repeat.p_value)


def test_shuffling_estimates_the_sampling_noise_of_the_weighted_difference(monkeypatch):
    answers = mixed("p0", 0.5) + mixed("p1", -0.2)
    settled = [("p2", half, True, np.nan, np.nan) for half in ("none", "mless") * 2]
    draws = draws_of(answers + settled)
    expected = 0.0
    for start in (0, 4):
        of_problem = draws.iloc[start : start + 4]
        squares = [
            weighted_differences(of_problem.assign(right=right), "mless", "none").iloc[
                0
            ]
            ** 2
            for right in map(list, permutations(of_problem.right))
        ]
        expected += np.mean(squares) / 3  # problems
    monkeypatch.setattr(precision, "SHUFFLES", 300)
    (row,) = precision.of_weighted(draws)
    assert row["by_shuffling"] == pytest.approx(expected, rel=0.2)
    assert (row["n"], row["answers"]) == (3, 4)


def test_more_answers_narrow_the_interval_only_if_sampling_noise_dominates(monkeypatch):
    monkeypatch.setattr(precision, "SHUFFLES", 40)
    rng = np.random.default_rng(4)
    by_chance, by_problem = [], []
    for number in range(500):
        answers = mixed(f"p{number}", gain=0.5)
        ratios = rng.permutation([answer[-1] for answer in answers])
        by_chance += [
            (*answer[:-1], ratio) for answer, ratio in zip(answers, ratios, strict=True)
        ]
        # Slashes make the right answers likelier in every other problem.
        by_problem += mixed(f"p{number}", gain=3.0 * (number % 2))
    halved, wide = (
        precision.of_weighted(draws_of(rows))[0] for rows in (by_chance, by_problem)
    )
    assert halved["half_width_more"] == pytest.approx(halved["half_width"] / 2, rel=0.3)
    assert wide["half_width_more"] > 0.6 * wide["half_width"]
    assert halved["detectable"] == pytest.approx(
        2.8016 / 1.96 * halved["half_width"], rel=1e-3
    )


def test_the_precision_of_greedy_answers_follows_from_their_discordant_pairs():
    rows = run("none", right=50, n=100) + run("mless", right=54, n=100)
    (row,) = precision.of_greedy(frame(rows))
    change = np.array([100.0] * 4 + [0] * 96)
    assert row["half_width"] == pytest.approx(1.96 * change.std(ddof=1) / 10, rel=1e-3)


def test_a_comma_in_the_instruction_is_compared_on_the_same_problems():
    fields = {"unique_id": "p0", "problem": "What is $1 + 1$?", "answer": "2"}
    posed = spelling.spelled(Problem(**fields)).problem
    commas = posed.count(",") - INSTRUCTION.count(",")
    assert posed.replace(",", "") == f"{INSTRUCTION} What is $1 + 1$?"
    assert commas == 1

    stored = solutions(range(10, 40), changes=-1.0)
    none = stored[stored.condition == "none"]
    # Five problems have no score with the comma.
    of_spelled = none.assign(condition="bare", nats=none.nats + 0.5)[:25]
    (row,) = spelling.compared(of_spelled, stored).itertuples()
    assert row.n == 25
    assert (row.comma, row.slashes) == pytest.approx((0.5, -1))


def test_greedy_and_sampled_changes_are_compared_on_the_problems_of_both():
    # Without slashes no greedy answer is right, and with them every second one is.
    greedy = frame(
        [record("none", f"p{number}", False) for number in range(12)]
        + [record("mless", f"p{number}", number % 2 == 0) for number in range(12)]
    )
    draws = draws_of(
        [row for number in range(2, 20) for row in mixed(f"p{number}", 0.5)]
    ).assign(model=greedy.model[0])
    (row,) = greedy_and_sampled.compare(greedy, draws).itertuples()
    by_weights = weighted_differences(draws, "mless", "none").iloc[0]
    assert row.n == 10
    assert (row.greedy, row.sampled) == (50, pytest.approx(by_weights))
    assert row.difference == pytest.approx(50 - by_weights)
    assert row.difference_low < row.difference < row.difference_high
