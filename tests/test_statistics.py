"""Intervals, paired tests and power agree with known values, with each other and with a simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from lib import statistics
from lib.statistics import clopper_pearson, holm, mcnemar_exact, n_needed, smallest_effect, tango


@pytest.mark.parametrize(
    "found, expected",
    [
        (clopper_pearson(8, 10), (0.4439, 0.9748)),
        (clopper_pearson(0, 10), (0, 0.3085)),
        (clopper_pearson(10, 10), (0.6915, 1)),
        (mcnemar_exact(1, 9), 0.0215),
        (mcnemar_exact(9, 1), 0.0215),
        (mcnemar_exact(0, 5), 0.0625),
        (mcnemar_exact(4, 4), 1),
        (mcnemar_exact(0, 0), 1),
        (tuple(holm([0.01, 0.04, 0.03])), (0.03, 0.06, 0.06)),
        # ((1.95996 sqrt(.5) + 0.84162 sqrt(.5 - .4^2)) / .4)^2 = 22.01
        (n_needed(0.4, 0.5), 23),
        (n_needed(-0.4, 0.5), 23),
        # The gains the paper reports are about two points; with one problem in ten changing hands:
        (n_needed(0.02, 0.1), 1960),
        (smallest_effect(500, 0.1), 0.0395),
    ],
)
def test_known_values(found, expected):
    assert found == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    "only_a, only_b, n, alpha, low, high",
    [
        (3, 9, 32, 0.05, -0.027, 0.390),  # Tango 1998
        (1, 0, 44, 0.10, -0.096, 0.037),  # Tango 1998: contact lenses
        (25, 28, 618, 0.10, -0.0148, 0.0247),  # scoreci.mp of R's PropCIs
        (7, 1, 21, 0.05, -0.517, -0.026),  # Fagerland et al. 2014, Stat. Med. 33:2850
        (0, 0, 30, 0.05, -3.8415 / 33.8415, 3.8415 / 33.8415),  # z^2 / (n + z^2): a width where nothing changes hands
    ],
)
def test_tango_gives_the_published_bounds(only_a, only_b, n, alpha, low, high):
    assert tango(only_a, only_b, n, alpha) == pytest.approx((low, high), abs=5e-4)


@given(st.integers(1, 500), st.data())
def test_intervals_hold_their_estimates_on_their_scales_and_tangos_mirrors_with_the_sides(n, data):
    only_a = data.draw(st.integers(0, n))
    only_b = data.draw(st.integers(0, n - only_a))
    low, high = tango(only_a, only_b, n)
    assert -1 <= low <= (only_b - only_a) / n <= high <= 1
    assert tango(only_b, only_a, n) == pytest.approx((-high, -low), abs=1e-8)
    low, high = clopper_pearson(only_a, n)
    assert 0 <= low <= only_a / n <= high <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_lowers_a_p(p_values):
    adjusted = holm(p_values)
    assert (adjusted >= p_values).all() and (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p_values)]) >= 0).all()


def test_what_is_no_p_value_is_refused():
    with pytest.raises(ValueError, match="p-values"):
        holm([0.1, math.nan])


@given(st.integers(1, 5000), st.floats(0.001, 1))
def test_effect_and_sample_size_undo_each_other(n, rate):
    effect = smallest_effect(n, rate)
    assert math.isnan(effect) == (n < n_needed(rate, rate)) and math.isnan(smallest_effect(n, 0))
    assume(not math.isnan(effect) and n >= 10 and rate >= 0.01)
    assert 0 < effect <= rate * (1 + 1e-9)
    assert n_needed(min(effect, rate), rate) in (n, n + 1)  # n + 1 by rounding alone


@pytest.mark.parametrize("n, rate", [(200, 0.3), (500, 0.15)])
def test_a_simulation_shows_the_effect_with_about_the_power_promised(n, rate):
    effect = smallest_effect(n, rate)
    draws = np.random.default_rng(5).multinomial(n, [(rate - effect) / 2, (rate + effect) / 2, 1 - rate], size=4000)
    only_a, only_b = draws[:, 0], draws[:, 1]
    z = (only_b - only_a) / np.sqrt(only_a + only_b)
    exact = 2 * stats.binom.cdf(np.minimum(only_a, only_b), only_a + only_b, 0.5)
    assert np.mean(np.abs(z) > stats.norm.ppf(0.975)) == pytest.approx(0.8, abs=0.03)
    assert 0.7 < np.mean(exact < 0.05) < 0.8


def test_signed_rank_equals_scipys_for_each_column_and_shows_nothing_without_a_difference():
    values = np.random.default_rng(4).normal([0, 0.5, -0.5], 1, (20, 3))
    values[:2, 2] = 0.5  # a tie, which changes nothing for the other columns
    expected = [stats.wilcoxon(column, method="asymptotic").pvalue for column in values.T]
    np.testing.assert_allclose(statistics.signed_rank(values), expected)
    np.testing.assert_allclose(expected[:2], [stats.wilcoxon(column).pvalue for column in values.T[:2]], rtol=0.1)
    values = np.stack([np.zeros(10), np.arange(1, 11)], axis=1)
    assert statistics.signed_rank(values)[0] == 1 and statistics.signed_rank(values)[1] < 0.01


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_at_k_is_the_mean_over_all_choices_of_k_samples(k):
    correct = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]])
    choices = list(itertools.combinations(range(4), k))
    expected = [np.mean([row[list(choice)].any() for choice in choices]) for row in correct]
    np.testing.assert_allclose(statistics.pass_at_k(correct, k), expected)


def test_sign_flips_give_mcnemars_p_for_right_and_wrong():
    differences = np.array([1.0] * 9 + [-1.0] + [0.0] * 30)
    assert statistics.sign_flip(differences, seed=0) == pytest.approx(mcnemar_exact(1, 9), abs=0.01)
    assert statistics.sign_flip(np.zeros(5), seed=0) == 1


def test_the_largest_column_is_held_against_what_random_signs_of_the_rows_give():
    alone = statistics.interval([[1.0], [-1.0]] * 50, kind="largest")  # sums of random signs, two deviations of which
    assert alone.low == pytest.approx(-2 * math.sqrt(100) / 100, abs=0.03)
    both = statistics.interval([[1.0, -1.0], [2.0, 0.0]], kind="largest")  # flipped 3, 1 or -1
    assert both.estimate == 1.5 and both.low == 0
