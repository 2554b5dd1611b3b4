"""The importance-weighted difference in accuracy: its properties, and its estimates on
answers that are drawn with known probabilities.
"""

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.statistics import importance_weighting
from lib.statistics.importance_weighting import accuracy_difference

NAMES = ["right", "log_p", "drawn_from", "problem"]


def drawn(problems, each, seed, spread=1.0):
    """Return the arrays of answers, with `each` answers of either prompt per problem.

    The log ratio is normal; its mean follows from its variance, so that the
    probabilities under each prompt add up to 1.
    """
    rng = np.random.default_rng(seed)
    problem = np.repeat(np.arange(problems), 2 * each)
    drawn_from = np.tile(np.repeat([0, 1], each), problems)
    ratio = rng.normal((drawn_from - 0.5) * spread**2, spread)
    log_p = rng.normal(-50, 5, len(ratio))[:, None] + np.array([0, 1]) * ratio[:, None]
    right = rng.random(len(ratio)) < 1 / (1 + np.exp(1 - ratio))
    values = (right, log_p, drawn_from, problem)
    return dict(zip(NAMES, values, strict=True))


samples = st.builds(drawn, st.integers(2, 40), st.integers(2, 4), st.integers(0, 10**6))


def numbers(result):
    """Return all numbers of a result as one flat array."""
    found = []
    for value in astuple(result):
        found += np.ravel(value).tolist()
    return np.array(found)


def assert_equal(one, other):
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-6, atol=1e-8)


@given(samples)
def test_equal_prompts_give_0(sample):
    sample["log_p"] = sample["log_p"][:, [0, 0]]
    result = accuracy_difference(**sample)
    assert result.difference.estimate == 0
    assert result.effective_sample_size == pytest.approx(result.mixed_answers)
    assert [mean.estimate for mean in result.mean_weights] == pytest.approx([1, 1])
    # If both probabilities are equal, they cannot be checked against the draws.
    assert np.isnan(result.slope.estimate)


@given(samples)
def test_swapping_the_prompts_changes_the_sign(sample):
    result = accuracy_difference(**sample)
    sample["log_p"] = sample["log_p"][:, ::-1]
    sample["drawn_from"] = 1 - sample["drawn_from"]
    swapped = accuracy_difference(**sample)
    negated = {
        name: replace(old, estimate=-old.estimate, low=-old.high, high=-old.low)
        for name, old in (
            ("difference", result.difference),
            ("counted", result.counted),
        )
    }
    mirrored = result.mean_weights[::-1]
    assert_equal(swapped, replace(result, **negated, mean_weights=mirrored))


@given(samples)
def test_a_constant_added_to_both_log_likelihoods_of_an_answer_changes_nothing(sample):
    result = accuracy_difference(**sample)
    added = np.random.default_rng(0).normal(0, 100, len(sample["right"]))
    sample["log_p"] = sample["log_p"] + added[:, None]
    assert_equal(accuracy_difference(**sample), result)


@given(samples, st.integers(0, 10**6))
def test_the_order_of_answers_and_the_names_of_problems_change_nothing(sample, seed):
    result = accuracy_difference(**sample)
    order = np.random.default_rng(seed).permutation(len(sample["right"]))
    shuffled = {name: values[order] for name, values in sample.items()}
    shuffled["problem"] = [f"problem {name}" for name in shuffled["problem"]]
    assert_equal(accuracy_difference(**shuffled), result)


def copied(sample, ids):
    """Return the answers twice, the second time as answers to problems of these ids."""
    twice = {name: np.concatenate([a, a]) for name, a in sample.items()}
    twice["problem"][len(ids) :] = ids
    return twice


@given(samples)
def test_answers_with_the_same_id_are_of_one_problem(sample):
    result = accuracy_difference(**sample)
    twice = accuracy_difference(**copied(sample, sample["problem"]))
    assert twice.problems == result.problems
    assert twice.mixed_problems == result.mixed_problems
    assert twice.mixed_answers == 2 * result.mixed_answers


