"""Intervals, paired tests and power agree with known values, with each other and with a simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from lib import statistics
from lib.statistics import (
    clopper_pearson,
    holm,
    mcnemar_exact,
    n_needed,
    smallest_effect,
    tango,
)


@pytest.mark.parametrize("successes, n, low, high", [(8, 10, 0.4439, 0.9748), (0, 10, 0, 0.3085), (10, 10, 0.6915, 1)])
def test_clopper_pearson_gives_the_known_bounds(successes, n, low, high):
    assert clopper_pearson(successes, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 2000), st.data())
def test_the_interval_of_a_share_holds_it_and_stays_a_share(n, data):
    successes = data.draw(st.integers(0, n))
    low, high = clopper_pearson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1


@pytest.mark.parametrize("successes, n", [(0, 0), (-1, 5), (6, 5)])
def test_what_is_no_share_is_refused(successes, n):
    with pytest.raises(ValueError, match="no share"):
        clopper_pearson(successes, n)


@pytest.mark.parametrize(
    "only_a, only_b, n, alpha, low, high",
    [
        (3, 9, 32, 0.05, -0.027, 0.390),  # Tango 1998
        (1, 0, 44, 0.10, -0.096, 0.037),  # Tango 1998: contact lenses
        (25, 28, 618, 0.10, -0.0148, 0.0247),  # scoreci.mp of R's PropCIs
        (7, 1, 21, 0.05, -0.517, -0.026),  # Fagerland et al. 2014, Stat. Med. 33:2850
    ],
)
def test_tango_gives_the_published_bounds(only_a, only_b, n, alpha, low, high):
    assert tango(only_a, only_b, n, alpha) == pytest.approx((low, high), abs=5e-4)


@given(st.integers(1, 500), st.data())
def test_tango_holds_its_estimate_and_mirrors_with_the_sides(n, data):
    only_a = data.draw(st.integers(0, n))
    only_b = data.draw(st.integers(0, n - only_a))
    low, high = tango(only_a, only_b, n)
    assert -1 <= low <= (only_b - only_a) / n <= high <= 1
    assert tango(only_b, only_a, n) == pytest.approx((-high, -low), abs=1e-8)


def test_tango_has_a_width_where_no_problem_changes_hands():
    width = stats.norm.ppf(0.975) ** 2
    assert tango(0, 0, 30)[1] == pytest.approx(width / (30 + width))


@pytest.mark.parametrize("counts", [(0, 0, 0), (-1, 0, 5), (3, 3, 5)])
def test_tango_refuses_what_cannot_be_counted(counts):
    with pytest.raises(ValueError, match="no shares"):
        tango(*counts)


@pytest.mark.parametrize(
    "only_a, only_b, p", [(1, 9, 0.0215), (9, 1, 0.0215), (0, 5, 0.0625), (4, 4, 1.0), (0, 0, 1.0)]
)
def test_mcnemar_gives_the_known_p(only_a, only_b, p):
    assert mcnemar_exact(only_a, only_b) == pytest.approx(p, abs=5e-5)


def test_holm_gives_the_known_values():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_lowers_a_p(p_values):
    adjusted = holm(p_values)
    assert (adjusted >= p_values).all() and (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p_values)]) >= 0).all()


@pytest.mark.parametrize("p_values", [[], [0.1, math.nan], [1.2]])
def test_holm_refuses_what_is_no_p(p_values):
    with pytest.raises(ValueError, match="p-values"):
        holm(p_values)


def test_the_sample_size_formula_gives_known_values():
    # ((1.95996 sqrt(.5) + 0.84162 sqrt(.5 - .4^2)) / .4)^2 = 22.01
    assert n_needed(0.4, 0.5) == n_needed(-0.4, 0.5) == 23
    # The gains the paper reports are about two points; with one problem in ten changing hands:
    assert n_needed(0.02, 0.1) == 1960
    assert smallest_effect(500, 0.1) == pytest.approx(0.0395, abs=5e-5)


@given(st.integers(10, 5000), st.floats(0.01, 1))
def test_effect_and_sample_size_undo_each_other(n, rate):
    effect = smallest_effect(n, rate)
    assume(not math.isnan(effect))
    assert 0 < effect <= rate * (1 + 1e-9)
    assert n_needed(min(effect, rate), rate) in (n, n + 1)  # n + 1 by rounding alone


@given(st.integers(1, 300), st.floats(0.001, 1))
def test_no_effect_is_given_exactly_when_n_is_below_what_the_largest_needs(n, rate):
    assert math.isnan(smallest_effect(n, rate)) == (n < n_needed(rate, rate))
    assert math.isnan(smallest_effect(n, 0))


@pytest.mark.parametrize("n, rate", [(200, 0.3), (500, 0.15)])
def test_a_simulation_shows_the_effect_with_about_the_power_promised(n, rate):
    effect = smallest_effect(n, rate)
    draws = np.random.default_rng(5).multinomial(n, [(rate - effect) / 2, (rate + effect) / 2, 1 - rate], size=4000)
    only_a, only_b = draws[:, 0], draws[:, 1]
    z = (only_b - only_a) / np.sqrt(only_a + only_b)
    exact = 2 * stats.binom.cdf(np.minimum(only_a, only_b), only_a + only_b, 0.5)
    assert np.mean(np.abs(z) > stats.norm.ppf(0.975)) == pytest.approx(0.8, abs=0.03)
    assert 0.7 < np.mean(exact < 0.05) < 0.8


@pytest.mark.parametrize(
    "call",
    [
        lambda: n_needed(0, 0.1),
        lambda: n_needed(0.2, 0.1),
        lambda: n_needed(0.1, 1.5),
        lambda: smallest_effect(0, 0.1),
        lambda: smallest_effect(100, -0.1),
    ],
)
def test_power_refuses_what_cannot_be(call):
    with pytest.raises(ValueError):
        call()


def test_signed_rank_equals_scipys_for_each_column():
    values = np.random.default_rng(4).normal([0, 0.5, -0.5], 1, (40, 3))
    expected = [stats.wilcoxon(column).pvalue for column in values.T]
    np.testing.assert_allclose(statistics.signed_rank(values), expected)


def test_signed_rank_without_a_difference_shows_nothing():
    values = np.stack([np.zeros(10), np.arange(1, 11)], axis=1)
    assert statistics.signed_rank(values)[0] == 1 and statistics.signed_rank(values)[1] < 0.01


@pytest.mark.parametrize("values", [[1.0, 2.0], [[np.nan]], np.zeros((0, 2))])
def test_signed_rank_refuses_what_it_cannot_rank(values):
    with pytest.raises(ValueError, match="finite values of shape"):
        statistics.signed_rank(values)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_at_k_is_the_mean_over_all_choices_of_k_samples(k):
    correct = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]])
    choices = list(itertools.combinations(range(4), k))
    expected = [np.mean([row[list(choice)].any() for choice in choices]) for row in correct]
    np.testing.assert_allclose(statistics.pass_at_k(correct, k), expected)


@pytest.mark.parametrize("k", [0, 5])
def test_pass_at_k_needs_k_samples(k):
    with pytest.raises(ValueError, match="with S of at least"):
        statistics.pass_at_k(np.ones((3, 4)), k)


def test_sign_flips_give_mcnemars_p_for_right_and_wrong():
    differences = np.array([1.0] * 9 + [-1.0] + [0.0] * 30)
    assert statistics.sign_flip(differences, seed=0) == pytest.approx(mcnemar_exact(1, 9), abs=0.01)
    assert statistics.sign_flip(np.zeros(5), seed=0) == 1


def test_the_largest_of_flipped_columns_is_by_chance():
    assert statistics.largest_of_flipped(np.ones((1, 1)), seed=0).mean() == pytest.approx(0, abs=0.05)
    apart = np.array([[1.0, -1.0], [2.0, 0.0]])
    assert set(statistics.largest_of_flipped(apart, seed=0)) == {3.0, 1.0, -1.0}


def test_another_seed_flips_other_signs():
    apart = np.random.default_rng(0).normal(size=(30, 4))
    first, again, other = (statistics.largest_of_flipped(apart, seed).mean() for seed in (0, 0, 1))
    assert first == again != other
