"""The decision rule of claims, on parts whose verdicts are known."""

import numpy as np
import pytest

from lib.statistics.intervals import ENOUGH, interval
from reproduction.claims.decision_rule import decide, p_value

FOR = np.linspace(4, 6, 24)
OPEN = np.linspace(-1, 1.2, 24)
AGAINST = np.linspace(-1.5, -0.5, 24)
CLEAR_BUT_FEW = np.linspace(5, 6, ENOUGH - 1)


def parts(*values):
    return {str(index): (part,) for index, part in enumerate(values)}


# Each row: the parts, the verdict, the part that decides, the parts that hold, and the
# parts that are refuted.
DECISIONS = [
    ([FOR, FOR - 3.5], "supported", "1", "01", ""),
    ([FOR, OPEN], "undecided", "1", "0", ""),
    ([FOR, AGAINST, OPEN], "in part", "1", "0", "1"),
    ([OPEN, AGAINST], "contradicted", "1", "", "1"),
    ([AGAINST, 3 * AGAINST], "contradicted", "0", "", "01"),
    # Constant values decide without an interval, if there are enough of them.
    ([np.full(ENOUGH, -1.0)], "contradicted", "0", "", "0"),
    ([np.full(30, 8 / 9) + 1e-16 * np.arange(30)], "supported", "0", "0", ""),
    ([np.zeros(30)], "undecided", "0", "", ""),
    # A part with too few problems decides, and keeps the verdict undecided, however
    # clear the other part is.
    ([CLEAR_BUT_FEW, np.ones(100)], "undecided", "0", "", ""),
    ([3 * AGAINST, CLEAR_BUT_FEW], "undecided", "1", "", ""),
    # Of parts that differ only by rounding, or that are infinitely far inside the
    # range, the first decides.
    ([(1 + 1e-5) * FOR, FOR], "supported", "0", "01", ""),
    ([np.ones(20)] * 2, "supported", "0", "01", ""),
    ([AGAINST, np.full(24, -1.0)], "contradicted", "1", "", "01"),
]


@pytest.mark.parametrize(("values", "expected", "part", "holds", "refuted"), DECISIONS)
def test_a_verdict_names_the_part_that_decides_and_those_that_hold_or_are_refuted(
    values, expected, part, holds, refuted
):
    decision = decide(parts(*values), low=0)
    assert (decision.verdict, decision.part) == (expected, part)
    assert (decision.holds, decision.refuted) == (list(holds), list(refuted))


def test_a_verdict_is_clustered_by_template_but_needs_only_enough_problems():
    values = 0.6 + np.linspace(-1.5, 1.5, 10)
    ids = [f"embedded/{index // 4}/{index}" for index in range(40)]
    templates = decide({"": (values.repeat(4), ids)}, low=0)
    assert templates.verdict == "undecided"
    assert templates.interval.low == pytest.approx(interval(values).low)
    # As 40 independent problems the values would decide; clearer values decide even
    # by template.
    assert decide(parts(values.repeat(4)), low=0).verdict == "supported"
    clear = values.repeat(4) + 1
    assert decide({"": (clear, ids)}, low=0).verdict == "supported"


def test_a_verdict_against_one_of_several_parts_is_corrected_for_their_number():
    values = 0.25 + np.linspace(-1, 1, 30)
    single = parts(values)
    four = parts(*[values] * 4)
    assert decide(single, high=0).verdict == "contradicted"
    assert decide(four, high=0).verdict == "undecided"

    p = p_value(single, high=0)
    assert p_value(four, high=0) == pytest.approx(4 * p)
    # Support needs every part, so no part is selected and nothing is corrected.
    assert p_value(four, low=0) == p


def test_the_p_value_is_that_of_the_weakest_part():
    weak = FOR - 4.7
    of_weak = p_value(parts(weak), low=0)
    assert p_value(parts(FOR), low=0) < 0.001 < of_weak < 0.05
    assert p_value(parts(FOR, weak), low=0) == of_weak
