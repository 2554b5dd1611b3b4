"""The one interval by the kind of the numbers: known answers, planted templates, and how it is told."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import verdicts as simulation
from lib.claims.verdict import STATED, Part, decide, p_value
from lib.prompts.problems import load_problems
from lib.statistics import clopper_pearson, clusters_of, interval, mcnemar_exact, ratio, rounded, tango, told

SIMULATIONS = 200
ALLOWED = STATED + 2 * np.sqrt(STATED * (1 - STATED) / SIMULATIONS)  # two standard errors of so many simulations
CASES = [case for case in simulation.cases() if case.data != f"lognormal {simulation.EXTREME}"]


def ends(found):
    return found.low, found.high


def differences(better, worse, n, problems=None):
    values = 100 * np.repeat([1.0, -1.0, 0.0], [better, worse, n - better - worse])
    return Part("mless - none", values, "difference", problems)


def share(right, n, problems=None):
    return Part("mless", 100 * np.repeat([1.0, 0.0], [right, n - right]), "share", problems)


def test_four_changes_for_the_better_of_96_support_nothing():
    found = decide([differences(4, 0, 96)], 0, None)
    assert found.verdict == "undecided" and found.found.low == 0
    assert p_value([differences(4, 0, 96)], 0, None) == pytest.approx(0.125, rel=0.02)


@pytest.mark.parametrize("n", [20, 96, 500])
def test_supported_is_never_reached_where_mcnemar_does_not_reject(n):
    for better in range(0, 16):
        for worse in range(0, min(better + 1, n - better + 1)):
            if decide([differences(better, worse, n)], 0, None).verdict == "supported":
                assert mcnemar_exact(worse, better) <= 0.05


@pytest.mark.parametrize(("right", "n", "verdict"), [(0, 16, "undecided"), (0, 48, "undecided"), (0, 80, "supported")])
def test_no_right_answer_supports_less_than_five_percent_only_of_many(right, n, verdict):
    assert decide([share(right, n)], None, 5).verdict == verdict


def test_without_templates_the_mean_is_students():
    values = 0.3 + np.linspace(-1, 1, 40)
    test = stats.ttest_1samp(values, 0)
    assert ends(interval(values)) == pytest.approx(tuple(test.confidence_interval()))
    assert p_value([Part("", values)], 0, None) == pytest.approx(test.pvalue, rel=0.02)


def test_a_long_tail_lengthens_its_side_of_the_interval():
    values = np.r_[np.zeros(35), np.full(5, 10.0)]
    low, high = ends(interval(values))
    exact = stats.ttest_1samp(values, 0).confidence_interval()
    assert low == pytest.approx(exact.low) and high > exact.high
    assert ends(interval(-values)) == pytest.approx((-high, -low))


def test_problems_that_repeat_their_template_count_as_one():
    rng = np.random.default_rng(1)
    values, ids = np.repeat(rng.normal(size=25), 4), [f"embedded/{i // 4}/{i}" for i in range(100)]
    repeated, once = interval(values, ids), interval(values[::4])
    assert ends(repeated) == pytest.approx(ends(once)) and (repeated.n, repeated.clusters) == (100, 25)
    found = Part("", values, problems=ids).interval()
    assert (found.n, found.clusters) == (100, 25)
    assert ends(interval(np.zeros(100), ids, "share")) == ends(interval(np.zeros(25), None, "share"))


def test_an_exact_difference_reaches_as_far_as_its_templates_make_it():
    alone = differences(12, 0, 96).interval(0.05)
    together = differences(12, 0, 96, [0] * 12 + list(range(1, 85))).interval(0.05)
    assert alone.low > 0 and together.low <= 0


def test_a_share_of_repeated_templates_lies_between_whole_answers():
    """5 of 48 in pairs are 2.5 of 24: the interval reaches from that of 2 to that of 3."""
    found = interval(100 * np.repeat([1.0, 0.0], [5, 43]), [f"embedded/{i // 2}/{i}" for i in range(48)], "share")
    assert ends(found) == pytest.approx((100 * clopper_pearson(2, 24)[0], 100 * clopper_pearson(3, 24)[1]))
    assert found.estimate == pytest.approx(100 * 5 / 48)


def test_problems_of_one_template_are_one_cluster_wherever_they_occur():
    ids = [problem.id for problem in load_problems("embedded")]
    assert clusters_of(ids).max() + 1 == 28
    mixed = ["embedded/a/1", "test/algebra/1.json", "embedded/a/2", "test/algebra/2.json"]
    assert len(set(clusters_of(mixed))) == 3 and clusters_of(mixed)[0] == clusters_of(mixed)[2]


def test_each_column_has_the_interval_that_it_has_alone():
    rng = np.random.default_rng(3)
    values, ids = rng.gamma(1.0, size=(40, 3)), [f"embedded/{i // 3}/{i}" for i in range(40)]
    values[:, 2] = 7.0
    whole = interval(values, ids)
    for column in range(3):
        alone = interval(values[:, column], ids)
        assert (whole.low[column], whole.high[column]) == pytest.approx(ends(alone))
    assert whole.low[2] == whole.high[2] == 7  # what never varies over many problems


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [[1.0], [np.inf]], [[[1.0]]], 3.0])
def test_values_without_a_mean_are_refused(values):
    with pytest.raises(ValueError, match="expected finite values"):
        interval(values)


@pytest.mark.parametrize(("kind", "scale"), [("share", (0, 100)), ("difference", (-100, 100))])
@pytest.mark.parametrize("values", [[0.0, 0.0], [50.0, 50.0], [100.0, 100.0], [100.0], [25.0], [0.0, 12.5, 100.0]])
def test_a_handful_of_answers_has_a_wide_interval_within_the_scale(kind, scale, values):
    for problems in (None, [f"embedded/same/{i}" for i in range(len(values))]):
        found = interval(values, problems, kind)
        assert scale[0] <= found.low <= found.estimate <= found.high <= scale[1] and found.high - found.low > 60


@pytest.mark.parametrize("problems", [None, ["embedded/a/1", "embedded/a/2"]])
def test_two_equal_numbers_have_no_interval(problems):
    found = interval([3.0, 3.0], problems)
    assert found.estimate == 3 and np.isnan([found.low, found.high]).all()


def test_a_difference_of_single_answers_is_tangos():
    values = 100.0 * np.repeat([-1, 1, 0], [10, 25, 45])
    assert ends(interval(values, None, "difference")) == pytest.approx(tuple(100 * end for end in tango(10, 25, 80)))
    nothing = interval(np.zeros(2), None, "difference")
    assert nothing.low < -50 and nothing.high > 50


def test_a_ratio_of_means_is_known_as_well_as_its_parts_agree():
    rng = np.random.default_rng(3)
    denominator = rng.normal(-2, 0.3, 200)
    found = ratio(0.9 * denominator + rng.normal(0, 0.05, 200), denominator)
    resampled = rng.integers(200, size=(2000, 200))
    assert found.low < 0.9 < found.high and found.estimate == pytest.approx(0.9, abs=0.01) and found.n == 200
    noisy = 0.9 * denominator + rng.normal(0, 0.5, 200)
    drawn = np.quantile(noisy[resampled].mean(1) / denominator[resampled].mean(1), [0.025, 0.975])
    assert ends(ratio(noisy, denominator)) == pytest.approx(tuple(drawn), abs=0.005)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0.0232, 0.000132, 0.0464), "0.023 [0.000, 0.046]"),
        ((0.0232, 0.00013, 0.0464), "0.023 [0.000, 0.046]"),
        ((-0.0001, -0.05, 0.06), "0.000 [-0.050, 0.060]"),
        ((-1.04, -20.6, 12.3), "-1 [-21, 12]"),
        ((2.0, -1.53, 5.49), "2.0 [-1.5, 5.5]"),
        ((0.5, 0.4003, 0.5997), "0.50 [0.40, 0.60]"),  # half of the width is 0.0997, with two digits 0.10
        ((1234.5, 1000.0, 1500.0), "1234 [1000, 1500]"),
        ((8 / 9, 8 / 9, 8 / 9), "0.89"),
        ((0.5, None, None), "0.50"),
        ((0.5, np.nan, np.nan), "0.50"),
    ],
)
def test_a_number_is_told_with_two_digits_of_half_its_interval(numbers, text):
    assert told(*numbers) == text and rounded(*numbers) == text.split()[0]


def test_an_effect_is_told_with_its_sign():
    assert told(1.04, -2.2, 4.4, "+") == "+1.0 [-2.2, +4.4]" and told(-1e-9, -2.2, 2.2, "+") == "+0.0 [-2.2, +2.2]"


def test_the_largest_of_many_gains_must_exceed_what_choosing_it_gives():
    rng = np.random.default_rng(2)
    chance = 100 * rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(60, 13))
    real = chance.copy()
    real[:, 3] = 100 * (rng.random(60) < 0.5)
    assert interval(chance, kind="largest").estimate == chance.mean(0).max() > 0
    assert decide([Part("", chance, "largest")], 0, None).verdict == "undecided"
    assert decide([Part("", real, "largest")], 0, None).verdict == "supported"
    assert decide([Part("", -100 * np.ones((60, 13)), "largest")], 0, None).verdict == "contradicted"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind} {case.data} {case.discordance} {case.clustered}")
def test_either_wrong_verdict_stays_under_the_stated_rate(case):
    """A reduced version of benchmarks/verdicts.py, whose table holds more sizes and simulations."""
    simulations = SIMULATIONS // 4 if case.kind == "largest" else SIMULATIONS
    assert max(simulation.rates(case, 40, simulations, seed=1)) < ALLOWED
