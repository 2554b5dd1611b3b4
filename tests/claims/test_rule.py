"""The rule of the claims on known truth: planted effects, none, and the opposite; wrong verdicts; power."""

import numpy as np
import pytest
from scipy import stats

from lib.claims.asked import load_claims
from lib.claims.verdict import FARTHEST, POWER, Component, decide, n_deciding, p_value
from lib.statistics import ENOUGH, interval

CLAIMS = load_claims()
SIMULATIONS = 1000
# How many components each claim has on the demo model; a sample as small as the profiles use.
COMPONENTS = {"dilution": 9, "flat-filler": 2, "first-layer-only": 2, "random-differs": 2, "redistribution": 4}
COMPONENTS |= {"token-classes": 3, "position": 4, "arm-diversity": 2}
N = 48


def ends(claim):
    """Return the ends of a claim's range, with the direction that leads into it."""
    low, high = claim.range
    return [(end, sign) for end, sign in ((low, 1), (high, -1)) if end is not None]


def scale(claim):
    """Return a spread over problems that is small enough for the range to have an inside."""
    low, high = claim.range
    return (high - low) / 10 if None not in (low, high) else 1.0


def samples(rng, claim, centre, count, n=N):
    """Draw components (count, n): paired right/wrong differences for accuracies, skewed numbers otherwise."""
    if claim.unit == "points" and "accuracy" in claim.measure:
        return centre + 100 * rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1], size=(count, n))
    return centre + scale(claim) * (rng.gamma(4.0, 0.5, size=(count, n)) - 2)


def verdict(values, claim):
    return decide([Component(str(i), row) for i, row in enumerate(values)], *claim.range).verdict


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_planted_effects_give_their_verdicts(claim):
    rng, count = np.random.default_rng(1), COMPONENTS.get(claim.id, 1)
    for end, sign in ends(claim):
        width = (100 if "accuracy" in claim.measure and claim.unit == "points" else 2) * scale(claim)
        assert verdict(samples(rng, claim, end + sign * width, count), claim) == "supported"
        assert verdict(samples(rng, claim, end - sign * width, count), claim) == "contradicted"
    at_the_edge = [verdict(samples(rng, claim, ends(claim)[0][0], count), claim) for _ in range(40)]
    assert at_the_edge.count("undecided") > 30


@pytest.mark.parametrize("distance", [0.2, 0.4, 0.6])
def test_the_formula_agrees_with_simulated_power(distance):
    rng, n = np.random.default_rng(3), n_deciding(distance, 1.0)
    runs = [decide([Component("", rng.normal(distance, 1, n))], 0, None).verdict for _ in range(SIMULATIONS)]
    assert runs.count("supported") / SIMULATIONS == pytest.approx(POWER, abs=0.05)


def test_the_component_that_decides_is_the_least_favourable():
    strong, weak = np.linspace(4, 6, 20), np.linspace(0.5, 1.5, 20)
    found = decide([Component("strong", strong), Component("weak", weak)], 0, None)
    assert (found.verdict, found.component, found.components) == ("supported", "weak", 2)
    found = decide([Component("strong", strong), Component("against", -weak)], 0, None)
    assert (found.verdict, found.component) == ("contradicted", "against") and found.high < 0
    assert found.margin < 0 and found.margin_low <= found.margin <= found.margin_high


def test_of_components_that_are_equal_but_for_rounding_the_first_decides():
    values = np.linspace(0.5, 1.5, 20)
    for factors in ((1 + 1e-5, 1), (1, 1 + 1e-5)):
        found = decide(
            [Component(name, f * values) for name, f in zip(("one", "two"), factors, strict=True)], 0.4, None
        )
        assert found.component == "one"
    for value in (0.0, 1.0):  # on the range's end, and infinitely far inside
        assert decide([Component(name, np.full(20, value)) for name in ("one", "two")], 0, None).component == "one"


