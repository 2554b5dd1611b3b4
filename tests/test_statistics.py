"""Intervals by the kind of their numbers, paired tests and power: known values, planted
templates, simulations.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lib import statistics
from lib.claims.rule import STATED, decide, p_value
from lib.statistics import (
    clopper_pearson,
    holm,
    interval,
    mcnemar_exact,
    n_deciding,
    rounded,
    smallest_effect,
    tango,
)
from studies import verdicts as simulation

SIMULATIONS = 200
ALLOWED = STATED + 2 * np.sqrt(
    STATED * (1 - STATED) / SIMULATIONS
)  # two standard errors of so many simulations
CASES = [
    case
    for case in simulation.cases()
    if case.data != f"lognormal {simulation.EXTREME}"
]


def ends(found):
    return found.low, found.high


def differences(better, worse, n):
    values = 100 * np.repeat([1.0, -1.0, 0.0], [better, worse, n - better - worse])
    return {"mless - none": (values, None, "difference")}


@pytest.mark.parametrize("n", [20, 96, 500])
def test_supported_is_never_reached_where_mcnemar_does_not_reject(n):
    for better in range(0, 16):
        for worse in range(0, min(better + 1, n - better + 1)):
            if decide(differences(better, worse, n), low=0).verdict == "supported":
                assert mcnemar_exact(worse, better) <= 0.05
    four = differences(4, 0, n)
    assert decide(four, low=0).interval.low == 0 and p_value(
        four, low=0
    ) == pytest.approx(0.125, rel=0.02)


def test_without_templates_the_mean_is_students_longer_on_the_side_of_a_long_tail():
    values, tailed = 0.3 + np.linspace(-1, 1, 40), np.r_[np.zeros(35), np.full(5, 10.0)]
    test, exact = (
        stats.ttest_1samp(values, 0),
        stats.ttest_1samp(tailed, 0).confidence_interval(),
    )
    assert ends(interval(values)) == pytest.approx(tuple(test.confidence_interval()))
    assert p_value({"": (values,)}, low=0) == pytest.approx(test.pvalue, rel=0.02)
    low, high = ends(interval(tailed))
    assert low == pytest.approx(exact.low) and high > exact.high
    assert ends(interval(-tailed)) == pytest.approx((-high, -low))


def test_an_interval_of_unequal_templates_and_one_of_a_tailed_sample_are_these():
    # One problem of each of three templates, and five of a fourth.
    ids = ["embedded/a/1", "embedded/b/1", "embedded/c/1"]
    ids += [f"embedded/d/{index}" for index in range(5)]
    shown = interval([1, 3, 2, 4, 5, 6, 5, 4], ids)
    assert shown.error == pytest.approx(1.16113, rel=1e-5)
    assert ends(shown) == pytest.approx((-4.64918, 42.18636), rel=1e-5)

    tailed = np.append(np.zeros(35), np.full(5, 10.0))
    assert ends(interval(tailed)) == pytest.approx((0.17884, 3.19300), rel=1e-4)


def test_unequal_templates_have_the_degrees_of_freedom_of_their_error():
    # Twice the squared mean of the error's square, over its variance, in simulations.
    shares = np.array([1, 1, 1, 5]) / 8
    effects = np.random.default_rng(0).normal(size=(200_000, 4))
    apart = effects - (effects @ shares)[:, None]
    squares = ((shares * apart) ** 2 / (1 - shares)).sum(1)
    freedom = 2 * squares.mean() ** 2 / squares.var()
    quantile = statistics._quantile((1, 1, 1, 5), 0.05)
    assert quantile == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.03)


def test_templates_widen_a_ratio_too():
    rng = np.random.default_rng(5)
    top = rng.normal(3, 1, 25)
    bottom = rng.normal(2, 0.2, 25)
    ids = [f"embedded/{index // 4}/{index}" for index in range(100)]
    repeated = statistics.ratio(top.repeat(4), bottom.repeat(4), ids)
    assert ends(repeated) == pytest.approx(ends(statistics.ratio(top, bottom)))


def test_problems_that_repeat_their_template_count_as_one():
    rng = np.random.default_rng(1)
    values, ids = (
        np.repeat(rng.normal(size=25), 4),
        [f"embedded/{i // 4}/{i}" for i in range(100)],
    )
    repeated, once = interval(values, ids), interval(values[::4])
    assert ends(repeated) == pytest.approx(ends(once)) and (
        repeated.n,
        repeated.clusters,
    ) == (100, 25)
    assert ends(interval(np.zeros(100), ids, "share")) == ends(
        interval(np.zeros(25), None, "share")
    )
    two = interval(
        [1, 2, 3, 4], ["embedded/a/1", "embedded/a/2", "embedded/b/1", "embedded/b/2"]
    )
    assert ends(two) == pytest.approx(
        (2.5 - 12.70620, 2.5 + 12.70620)
    )  # Student's of one degree of freedom
    # 5 of 48 in pairs are 2.5 of 24: the interval reaches from that of 2 to that of 3.
    pairs = interval(
        100 * np.repeat([1.0, 0.0], [5, 43]),
        [f"embedded/{i // 2}/{i}" for i in range(48)],
        "share",
    )
    assert ends(pairs) == pytest.approx(
        (100 * clopper_pearson(2, 24)[0], 100 * clopper_pearson(3, 24)[1])
    )
    assert pairs.estimate == pytest.approx(100 * 5 / 48)


def test_each_column_has_the_interval_that_it_has_alone():
    rng = np.random.default_rng(3)
    values, ids = (
        rng.gamma(1.0, size=(40, 3)),
        [f"embedded/{i // 3}/{i}" for i in range(40)],
    )
    values[:, 2] = 7.0
    whole = interval(values, ids)
    for column in range(3):
        alone = interval(values[:, column], ids)
        assert (whole.low[column], whole.high[column]) == pytest.approx(ends(alone))
    assert whole.low[2] == whole.high[2] == 7  # what never varies over many problems


def test_values_without_a_mean_are_refused_and_two_equal_ones_have_no_interval():
    for values in ([], [1.0, np.nan], [[1.0], [np.inf]], [[[1.0]]], 3.0):
        with pytest.raises(ValueError, match="expected finite values"):
            interval(values)
    found = interval([3.0, 3.0])
    assert found.estimate == 3 and np.isnan(ends(found)).all()


@pytest.mark.parametrize(
    ("kind", "scale"), [("share", (0, 100)), ("difference", (-100, 100))]
)
@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0], [50.0, 50.0], [100.0, 100.0], [100.0], [25.0], [0.0, 12.5, 100.0]],
)
def test_a_handful_of_answers_has_a_wide_interval_within_the_scale(kind, scale, values):
    for problems in (None, [f"embedded/same/{i}" for i in range(len(values))]):
        found = interval(values, problems, kind)
        assert (
            scale[0] <= found.low <= found.estimate <= found.high <= scale[1]
            and found.high - found.low > 60
        )


def test_a_difference_of_single_answers_is_tangos():
    values = 100.0 * np.repeat([-1, 1, 0], [10, 25, 45])
    assert ends(interval(values, None, "difference")) == pytest.approx(
        tuple(100 * end for end in tango(10, 25, 80))
    )
    nothing = interval(np.zeros(2), None, "difference")
    assert nothing.low < -50 and nothing.high > 50
    gained = 100.0 * (np.arange(96) < 12)
    of_one_template = interval(gained, [0] * 12 + list(range(1, 85)), "difference")
    assert interval(gained, None, "difference").low > 0 >= of_one_template.low


def test_a_ratio_of_means_is_known_as_well_as_its_parts_agree():
    rng = np.random.default_rng(3)
    denominator = rng.normal(-2, 0.3, 200)
    noisy, resampled = (
        0.9 * denominator + rng.normal(0, 0.5, 200),
        rng.integers(200, size=(2000, 200)),
    )
    drawn, found = (
        noisy[resampled].mean(1) / denominator[resampled].mean(1),
        statistics.ratio(noisy, denominator),
    )
    assert ends(found) == pytest.approx(
        tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.005
    )
    assert found.estimate == pytest.approx(noisy.mean() / denominator.mean())


TOLD = {
    (0.0232, 0.00013, 0.0464): "0.023 [0.000, 0.046]",
    (-1.04, -20.6, 12.3): "-1 [-21, 12]",
}
TOLD |= {
    (0.5, 0.4003, 0.5997): "0.50 [0.40, 0.60]"
}  # half of the width is 0.0997, with two digits 0.10
TOLD |= {(8 / 9, 8 / 9, 8 / 9): "0.89", (0.5, np.nan, np.nan): "0.50"}
TOLD |= {
    (1.04, -2.2, 4.4, "+"): "+1.0 [-2.2, +4.4]",
    (-1e-9, -2.2, 2.2, "+"): "+0.0 [-2.2, +2.2]",
}


@pytest.mark.parametrize("numbers", TOLD)
def test_a_number_is_told_with_two_digits_of_half_its_interval(numbers):
    assert (
        statistics.format_interval(*numbers) == TOLD[numbers]
        and rounded(*numbers) == TOLD[numbers].split()[0]
    )


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda case: f"{case.kind} {case.data} {case.discordance} {case.clustered}",
)
def test_either_wrong_verdict_stays_under_the_stated_rate(case):
    """A reduced version of studies/verdicts.py, whose table holds more sizes and
    simulations.
    """
    simulations = SIMULATIONS // 4 if case.kind == "largest" else SIMULATIONS
    assert max(simulation.rates(case, 40, simulations, seed=1)) < ALLOWED


KNOWN = [
    (clopper_pearson(8, 10), (0.4439, 0.9748)),
    (clopper_pearson(0, 10), (0, 0.3085)),
    (mcnemar_exact(0, 0), 1),
]
KNOWN += [
    (mcnemar_exact(1, 9), 0.0215),
    (tuple(holm([0.01, 0.04, 0.03])), (0.03, 0.06, 0.06)),
]
KNOWN += [
    (n_deciding(0.02, 0.1**0.5), 1965)
]  # ((1.95996 + 0.84162) / .02)^2 * .1 = 1962.2, and half of 1.95996^2
KNOWN += [(tango(0, 0, 30), (-0.1135, 0.1135))]  # z^2 / (n + z^2)
PUBLISHED = [
    (tango(3, 9, 32), (-0.027, 0.390)),
    (tango(1, 0, 44, 0.10), (-0.096, 0.037)),
]  # Tango 1998
PUBLISHED += [
    (tango(7, 1, 21), (-0.517, -0.026))
]  # Fagerland et al. 2014, Stat. Med. 33:2850


@pytest.mark.parametrize("found, expected", KNOWN + PUBLISHED)
def test_known_and_published_values(found, expected):
    assert found == pytest.approx(
        expected, abs=5e-4 if (found, expected) in PUBLISHED else 5e-5
    )


@given(st.integers(1, 500), st.data())
def test_intervals_hold_their_estimates_and_tangos_mirrors_with_the_sides(n, data):
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
    with pytest.raises(ValueError, match="p-values"):
        holm([*p_values, math.nan])


@given(st.integers(3, 5000), st.floats(0.001, 100))
def test_effect_and_sample_size_undo_each_other(n, deviation):
    assert n_deciding(smallest_effect(n, deviation), deviation) in (
        n,
        n + 1,
    )  # n + 1 by rounding alone


def test_signed_rank_equals_scipys_for_each_column_and_is_1_without_a_difference():
    values = np.random.default_rng(4).normal([0, 0.5, -0.5], 1, (20, 3))
    values[:2, 2] = 0.5  # a tie, which changes nothing for the other columns
    expected = [
        stats.wilcoxon(column, method="asymptotic").pvalue for column in values.T
    ]
    np.testing.assert_allclose(
        statistics.signed_rank(np.column_stack([np.zeros(20), values])), [1, *expected]
    )


def test_pass_at_k_is_the_mean_over_all_choices_of_k_samples():
    correct = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]])
    for k in (1, 2, 3, 4):
        chosen = [
            correct[:, choice].any(axis=1)
            for choice in itertools.combinations(range(4), k)
        ]
        np.testing.assert_allclose(
            statistics.pass_at_k(correct, k), np.mean(chosen, axis=0)
        )
        fewer = np.column_stack(
            [correct, np.full(4, np.nan)]
        )  # of another problem a fifth sample was taken
        np.testing.assert_allclose(
            statistics.pass_at_k(fewer, k), np.mean(chosen, axis=0)
        )


def test_the_smallest_level_is_the_p_value_of_the_intervals_own_test():
    changes = [100.0] * 9 + [-100.0] + [0.0] * 30
    found = statistics.smallest_level(
        lambda one: one.low > 0, changes, None, "difference"
    )
    assert found == pytest.approx(mcnemar_exact(1, 9), rel=0.02)
    values = np.random.default_rng(0).normal(0.4, 1, 30)
    mirrored = np.append(values, 0.8 - values)  # nothing is skewed
    found = statistics.smallest_level(lambda one: one.low > 0, mirrored)
    assert found == pytest.approx(stats.ttest_1samp(mirrored, 0).pvalue, rel=0.02)
    assert statistics.smallest_level(lambda one: one.low > 0, np.zeros(40)) == 1


def test_the_largest_column_is_held_against_what_random_signs_of_the_rows_give():
    alone = statistics.interval(
        [[1.0], [-1.0]] * 50, kind="largest"
    )  # sums of random signs, two deviations of which
    assert alone.low == pytest.approx(-2 * math.sqrt(100) / 100, abs=0.03)
    both = statistics.interval(
        [[1.0, -1.0], [2.0, 0.0]], kind="largest"
    )  # flipped 3, 1 or -1
    assert both.estimate == 1.5 and both.low == 0
