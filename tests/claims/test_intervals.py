"""The intervals of each kind of number, on counts whose exact answer is known and on planted templates."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import verdicts as simulation
from lib.claims.evidence import templates
from lib.claims.intervals import Component
from lib.claims.rule import STATED
from lib.claims.verdicts import decide, p_value
from lib.prompts.problems import load_problems
from lib.statistics import mcnemar_exact

SIMULATIONS = 200
ALLOWED = STATED + 2 * np.sqrt(STATED * (1 - STATED) / SIMULATIONS)  # two standard errors of so many simulations
CASES = [case for case in simulation.cases() if case.data != f"lognormal {simulation.EXTREME}"]


def differences(better, worse, n, clusters=None):
    values = 100 * np.repeat([1.0, -1.0, 0.0], [better, worse, n - better - worse])
    return Component("mless - none", values, "difference", clusters)


def share(right, n, clusters=None):
    return Component("mless", 100 * np.repeat([1.0, 0.0], [right, n - right]), "share", clusters)


def test_four_changes_for_the_better_of_96_support_nothing():
    found = decide([differences(4, 0, 96)], 0, None)
    assert found.verdict == "undecided" and found.low == 0
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
    assert Component("", values).interval(0.05) == pytest.approx(tuple(test.confidence_interval()))
    assert p_value([Component("", values)], 0, None) == pytest.approx(test.pvalue, rel=0.02)


def test_a_long_tail_lengthens_its_side_of_the_interval():
    values = np.r_[np.zeros(35), np.full(5, 10.0)]
    low, high = Component("", values).interval(0.05)
    exact = stats.ttest_1samp(values, 0).confidence_interval()
    assert low == pytest.approx(exact.low) and high > exact.high


def test_problems_that_repeat_their_template_count_as_one():
    rng = np.random.default_rng(1)
    families = np.repeat(np.arange(25), 4)
    repeated = Component("", rng.normal(size=25)[families], clusters=families)
    once = Component("", repeated.values[::4])
    assert np.allclose(repeated.interval(0.05), once.interval(0.05))
    assert decide([repeated], 0, None).clusters == 25 and decide([repeated], 0, None).n == 100
    answers = np.repeat(np.arange(25), 4)
    assert share(0, 100, answers).interval(0.05) == share(0, 25).interval(0.05)


def test_an_exact_difference_reaches_as_far_as_its_templates_make_it():
    alone = differences(12, 0, 96).interval(0.05)
    together = differences(12, 0, 96, [0] * 12 + list(range(1, 85))).interval(0.05)
    assert alone[0] > 0 and together[0] <= 0


def test_templates_are_those_of_the_embedded_set_alone():
    ids = [problem.id for problem in load_problems("embedded")]
    assert len(set(templates(ids))) == 28
    assert templates(["test/algebra/1.json", "test/algebra/2.json"]) is None


def test_the_largest_of_many_gains_must_exceed_what_choosing_it_gives():
    rng = np.random.default_rng(2)
    chance = 100 * rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(60, 13))
    real = chance.copy()
    real[:, 3] = 100 * (rng.random(60) < 0.5)
    assert Component("", chance).sample.best.values.mean() > 0
    assert decide([Component("", chance, "largest")], 0, None).verdict == "undecided"
    assert decide([Component("", real, "largest")], 0, None).verdict == "supported"
    assert decide([Component("", -100 * np.ones((60, 13)), "largest")], 0, None).verdict == "contradicted"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind} {case.data} {case.discordance} {case.clustered}")
def test_either_wrong_verdict_stays_under_the_stated_rate(case):
    """A reduced version of benchmarks/verdicts.py, whose table holds more sizes and simulations."""
    simulations = SIMULATIONS // 4 if case.kind == "largest" else SIMULATIONS
    assert max(simulation.rates(case, 40, simulations, seed=1)) < ALLOWED
