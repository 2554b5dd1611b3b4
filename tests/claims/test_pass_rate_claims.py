"""Claims on weighted pass rates: their numbers and margin, and why there are none."""

import numpy as np
import pandas as pd
import pytest
from evidence import verdict_on

from lib.claims.verdict import SMALL
from lib.evaluation.pass_rates import point_differences

HALVES = ["none", "none", "mless", "mless"]
CLAIM = "points-slashes"


@pytest.fixture
def draws():
    """Sixty problems with two right answers of four, hardly likelier under mless."""
    rng = np.random.default_rng(0)
    draws = pd.DataFrame({"drawn_under": HALVES * 60, "right": [True, False] * 120})
    draws["problem_id"] = np.repeat([f"p{i}" for i in range(60)], len(HALVES))
    draws["none"] = rng.normal(-50, 5, len(draws))
    draws["mless"] = draws["none"] + rng.normal(0, 0.05, len(draws))
    return draws.assign(model="tiny", finish_reason="stop")


@pytest.mark.parametrize(
    ("odds_ratio", "verdict"), [(1.5, SMALL), (1.0001, "undecided")]
)
def test_an_interval_within_the_margin_is_no_effect_of_that_size(
    draws, odds_ratio, verdict
):
    judged = verdict_on(CLAIM, {"draws": draws}, odds_ratio=odds_ratio)
    points = point_differences(draws, "mless", "none")
    assert judged.estimate.effect == pytest.approx(points.mean())
    assert judged.verdict == verdict


def test_a_margin_is_that_of_the_answers_without_slashes(draws):
    without = draws.drawn_under == "none"
    draws.loc[without, "right"] = [True, False, False, False, False, False] * 20
    judged = verdict_on(CLAIM, {"draws": draws}, odds_ratio=2)
    # From one in six, odds of 1 to 5, to 2 to 5, which is two in seven.
    assert judged.equivalence == pytest.approx(100 * (2 / 7 - 1 / 6))


def test_a_condition_that_nobody_scored_cannot_be_tested(draws):
    gap = {"more": "mless", "less": "gap"}
    judged = verdict_on(CLAIM, {"draws": draws}, arguments=gap)
    assert judged.reason == "no sampled answer is scored under gap"
    one_half = draws[draws.drawn_under == "none"]
    judged = verdict_on(CLAIM, {"draws": one_half})
    assert "two answers of each half" in judged.reason