@given(samples)
def test_a_copy_under_a_new_id_counts_as_another_problem(sample):
    # The copy narrows the interval without adding information, so users have to remove
    # duplicates.
    result = accuracy_difference(**sample)
    twice = accuracy_difference(**copied(sample, sample["problem"] + 1000))
    size = result.effective_sample_size
    assert twice.effective_sample_size == pytest.approx(2 * size)
    old, new = result.difference, twice.difference
    assert new.estimate == pytest.approx(old.estimate, abs=1e-9)
    if old.error > 0:
        n = result.problems
        narrower = ((n - 1) / (2 * n - 1)) ** 0.5
        assert new.error == pytest.approx(narrower * old.error)


@given(samples)
def test_prompts_without_common_texts_give_the_unweighted_difference(sample):
    apart = np.where(sample["drawn_from"] == 1, 1000.0, -1000.0)
    sample["log_p"] = np.stack([-apart, apart], axis=1)
    result = accuracy_difference(**sample)
    second = sample["drawn_from"] == 1
    observed = sample["right"][second].mean() - sample["right"][~second].mean()
    assert result.difference.estimate == pytest.approx(100 * observed, abs=1e-9)
    assert result.counted.estimate == pytest.approx(100 * observed, abs=1e-9)
    assert_equal(result.difference, result.counted)
    # For the prompts that drew the sample this is the smallest possible size.
    assert result.effective_sample_size == pytest.approx(result.mixed_answers / 2)


def with_mixed(count, problems=30):
    """Return answers to problems, of which `count` have both right and wrong
    answers.
    """
    sample = drawn(problems, each=2, seed=5)
    is_mixed = sample["problem"] < count
    return sample | {"right": np.tile([1, 0, 1, 1], problems) * is_mixed}


@pytest.mark.parametrize("count", [0, 1, 9, 10, 30])
def test_too_few_problems_with_both_right_and_wrong_answers_have_no_interval(count):
    result = accuracy_difference(**with_mixed(count))
    found = result.difference
    assert result.mixed_problems == count
    assert np.isfinite(found.estimate)
    has_interval = np.isfinite([found.low, found.high, found.error])
    assert has_interval.tolist() == 3 * [count >= 10]


def test_the_difference_is_found_and_its_checks_pass():
    sample = drawn(problems=4000, each=2, seed=0)
    result = accuracy_difference(**sample)
    under_either = np.random.default_rng(1).normal([[-0.5], [0.5]], 1, (2, 10**6))
    first, second = (1 / (1 + np.exp(1 - under_either))).mean(1)
    assert result.difference.low < 100 * (second - first) < result.difference.high
    assert result.difference.high - result.difference.low < 3
    for check in (result.slope, *result.mean_weights):
        assert check.low < 1 < check.high
        assert check.high - check.low < 0.2


def test_draws_from_another_temperature_are_found_by_the_slope():
    sample = drawn(problems=400, each=2, seed=0)
    sample["log_p"] = sample["log_p"] * 2
    assert accuracy_difference(**sample).slope.high < 0.7


def test_an_error_of_all_scores_under_one_prompt_is_found_by_the_mean_weight():
    sample = drawn(problems=400, each=2, seed=0)
    right = accuracy_difference(**sample)
    sample["log_p"] = sample["log_p"] + [0, 1]
    wrong = accuracy_difference(**sample)
    # The slope does not depend on a constant.
    assert wrong.slope.estimate == pytest.approx(right.slope.estimate)
    first, second = wrong.mean_weights
    assert first.high < 1 < second.low
    assert first.estimate + second.estimate == pytest.approx(2)


def test_the_slope_is_nan_if_newtons_method_does_not_converge(monkeypatch):
    sample = drawn(problems=40, each=2, seed=0)
    monkeypatch.setattr(importance_weighting, "MOST_STEPS", 2)
    assert np.isnan(accuracy_difference(**sample).slope.estimate)


def test_other_prompts_are_compared_by_the_same_answers():
    sample = drawn(problems=60, each=2, seed=3)
    as_drawn = accuracy_difference(**sample)
    log_p = sample["log_p"]
    same = accuracy_difference(**sample, log_p_compared=log_p)
    assert_equal(same, as_drawn)
    # A prompt half-way between the first and the second one, in log p.
    middle = np.stack([log_p[:, 0], log_p.mean(1)], axis=1)
    between = accuracy_difference(**sample, log_p_compared=middle)
    assert 0 < between.difference.estimate < as_drawn.difference.estimate
    assert between.slope == as_drawn.slope
    # The probabilities under this prompt do not add up to 1; its mean weight shows it.
    assert between.mean_weights[1].high < 1