@pytest.mark.parametrize("low,high", [(0, None), (None, 0), (-0.2, 0.2)])
def test_the_interval_that_is_shown_lies_as_the_verdict_says(low, high):
    rng, seen = np.random.default_rng(4), set()
    lower, upper = (-np.inf if low is None else low), (np.inf if high is None else high)
    for _ in range(300):
        values = rng.normal(rng.uniform(-1, 1), 0.15, size=(3, 30))
        found = decide([Component(str(i), row) for i, row in enumerate(values)], low, high)
        inside, outside = lower < found.low and found.high < upper, found.high < lower or found.low > upper
        seen.add(found.verdict)
        assert found.verdict != "contradicted" or outside
        assert found.verdict != "supported" or inside
        shown = interval(values[int(found.component)])
        assert (found.low, found.high) == pytest.approx((shown.low, shown.high))  # of 95 %, however many parts
    assert seen == {"supported", "contradicted", "undecided"}


def test_a_verdict_against_one_of_several_parts_is_corrected_for_their_number():
    values = 0.25 + np.linspace(-1, 1, 30)
    alone, together = ([Component(str(i), values) for i in range(count)] for count in (1, 4))
    assert decide(alone, None, 0).verdict == "contradicted" and decide(together, None, 0).verdict == "undecided"
    assert p_value(together, None, 0) == pytest.approx(4 * p_value(alone, None, 0), rel=0.02)
    assert p_value(together, 0, None) == pytest.approx(p_value(alone, 0, None), rel=0.02)


def test_constant_values_of_few_problems_have_no_ends():
    found = decide([Component("", np.ones(5))], 0, None)
    assert (found.verdict, found.effect, found.low, found.high) == ("undecided", 1, None, None)
    assert found.margin == FARTHEST and found.margin_low is None


def test_only_undecided_names_an_n_and_the_papers_value_decides_which():
    wide = [Component("", np.tile([-3.0, 4.0, -2.0, 3.0, -1.0], 4))]
    assert decide([Component("", np.arange(1.0, 21))], 0, None).needed is None
    assert decide(wide, 0, None, paper=1.0).needed == n_deciding(1.0, float(np.std(wide[0].values, ddof=1)))
    assert decide([Component("", np.tile([-1.0, 1.0], 10))], 0, None).needed is None
    assert decide(wide, 0, None, paper=1.0).margin_paper > 0


def test_constant_values_decide_without_an_interval():
    assert decide([Component("", np.zeros(30))], None, 5).verdict == "supported"
    assert decide([Component("", np.zeros(30))], 0, None).verdict == "undecided"
    assert decide([Component("", np.full(30, -1.0))], 0, None).verdict == "contradicted"
    rounded = decide([Component("", np.full(30, 8 / 9) + 1e-16 * np.arange(30))], 0.25, 0.75)
    assert rounded.verdict == "contradicted" and rounded.margin == rounded.margin_low == -FARTHEST


def test_against_a_claim_of_several_parts_each_counts_for_all_of_them():
    values = 0.3 + np.linspace(-1, 1, 40)
    alone, four = (p_value([Component("", values)] * count, None, 0) for count in (1, 4))
    assert alone == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=0.02) and four == pytest.approx(4 * alone)
    assert p_value([Component("", values)] * 4, 0, None) == alone  # in favour all must be shown, none is chosen


@pytest.mark.parametrize("values", [[], [1.0], [np.nan, np.nan, 2.0]])
def test_no_interval_comes_of_fewer_than_two_problems(values):
    with pytest.raises(ValueError, match="too few"):
        decide([Component("share", np.array(values))], 0, None)


def test_fewer_than_enough_problems_decide_nothing_whatever_they_hold():
    for values in (np.full(ENOUGH - 1, -1.0), np.linspace(5, 6, ENOUGH - 1)):
        assert decide([Component("", values), Component("", np.ones(100))], 0, None).verdict == "undecided"
    assert decide([Component("", np.full(ENOUGH, -1.0))], 0, None).verdict == "contradicted"
