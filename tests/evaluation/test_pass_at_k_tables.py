"""Tables of several samples of hand-written answers."""

import itertools

import numpy as np
import pytest
from hand_written import run, sampled

from reproduction.evaluation import answer_tables
from reproduction.evaluation.rows import frame


def test_pass_at_k_is_the_mean_over_all_choices_of_k_samples():
    correct = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]])
    # A fifth sample exists for other problems only, so it is missing here.
    fewer = np.column_stack([correct, np.full(4, np.nan)])
    for k in (1, 2, 3, 4):
        choices = itertools.combinations(range(4), k)
        solved = [correct[:, choice].any(axis=1) for choice in choices]
        mean = np.mean(solved, axis=0)
        np.testing.assert_allclose(answer_tables.pass_at_k(correct, k), mean)
        np.testing.assert_allclose(answer_tables.pass_at_k(fewer, k), mean)


@pytest.mark.parametrize("records", [[], run("none", 2, 4)])
def test_the_table_of_pass_at_k_is_empty_without_several_samples(records):
    assert answer_tables.pass_at_k_table(frame(records)).empty


def test_a_problem_with_a_missing_sample_is_left_out_of_larger_k_only():
    answers = frame(sampled("none", ["111", "11_", "000"]))
    (several,) = answer_tables.pass_at_k_table(answers).to_dict("records")
    assert (several["pass@1"], several["pass@3"]) == (pytest.approx(200 / 3), 50)


def test_samples_are_compared_with_those_of_none_on_the_same_problems():
    answers = frame(
        sampled("arm", ["1100", "1111"]) + sampled("none", ["1000", "0000"])
    )
    table = answer_tables.paired_differences(answers).set_index("measure")
    assert set(table.condition) == {"arm"}
    assert set(table.n) == {2}
    assert table.effect["pass@1"] == pytest.approx((25 + 100) / 2)
    # The first problem has a right answer under both.
    assert table.effect["pass@4"] == 50


@pytest.mark.parametrize("records", [[], run("none", 2, 4), sampled("arm", ["10"])])
def test_nothing_is_compared_without_several_samples_under_none(records):
    assert answer_tables.paired_differences(frame(records)).empty
