"""The rule that decides, on parts whose numbers are known."""

import numpy as np
import pytest
from scipy import stats

from lib.claims.rule import decide, p_value
from lib.statistics.intervals import ENOUGH

FOR = np.linspace(4, 6, 24)
OPEN = np.linspace(-1, 1.2, 24)
AGAINST = np.linspace(-1.5, -0.5, 24)


def parts(*values):
    return {str(index): (part,) for index, part in enumerate(values)}


@pytest.mark.parametrize(
    ("values", "expected", "part", "holds", "refuted"),
    [
        ([FOR, FOR - 3.5], "supported", "1", ["0", "1"], []),
        ([FOR, OPEN], "undecided", "1", ["0"], []),
        ([FOR, AGAINST, OPEN], "in part", "1", ["0"], ["1"]),
        ([OPEN, AGAINST], "contradicted", "1", [], ["1"]),
        ([AGAINST, 3 * AGAINST], "contradicted", "0", [], ["0", "1"]),
        # What never varies decides without an interval, if there is enough of it.
        ([np.full(ENOUGH, -1.0)], "contradicted", "0", [], ["0"]),
        ([np.full(30, 8 / 9) + 1e-16 * np.arange(30)], "supported", "0", ["0"], []),
        ([np.zeros(30)], "undecided", "0", [], []),
        ([np.linspace(5, 6, ENOUGH - 1), np.ones(100)], "undecided", "0", [], []),
        # What is known of too few problems is shown, however clear the other part is.
        ([3 * AGAINST, np.linspace(5, 6, ENOUGH - 1)], "undecided", "1", [], []),
        # Of parts that are equal but for rounding, or infinitely far inside, the first
        # decides.
        ([(1 + 1e-5) * FOR, FOR], "supported", "0", ["0", "1"], []),
        ([np.ones(20)] * 2, "supported", "0", ["0", "1"], []),
        ([AGAINST, np.full(24, -1.0)], "contradicted", "1", [], ["0", "1"]),
    ],
)
def test_a_verdict_names_the_part_that_decides_and_those_that_hold_or_are_refuted(
    values, expected, part, holds, refuted
):
    decision = decide(parts(*values), low=0)
    assert (decision.verdict, decision.part) == (expected, part)
    assert (decision.holds, decision.refuted) == (holds, refuted)


def test_templates_decide_as_one_problem_each_would():
    values = 0.3 + np.linspace(-1.5, 1.5, 25)
    ids = [f"embedded/{index // 4}/{index}" for index in range(100)]
    once = decide(parts(values), low=0)
    four_times = decide({"": (values.repeat(4), ids, "mean")}, low=0)
    assert four_times.verdict == once.verdict == "undecided"
    assert four_times.interval.low == pytest.approx(once.interval.low)
    # As 100 independent problems they would decide.
    assert decide(parts(values.repeat(4)), low=0).verdict == "supported"


def test_a_verdict_against_one_of_several_parts_is_corrected_for_their_number():
    values = 0.25 + np.linspace(-1, 1, 30)
    single = parts(values)
    four = parts(*[values] * 4)
    assert decide(single, high=0).verdict == "contradicted"
    assert decide(four, high=0).verdict == "undecided"

    p = p_value(single, high=0)
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=0.02)
    assert p_value(four, high=0) == pytest.approx(4 * p)
    assert p_value(four, low=0) == p  # in favour all must be shown, none is chosen


def test_p_is_that_of_the_part_which_surely_holds_least():
    weak = FOR - 4.7
    of_weak = p_value(parts(weak), low=0)
    assert p_value(parts(FOR), low=0) < 0.001 < of_weak < 0.05
    assert p_value(parts(FOR, weak), low=0) == of_weak


def test_problems_are_enough_whatever_the_number_of_their_templates():
    names = [f"embedded/template{i % 6}/{i}" for i in range(ENOUGH)]
    part = np.linspace(4, 6, ENOUGH), names
    decision = decide({"0": part}, low=0)
    assert decision.verdict == "supported"
