"""The rule of the claims on known truth: planted effects, none, and the opposite; parts; power."""

import numpy as np
import pytest
from scipy import stats

from lib.claims.verdict import Part, decide, n_deciding, p_value
from lib.statistics import ENOUGH, interval

SIMULATIONS = 400


def parts(*values, kind="mean"):
    return [Part(str(index), np.asarray(some, dtype=float), kind) for index, some in enumerate(values)]


def verdict(low, high, *values):
    return decide(parts(*values), low, high).verdict


@pytest.mark.parametrize("bounds", [(0, None), (None, 1), (0.25, 0.75), (0.9, 1.1)])
def test_planted_effects_give_their_verdicts(bounds):
    rng = np.random.default_rng(1)
    scale = (bounds[1] - bounds[0]) / 10 if None not in bounds else 1.0
    for end, inwards in ((bounds[0], 1), (bounds[1], -1)):
        if end is not None:
            noise = [scale * (rng.gamma(4.0, 0.5, 48) - 2) for _ in range(3)]
            assert verdict(*bounds, *(end + inwards * 2 * scale + some for some in noise)) == "supported"
            assert verdict(*bounds, *(end - inwards * 2 * scale + some for some in noise)) == "contradicted"
            edge = [verdict(*bounds, end + scale * (rng.gamma(4.0, 0.5, 48) - 2)) for _ in range(40)]
            assert edge.count("undecided") > 30


@pytest.mark.parametrize("distance", [0.2, 0.6])
def test_the_formula_agrees_with_simulated_power(distance):
    rng, n = np.random.default_rng(3), n_deciding(distance, 1.0)
    runs = [verdict(0, None, rng.normal(distance, 1, n)) for _ in range(SIMULATIONS)]
    assert runs.count("supported") / SIMULATIONS == pytest.approx(0.8, abs=0.06)
    assert n_deciding(0, 1.0) is None


FOR, OPEN, AGAINST = np.linspace(4, 6, 24), np.linspace(-1, 1.2, 24), np.linspace(-1.5, -0.5, 24)


@pytest.mark.parametrize(
    ("some", "expected", "part", "holds", "refuted"),
    [
        ([FOR, FOR - 3.5], "supported", "1", ["0", "1"], []),
        ([FOR, OPEN], "undecided", "1", ["0"], []),
        ([FOR, AGAINST, OPEN], "in part", "1", ["0"], ["1"]),
        ([OPEN, AGAINST], "contradicted", "1", [], ["1"]),
        ([AGAINST, 3 * AGAINST], "contradicted", "0", [], ["0", "1"]),
        ([AGAINST], "contradicted", "0", [], ["0"]),
        ([OPEN], "undecided", "0", [], []),
    ],
)
def test_a_claim_holds_in_part_where_some_parts_hold_and_some_are_refuted(some, expected, part, holds, refuted):
    found = decide(parts(*some), 0, None)
    assert (found.verdict, found.part.label, found.holds, found.refuted) == (expected, part, holds, refuted)
    assert found.parts == len(some)


def test_of_parts_that_are_equal_but_for_rounding_the_first_decides():
    values = np.linspace(0.5, 1.5, 20)
    for factors in ((1 + 1e-5, 1), (1, 1 + 1e-5)):
        assert decide(parts(*(f * values for f in factors)), 0.4, None).part.label == "0"
    for value in (0.0, 1.0):  # on the range's end, and infinitely far inside
        assert decide(parts(np.full(20, value), np.full(20, value)), 0, None).part.label == "0"


@pytest.mark.parametrize(("low", "high"), [(0, None), (None, 0), (-0.2, 0.2)])
def test_the_interval_that_is_shown_lies_as_the_verdict_says(low, high):
    rng, seen = np.random.default_rng(4), set()
    lower, upper = (-np.inf if low is None else low), (np.inf if high is None else high)
    for _ in range(200):
        values = rng.normal(rng.uniform(-1, 1), 0.15, size=(3, 30))
        found = decide(parts(*values), low, high)
        shown = found.found
        inside, outside = lower < shown.low and shown.high < upper, shown.high < lower or shown.low > upper
        seen.add(found.verdict)
        assert found.verdict not in ("contradicted", "in part") or outside
        assert found.verdict != "supported" or inside
        alone = interval(values[int(found.part.label)])
        assert (shown.low, shown.high) == pytest.approx((alone.low, alone.high))  # of 95 %, however many parts
    assert seen >= {"supported", "contradicted", "undecided"}


def test_a_verdict_against_one_of_several_parts_is_corrected_for_their_number():
    values = 0.25 + np.linspace(-1, 1, 30)
    assert verdict(None, 0, values) == "contradicted" and verdict(None, 0, *[values] * 4) == "undecided"
    alone, four = (p_value(parts(*[values] * count), None, 0) for count in (1, 4))
    assert alone == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=0.02) and four == pytest.approx(4 * alone)
    assert p_value(parts(*[values] * 4), 0, None) == alone  # in favour all must be shown, none is chosen


def test_constant_values_decide_without_an_interval():
    assert verdict(None, 5, np.zeros(30)) == "supported"
    assert verdict(0, None, np.zeros(30)) == "undecided"
    assert verdict(0, None, np.full(30, -1.0)) == "contradicted"
    assert verdict(0.25, 0.75, np.full(30, 8 / 9) + 1e-16 * np.arange(30)) == "contradicted"


@pytest.mark.parametrize("values", [[], [1.0], [np.nan, np.nan, 2.0]])
def test_no_interval_comes_of_fewer_than_two_problems(values):
    with pytest.raises(ValueError, match="too few"):
        decide(parts(values), 0, None)


def test_fewer_than_enough_problems_decide_nothing_whatever_they_hold():
    for values in (np.full(ENOUGH - 1, -1.0), np.linspace(5, 6, ENOUGH - 1)):
        found = decide(parts(values, np.ones(100)), 0, None)
        assert (found.verdict, found.part.label, found.holds) == ("undecided", "0", [])
    assert verdict(0, None, np.full(ENOUGH, -1.0)) == "contradicted"
