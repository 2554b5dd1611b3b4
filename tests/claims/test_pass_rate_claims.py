"""Claims on importance-weighted pass rates: their numbers, and the reasons if they
cannot be tested.
"""

import numpy as np
import pandas as pd
import pytest
from evidence import verdict_on

from reproduction.evaluation.weighted_pass_rates import checked_weighted_differences

HALVES = ["none", "none", "mless", "mless"]
CLAIM = "points-slashes"


@pytest.fixture
def draws():
    """Sixty problems with two right answers of four, whose log-likelihoods differ
    little between the prompts.
    """
    rng = np.random.default_rng(0)
    draws = pd.DataFrame({"drawn_under": HALVES * 60, "right": [True, False] * 120})
    draws["problem_id"] = np.repeat([f"p{i}" for i in range(60)], len(HALVES))
    draws["none"] = rng.normal(-50, 5, len(draws))
    draws["mless"] = draws["none"] + rng.normal(0, 0.05, len(draws))
    return draws.assign(model="tiny", finish_reason="stop")


def test_a_claim_on_pass_rates_is_judged_by_the_weighted_difference(draws):
    judged = verdict_on(CLAIM, {"draws": draws})
    points = checked_weighted_differences(draws, "mless", "none")
    assert judged.estimate.effect == pytest.approx(points.mean())
    assert judged.verdict == "undecided"


def test_a_claim_on_pass_rates_under_an_unscored_condition_is_not_tested(draws):
    gap = {"treatment": "mless", "reference": "gap"}
    judged = verdict_on(CLAIM, {"draws": draws}, arguments=gap)
    assert judged.reason == "no sampled answer is scored under gap"
    one_half = draws[draws.drawn_under == "none"]
    judged = verdict_on(CLAIM, {"draws": one_half})
    assert "equally many answers of both halves" in judged.reason
