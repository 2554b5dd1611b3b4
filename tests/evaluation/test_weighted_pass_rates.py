"""Weighted pass rates of answers whose numbers are worked out by hand, and of a model
that can give ten texts, whose expectation is summed over every draw there can be.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from reproduction.evaluation.pass_rate_tables import pass_rate_table, slope_of_draws
from reproduction.evaluation.weighted_pass_rates import (
    checked_weighted_differences,
    is_mixed,
    observed_differences,
    weighted_differences,
)

HALVES = ["none", "none", "mless", "mless"]
# Eighths, the probabilities of four answers of which the second is wrong.
FOUR = {"none": [4, 2, 2, 1], "mless": [2, 2, 4, 1], "layer-1-only": [6, 2, 2, 1]}
SLASHES = ("mless", "none")


def four_draws(*problems, **changes):
    """Return two answers of each half to each of these problems."""
    four = pd.DataFrame({"drawn_under": HALVES, "sample": range(4)})
    four["right"] = [True, False, True, True]
    four["finish_reason"] = ["length", "stop", "stop", "context"]
    four[list(FOUR)] = np.log(np.array(list(FOUR.values())).T / 8)
    of_problems = [four.assign(problem_id=problem) for problem in problems]
    together = pd.concat(of_problems, ignore_index=True)
    return together.assign(**{"model": "tiny"} | changes)


def row_of(draws, pair=SLASHES):
    (row,) = pass_rate_table(draws, [pair]).to_dict("records")
    return row


@pytest.mark.parametrize(
    "treatment, reference",
    [SLASHES, ("layer-1-only", "none"), ("none", "layer-1-only")],
)
def test_the_mean_over_all_draws_is_the_exact_difference(treatment, reference):
    right = np.array([1, 1, 0, 1, 0, 0, 0, 1, 0, 0], dtype=bool)
    rng = np.random.default_rng(0)
    p = {name: rng.dirichlet(np.full(10, 2.0)) for name in FOUR}
    tuples = np.array(list(product(range(10), repeat=4)))
    probability = p["none"][tuples[:, :2]].prod(1) * p["mless"][tuples[:, 2:]].prod(1)
    texts = tuples.ravel()
    draws = pd.DataFrame({name: np.log(p[name][texts]) for name in FOUR})
    draws["model"] = "tiny"
    draws["problem_id"] = np.repeat(np.arange(len(tuples)), 4)
    draws["drawn_under"] = HALVES * len(tuples)
    draws["right"] = right[texts]
    mean = checked_weighted_differences(draws, treatment, reference) @ probability
    assert mean == pytest.approx(100 * (p[treatment] - p[reference]) @ right, abs=1e-9)


def test_four_answers_are_weighted_as_by_hand():
    # p / p_mix is 2/3, 1, 4/3, 1 under mless, and 4/3, 1, 2/3, 1 under none. The other
    # answers' pass rate is (0 + 1) / 2 of the first and (1 + 1/2) / 2 of the third.
    first = (1 - 1 / 2) * (2 / 3 - 4 / 3)
    third = (1 - 3 / 4) * (4 / 3 - 2 / 3)
    points = weighted_differences(four_draws("a"), *SLASHES)
    assert points["a"] == pytest.approx(100 * (first + third) / 4)
    # One of two is right under none, and both under mless.
    assert observed_differences(four_draws("a"))["a"] == 50


@pytest.mark.parametrize("scored", [True, False])
def test_a_row_has_diagnostics_whether_or_not_agreeing_answers_are_scored(scored):
    agreed = four_draws("c", right=True, finish_reason="stop")
    if not scored:
        agreed[list(FOUR)] = np.nan
    draws = pd.concat([four_draws("a", "b"), agreed])
    points = weighted_differences(draws, *SLASHES)
    row = row_of(draws)
    # If all answers to a problem agree, the estimator multiplies their weights by 0.
    assert points["c"] == 0
    assert row["points"] == pytest.approx(points["a"] * 2 / 3)
    assert (row["n"], row["mixed_problems"], row["mixed_answers"]) == (3, 2, 8)
    # The log-likelihoods of each four answers differ by -log 2, 0, log 2 and 0.
    assert row["log_ratio_sd"] == pytest.approx(np.log(2) * (4 / 7) ** 0.5)
    # Each of problems a and b has an answer of either half that a limit cut off.
    assert row["cut_none"] == row["cut_mless"] == pytest.approx(100 * 2 / 6)


@pytest.mark.parametrize("pair", [("none", "layer-1-only"), ("layer-1-only", "none")])
def test_the_effective_sample_size_is_the_smaller_one_of_both_conditions(pair):
    # The weights are 4/3, 1, 2/3, 1 under none and 2, 1, 2/3, 1 under layer-1-only.
    row = row_of(four_draws("a"), pair)
    squares = 2**2 + 1 + (2 / 3) ** 2 + 1
    assert row["effective_sample_size"] == pytest.approx(
        (2 + 1 + 2 / 3 + 1) ** 2 / squares
    )
    assert row["largest_weight"] == pytest.approx(2)
    assert np.isnan(row["observed"])


def halves(ratio, slope):
    """Return answers with these log-likelihood ratios, whose prompts are drawn so that
    the calibration slope is `slope`.
    """
    rng = np.random.default_rng(0)
    under_mless = rng.random(len(ratio)) < 1 / (1 + np.exp(-slope * ratio))
    draws = pd.DataFrame({"none": -50.0, "mless": ratio - 50})
    draws["problem_id"] = np.arange(len(ratio)) // 4
    draws["drawn_under"] = np.where(under_mless, "mless", "none")
    return draws


@pytest.mark.parametrize("true_slope", [1, 0.3])
def test_the_calibration_slope_is_1_for_draws_with_the_scored_chances(true_slope):
    ratio = np.random.default_rng(1).normal(0.3, 1, 2000)
    slope, low, high = slope_of_draws(halves(ratio, true_slope))
    assert low < true_slope < high
    assert 0.1 < high - low < 0.3
    assert low < slope < high


def test_the_slopes_interval_is_clustered_by_problem_and_uses_scored_answers():
    drawn = halves(np.random.default_rng(1).normal(0, 1, 400), 1)
    copied = pd.concat([drawn] * 4)
    assert slope_of_draws(copied) == pytest.approx(slope_of_draws(drawn))
    for half in ("none", "mless"):
        lost = drawn.assign(drawn_under=half, **{half: np.nan})
        unscored = slope_of_draws(pd.concat([drawn, lost]))
        assert unscored == pytest.approx(slope_of_draws(drawn))
        assert np.isnan(slope_of_draws(drawn[drawn.drawn_under == half])).all()
    assert np.isnan(slope_of_draws(drawn.drop(columns="mless"))).all()
    # The slope is infinite if the halves do not overlap.
    for is_apart in (drawn.mless > drawn.none, drawn.mless < drawn.none):
        apart = drawn.assign(drawn_under=np.where(is_apart, "mless", "none"))
        assert np.isnan(slope_of_draws(apart)).all()
    assert np.isnan(slope_of_draws(drawn[drawn.problem_id < 4])).all()
    assert not np.isnan(slope_of_draws(drawn[drawn.problem_id < 5])).any()


def test_each_model_is_estimated_from_its_own_answers():
    # A problem that one model always solves and another never does is not mixed.
    first = four_draws("a", right=True)
    second = four_draws("a", "b", model="other")
    second.loc[:3, "right"] = False
    both = pd.concat([first, second])
    assert is_mixed(both).tolist() == [False] * 8 + [True] * 4
    alone = [pass_rate_table(draws, [SLASHES]) for draws in (first, second)]
    expected = pd.concat(alone, ignore_index=True)
    pd.testing.assert_frame_equal(pass_rate_table(both, [SLASHES]), expected)


def uneven(effective, condition):
    """Return forty answers, of which `effective` have nearly all of the weight under a
    condition.
    """
    draws = four_draws(*"abcdefghij", **dict.fromkeys(FOUR, 0.0))
    draws[condition] = [0.0] * effective + [-50.0] * (40 - effective)
    return draws


@pytest.mark.parametrize("effective, is_reported", [(21, True), (19, False)])
def test_no_weighted_estimate_if_the_effective_sample_size_is_below_half(
    effective, is_reported
):
    draws = uneven(effective, "layer-1-only")
    pair = ("layer-1-only", "none")
    row = row_of(draws, pair)
    assert row["effective_sample_size"] == pytest.approx(effective)
    points = [row[name] for name in ("points", "low", "high")]
    assert np.isnan(points).all() != is_reported
    if not is_reported:
        with pytest.raises(InputError, match="layer-1-only minus none are too uneven"):
            checked_weighted_differences(draws, *pair)


def test_the_conditions_that_sampled_the_answers_are_always_compared():
    # At worst the weighted estimate is as imprecise as the observed difference.
    draws = uneven(19, "mless")
    row = row_of(draws)
    assert row["effective_sample_size"] < 20
    assert np.isfinite([row["points"], row["low"]]).all()
    assert checked_weighted_differences(draws, *SLASHES).mean() == row["points"]


@pytest.mark.parametrize("mixed, has_interval", [(9, False), (10, True)])
def test_too_few_mixed_problems_have_no_interval(mixed, has_interval):
    agreed = four_draws(*(f"right {number}" for number in range(20)), right=True)
    draws = pd.concat([four_draws(*range(mixed)), agreed], ignore_index=True)
    rng = np.random.default_rng(0)
    draws["mless"] += rng.normal(0, 0.1, len(draws))
    row = row_of(draws)
    assert row["mixed_problems"] == mixed
    assert np.isfinite(row["points"])
    assert np.isfinite([row["low"], row["high"]]).tolist() == 2 * [has_interval]
    if not has_interval:
        few = "9 problems have both right and wrong answers: an interval needs 10"
        with pytest.raises(InputError, match=few):
            checked_weighted_differences(draws, *SLASHES)


@pytest.mark.parametrize(
    "change, message, treatments",
    [
        (lambda draws: draws[:3], "no problem has equally many answers of both", []),
        (
            lambda draws: draws,
            "8 answers to .* no log-likelihood under gap,",
            ["mless"],
        ),
        # Leaving out the unscored answers would select problems.
        (
            lambda draws: draws.assign(gap=[0.0] * 6 + [np.nan] * 2),
            "2 answers to .* no log-likelihood under gap, which the weights require",
            ["mless"],
        ),
        # The weights require the log-likelihoods under both sampled conditions.
        (
            lambda draws: draws.assign(gap=0.0, mless=np.nan),
            "8 answers to .* no log-likelihood under mless, which the weights require",
            [],
        ),
    ],
)
def test_incomplete_draws_are_refused_and_have_no_row(change, message, treatments):
    draws = change(four_draws("a", "b"))
    with pytest.raises(InputError, match=message):
        checked_weighted_differences(draws, "gap", "none")
    table = pass_rate_table(draws, [("gap", "none"), SLASHES])
    assert table.treatment.tolist() == treatments


def test_a_problem_with_one_answer_of_a_half_is_left_out():
    draws = four_draws(*"abcdefghijk").drop(index=3)
    differences = checked_weighted_differences(draws, *SLASHES)
    assert list(differences.index) == list("bcdefghijk")
    assert row_of(draws)["n"] == 10