def test_answers_to_problems_that_are_all_right_or_all_wrong_need_no_likelihood():
    sample = drawn(problems=60, each=2, seed=3)
    result = accuracy_difference(**sample)
    rate = np.bincount(sample["problem"], sample["right"]) / 4
    agrees = np.isin(rate, (0, 1))[sample["problem"]]
    assert 0 < agrees.sum() < len(agrees)
    sample["log_p"][agrees, 0] = np.nan
    without = accuracy_difference(**sample)
    others = {name: values[~agrees] for name, values in sample.items()}
    assert without.slope == accuracy_difference(**others).slope
    assert without.scored_problems == without.mixed_problems < without.problems
    assert result.scored_problems == result.problems
    assert without.counted == result.counted
    assert without.difference == result.difference
    assert without.effective_sample_size == result.effective_sample_size
    sample["log_p"][np.argmin(agrees)] = np.nan
    with pytest.raises(ValueError, match="both right and wrong answers lacks log_p"):
        accuracy_difference(**sample)


def test_an_answer_that_only_one_prompt_can_give_is_left_out_of_the_slope():
    sample = drawn(problems=60, each=2, seed=3)
    of_second = np.flatnonzero(sample["drawn_from"] == 1)[:5]
    kept = np.delete(np.arange(len(sample["right"])), of_second)
    expected = importance_weighting.calibration_slope(
        *(sample[name][kept] for name in ("log_p", "drawn_from", "problem"))
    )
    sample["log_p"][of_second, 0] = -np.inf
    result = accuracy_difference(**sample)
    assert result.slope == expected
    assert np.isfinite(result.difference.error)
    assert result.largest_weight == pytest.approx(2)


@pytest.mark.parametrize("shift", [-1000, 0, 100])
def test_the_effective_sample_size_does_not_depend_on_a_factor_of_the_weights(shift):
    sample = drawn(problems=60, each=2, seed=3)
    third = sample["log_p"][:, [0, 0]] + [0, 1] * np.array(sample["right"])[:, None]
    size = accuracy_difference(**sample, log_p_compared=third).effective_sample_size
    shifted = accuracy_difference(**sample, log_p_compared=third + shift)
    assert shifted.effective_sample_size == pytest.approx(size)


def test_a_prompt_that_gives_none_of_the_answers_has_no_effective_sample():
    sample = drawn(problems=60, each=2, seed=3)
    third = sample["log_p"] + [0, -np.inf]
    result = accuracy_difference(**sample, log_p_compared=third)
    assert result.effective_sample_size == 0


WRONG = {
    r"right has shape \(\), expected \(1,\)": {"right": 1.0},
    "right has values other": {"right": [0, 1, 2, 1]},
    "drawn_from has values other": {"drawn_from": [0, 0, 2, 2]},
    "drawn_from has values other than": {"drawn_from": [0.7, 0, 1, 1]},
    "drawn_from has values other than 0": {"drawn_from": [np.nan, 0, 1, 1]},
    "drawn_from has values other than 0 and": {"drawn_from": ["a", "a", "b", "b"]},
    r"log_p has shape \(4,\), expected \(4, 2\)": {"log_p": [-1.0] * 4},
    r"problem has shape \(3,\), expected \(4,\)": {"problem": [0, 0, 0]},
    "problem 7 has 1 answers of the first prompt and 3": {"drawn_from": [0, 1, 1, 1]},
    "problem 7 has 1 answers of the first prompt and 1": {"problem": [7, 8, 7, 8]},
}


@pytest.mark.parametrize("message, change", WRONG.items())
def test_arrays_that_cannot_be_weighted_are_refused_in_one_line(message, change):
    answers = {"right": [0, 1, 1, 1], "drawn_from": [0, 0, 1, 1], "problem": [7] * 4}
    answers["log_p"] = [[-1.0, -2.0]] * 4
    with pytest.raises(ValueError, match=message):
        accuracy_difference(**answers | change)
