"""Intervals of each kind, paired tests and power, checked by known values, planted
templates and simulations.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lib.statistics.intervals import (
    ClusteredMean,
    format_interval,
    holm,
    interval,
    ratio_of_means,
    smallest_level,
)
from lib.statistics.proportions import clopper_pearson, mcnemar_exact, tango_interval
from reproduction.claims.decision_rule import decide, p_value


def ends(mean):
    return mean.low, mean.high


def templated(count, each):
    """Return ids of problems of which each `each` consecutive ones share a template."""
    return [f"embedded/{index // each}/{index}" for index in range(count)]


def differences(better, worse, n):
    same = n - better - worse
    values = 100 * np.repeat([1.0, -1.0, 0.0], [better, worse, same])
    return {"mless - none": (values, None, "difference")}


@pytest.mark.parametrize("n", [20, 96])
def test_no_claim_is_supported_if_mcnemars_test_does_not_reject(n):
    for better in range(0, 16):
        for worse in range(0, min(better + 1, n - better + 1)):
            decision = decide(differences(better, worse, n), low=0)
            if decision.verdict == "supported":
                assert mcnemar_exact(worse, better) <= 0.05
    four = differences(4, 0, n)
    assert decide(four, low=0).interval.low == 0
    assert p_value(four, low=0) == pytest.approx(0.125, rel=0.02)


def test_problems_of_one_template_count_as_one():
    rng = np.random.default_rng(5)
    top = rng.normal(3, 1, 25)
    ids = templated(100, 4)
    none = np.zeros(100)
    alike = [
        (interval(top.repeat(4), ids), interval(top)),
        (interval(none, ids, "share"), interval(none[:25], None, "share")),
    ]
    for repeated, once in alike:
        assert repeated.n == 100
        assert ends(repeated) == pytest.approx(ends(once))

    columns = np.stack([top, -top], 1)
    best = interval(columns.repeat(4, 0), ids, "largest")
    best_once = interval(columns, kind="largest")
    assert best.low == pytest.approx(best_once.low, rel=0.02)


def test_equal_values_have_an_interval_only_from_twenty_on():
    assert interval([7.0] * 20).error == 0
    few = interval([7.0] * 19)
    assert few.estimate == 7
    assert np.isnan([few.error, *ends(few)]).all()


@pytest.mark.parametrize(
    ("kind", "scale"), [("share", (0, 100)), ("difference", (-100, 100))]
)
@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0], [50.0, 50.0], [100.0], [0.0, 12.5, 100.0]],
)
def test_a_handful_of_answers_has_a_wide_interval_within_the_scale(kind, scale, values):
    of_one_template = [f"embedded/same/{i}" for i in range(len(values))]
    for problems in (None, of_one_template):
        mean = interval(values, problems, kind)
        assert scale[0] <= mean.low <= mean.estimate <= mean.high <= scale[1]
        assert mean.high - mean.low > 60


def test_the_interval_of_a_ratio_of_means_equals_that_of_a_bootstrap():
    rng = np.random.default_rng(3)
    denominator = rng.normal(-2, 0.3, 200)
    noisy = 0.9 * denominator + rng.normal(0, 0.5, 200)
    resampled = rng.integers(200, size=(2000, 200))
    drawn = noisy[resampled].mean(1) / denominator[resampled].mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    share = ratio_of_means(noisy, denominator)
    assert ends(share) == pytest.approx((low, high), abs=0.005)
    assert share.estimate == pytest.approx(noisy.mean() / denominator.mean())


# An estimate, the ends of its interval, and the formatted text.
FORMATTED = """
0.0232 0.00013 0.0464 → 0.023 [0.000, 0.046]
-1.04 -20.6 12.3 → -1 [-21, 12]
0.5 0.4003 0.5997 → 0.50 [0.40, 0.60]  # half of the width is 0.0997: 0.10
0.5 -0.2 1.2 → 0.50 [-0.20, 1.20]  # half of the width is 0.70, the width 1.4
0.87501073 0.87500965 0.87501158 → 0.88  # narrower than differences of processors
0.87 0.8695 0.8705 → 0.87000 [0.86950, 0.87050]
0.5 nan nan → 0.50
-1e-9 -2.2 2.2 → +0.0 [-2.2, +2.2]
-1.54 -3.64 -0.032 → -1.54 [-3.64, -0.03]  # digits enough to show that 0 is outside
1.54 0.004 3.64 → +1.540 [+0.004, +3.640]
1.54 0 3.64 → +1.5 [+0.0, +3.6]
"""


@pytest.mark.parametrize("row", FORMATTED.strip().splitlines())
def test_a_number_is_rounded_to_two_digits_of_its_intervals_half_width(row):
    numbers, text = row.partition("  #")[0].split(" → ")
    sign = "+" if "+" in text else ""
    estimate, low, high = map(float, numbers.split())
    assert format_interval(estimate, low, high, sign) == text


VALUES = 0.3 + np.linspace(-1, 1, 40)
TAILED = np.append(np.zeros(35), np.full(5, 10.0))
# One problem of each of three templates and five of a fourth: the effective number of
# problems is 64 / 28.
UNEQUAL = [f"embedded/{template}/{i}" for i, template in enumerate("abcddddd")]
CHANGES = 100.0 * np.repeat([-1, 1, 0], [10, 25, 45])


@pytest.mark.parametrize(
    "computed, known",
    [
        (ends(interval(VALUES)), stats.ttest_1samp(VALUES, 0).confidence_interval()),
        (ends(interval(TAILED)), (0.17884, 3.19300)),
        (ends(interval(-TAILED)), (-3.19300, -0.17884)),
        # Student's quantile of one degree of freedom
        (ends(interval([1, 2, 3, 4], templated(4, 2))), (2.5 - 12.7062, 2.5 + 12.7062)),
        (ends(interval([1, 3, 2, 4, 5, 6, 5, 4], UNEQUAL)), (-4.64918, 42.18636)),
        (interval([1, 3, 2, 4, 5, 6, 5, 4], UNEQUAL).error, 1.16113),
        (ends(interval([100] + [0] * 7, UNEQUAL, "share")), (0, 100 * 0.975**0.5)),
        (ends(interval([100] * 8, None, "share", 0.5)), (100 * 0.25**0.125, 100)),
        (ends(interval([0] * 8, None, "share", 0.5)), (0, 100 - 100 * 0.25**0.125)),
        (
            ends(interval(CHANGES, None, "difference")),
            100 * np.array(tango_interval(10, 25, 80)),
        ),
        (clopper_pearson(8, 10), (0.4439, 0.9748)),
        (clopper_pearson(0, 10), (0, 0.3085)),
        (mcnemar_exact(0, 0), 1),
        (mcnemar_exact(1, 9), 0.0215),
        (tuple(holm([0.01, 0.04, 0.03])), (0.03, 0.06, 0.06)),
        # z^2 / (n + z^2)
        (tango_interval(0, 0, 30), (-0.1135, 0.1135)),
        # Tango 1998; Fagerland et al. 2014, Stat. Med. 33:2850
        (np.round(tango_interval(3, 9, 32), 3), (-0.027, 0.390)),
        (np.round(tango_interval(1, 0, 44, 0.10), 3), (-0.096, 0.037)),
        (np.round(tango_interval(7, 1, 21), 3), (-0.517, -0.026)),
    ],
)
def test_intervals_and_tests_have_their_published_values(computed, known):
    assert computed == pytest.approx(known, abs=5e-5, nan_ok=True)


@given(st.integers(1, 500), st.data())
def test_intervals_include_their_estimates_and_tangos_mirrors_if_sides_are_swapped(
    n, data
):
    only_a = data.draw(st.integers(0, n))
    only_b = data.draw(st.integers(0, n - only_a))
    low, high = tango_interval(only_a, only_b, n)
    difference = (only_b - only_a) / n
    assert -1 <= low <= difference <= high <= 1
    mirrored = tango_interval(only_b, only_a, n)
    assert mirrored == pytest.approx((-high, -low), abs=1e-8)
    low, high = clopper_pearson(only_a, n)
    assert 0 <= low <= only_a / n <= high <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_lowers_a_p(p_values):
    adjusted = holm(p_values)
    assert (adjusted >= p_values).all()
    assert (adjusted <= 1).all()
    in_order = adjusted[np.argsort(p_values)]
    assert (np.diff(in_order) >= 0).all()
    with pytest.raises(ValueError, match="p-values"):
        holm([*p_values, math.nan])


def test_the_smallest_level_is_the_p_value_of_the_intervals_own_test():
    def level(*part):
        return smallest_level(lambda mean: mean.low > 0, *part)

    changes = [100.0] * 9 + [-100.0] + [0.0] * 30
    exact = mcnemar_exact(1, 9)
    assert level(changes, None, "difference") == pytest.approx(exact, rel=0.02)
    exact = stats.ttest_1samp(VALUES, 0).pvalue
    assert level(VALUES) == pytest.approx(exact, rel=0.02)
    assert level(np.zeros(40)) == 1


def test_the_largest_column_is_compared_with_random_signs_of_the_rows():
    # The bound is two standard deviations of a sum of random signs.
    alone = interval([[1.0], [-1.0]] * 50, kind="largest")
    assert alone.low == pytest.approx(-2 * math.sqrt(100) / 100, abs=0.03)
    # With random signs of the rows the larger sum is 3, 1 or -1.
    both = interval([[1.0, -1.0], [2.0, 0.0]], kind="largest")
    assert both.estimate == 1.5
    assert both.low == 0


def test_the_p_value_of_the_largest_column_is_not_smaller_than_random_signs_can_show():
    gains = np.random.default_rng(0).normal(5, 1, (200, 3))
    p = smallest_level(lambda mean: mean.low > 0, gains, None, "largest")
    assert p == pytest.approx(2 / 10_001, rel=0.02)


@pytest.mark.parametrize("templates", [2, 3, 4])
def test_a_gain_in_each_of_a_few_templates_is_not_significant(templates):
    # One of 2 ** templates signs is the observed one, whatever the sums' rounding.
    ids = [f"embedded/{i % templates}/{i}" for i in range(24)]
    for seed in range(100):
        gains = np.random.default_rng(seed).integers(0, 4, (24, 2)) / 3 + 0.331
        assert interval(100 * gains, ids, "largest").low <= 0


@given(st.floats(1e-6, 1e6))
def test_an_interval_scales_with_the_unit_of_its_values(scale):
    expected = scale * np.array(ends(interval(TAILED)))
    assert ends(interval(scale * TAILED)) == pytest.approx(expected)


def test_the_bound_of_the_largest_column_scales_with_the_unit_of_its_values():
    gains = np.random.default_rng(0).normal(5, 1, (200, 3))
    expected = 1e-9 * interval(gains, kind="largest").low
    assert interval(1e-9 * gains, kind="largest").low == pytest.approx(expected)


@given(st.lists(st.integers(1, 30), min_size=2, max_size=40))
def test_degrees_of_freedom_equal_those_of_the_full_covariance_matrix(sizes):
    shares = np.array(sizes) / sum(sizes)
    apart = np.eye(len(sizes)) - shares[:, None] - shares + (shares**2).sum()
    covariance = shares[:, None] * apart * shares
    weights = 1 / (1 - shares)
    expected = (weights * np.diag(covariance)).sum()
    variance = weights @ covariance**2 @ weights
    problems = np.repeat(np.arange(len(sizes)), sizes)
    mean = ClusteredMean(np.zeros(len(problems)), problems)
    assert mean.degrees_of_freedom == pytest.approx(expected**2 / variance, rel=1e-9)
