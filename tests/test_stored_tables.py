"""Tables of the stored answers: each follows from the data, and its statistics are
those of small examples.
"""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy
from hand_written import record, run

from reproduction.evaluation.rows import frame
from reproduction.evaluation.weighted_pass_rates import weighted_differences
from studies import mean_weight, stored_answers
from studies.keeping import RESULTS

NONE = pd.DataFrame(columns=["model"])


@pytest.mark.parametrize("name", stored_answers.TABLES)
def test_a_stored_table_follows_from_the_stored_answers(name):
    table = stored_answers.TABLES[name]().reset_index(drop=True)
    kept = pd.read_csv(RESULTS / f"{name}.csv")[list(table)]
    pd.testing.assert_frame_equal(kept, table, check_dtype=False, rtol=1e-3)


def test_stored_mean_weights_of_mixed_problems_follow_from_the_stored_scores():
    kept = pd.read_csv(mean_weight.TABLE)
    for model, rows in kept.groupby("model"):
        draws = stored_answers.draws()
        table = mean_weight.table(draws[draws.model == model], None, rows.condition)
        columns = ["condition", "answers", *mean_weight.MIXED_ENDS]
        rows = rows[columns].reset_index(drop=True)
        pd.testing.assert_frame_equal(
            rows, table[columns], check_dtype=False, rtol=1e-3
        )


def test_by_the_authors_rule_the_prompt_decides_if_an_answer_has_no_box():
    answers = [r"\boxed{12}", r"\boxed{2}", "I do not know.", r"\boxed{}"]
    rows = [record("none", said, False, response=said, answer="12") for said in answers]
    judged = stored_answers.judged(frame(rows))[stored_answers.RULES[1:]]
    assert judged["rule_our_prompt"].tolist() == [True, True, True, True]
    assert judged["rule_authors_prompt"].tolist() == [True, True, False, True]


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
    (row,) = stored_answers.nats_and_points(
        solutions(range(19), changes), draws
    ).itertuples()
    assert (row.n, row.mixed_problems) == (19, 19)
    assert row.rho == pytest.approx(1 - 6 * 2 / (19 * (19**2 - 1)))
    assert row.rho_low < row.rho < row.rho_high
    assert row.p_value < 1e-6


def test_the_interval_of_a_correlation_is_fishers_z_interval():
    low, high = stored_answers.correlation_ends(0.0, 403)
    assert (low, high) == pytest.approx((-0.0977, 0.0977), abs=1e-4)


def test_the_z_of_a_cut_equals_that_of_welchs_test():
    points = np.random.default_rng(1).normal(size=60)
    points[:25] += 1
    by_cut = stored_answers.z_of_cuts(points, np.array([20, 25]))
    for cut, z in zip((20, 25), by_cut, strict=True):
        welch = scipy.stats.ttest_ind(points[:cut], points[cut:], equal_var=False)
        assert z == pytest.approx(welch.statistic)


def test_many_cuts_have_a_larger_p_value_than_one(monkeypatch):
    monkeypatch.setattr(stored_answers, "SHUFFLES", 5000)
    points = np.random.default_rng(2).normal(size=500)
    points[: stored_answers.LAST_LOOK] += 0.2
    one, largest, blocks = stored_answers.of_blocks(points)
    assert abs(one["statistic"]) <= largest["statistic"]
    assert one["p_value"] < largest["p_value"] < 1
    assert one["p_value"] < blocks["p_value"] < 1


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
    changes = stored_answers.changes_by_limit(frame(rows), stored_answers.LIMITS)
    alone, corrected, largest = stored_answers.of_limits(changes)
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
    repeat, slashes = stored_answers.pooled(frame(rows)).itertuples()
    assert (repeat.condition, repeat.models, repeat.n) == ("repeat", 2, 40)
    assert (repeat.effect, repeat.gained, repeat.lost) == (20, 16, 0)
    # Two models that gain on the same problems are no more evidence than one.
    alone = stored_answers.pooled(frame(rows[:120]))
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
    monkeypatch.setattr(stored_answers, "TIMES_SHUFFLED", 300)
    (row,) = stored_answers.precision(NONE, draws).to_dict("records")
    assert row["by_shuffling"] == pytest.approx(expected, rel=0.2)
    assert (row["n"], row["answers"]) == (3, 4)


def test_more_answers_narrow_the_interval_only_if_sampling_noise_dominates(monkeypatch):
    monkeypatch.setattr(stored_answers, "TIMES_SHUFFLED", 40)
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
        stored_answers.precision(NONE, draws_of(rows)).iloc[0]
        for rows in (by_chance, by_problem)
    )
    assert halved["half_width_more"] == pytest.approx(halved["half_width"] / 2, rel=0.3)
    assert wide["half_width_more"] > 0.6 * wide["half_width"]
    assert halved["detectable"] == pytest.approx(
        2.8016 / 1.96 * halved["half_width"], rel=1e-3
    )
