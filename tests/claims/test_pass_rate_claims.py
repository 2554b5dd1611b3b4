"""Claims on weighted pass rates: their numbers and margin, and why there are none."""

import numpy as np
import pandas as pd
import pytest

from lib.claims.answer_measures import pass_rates
from lib.claims.claim import Claim
from lib.claims.judging import judge, judge_one
from lib.claims.rule import Untestable
from lib.claims.verdict import SMALL
from lib.evaluation.pass_rates import point_differences

HALVES = ["none", "none", "mless", "mless"]


@pytest.fixture
def draws():
    """Sixty problems with two right answers of four, hardly likelier under mless."""
    rng = np.random.default_rng(0)
    size = 60 * len(HALVES)
    none = rng.normal(-50, 5, size)
    return pd.DataFrame(
        {
            "model": "tiny",
            "problem_id": np.repeat([f"p{i}" for i in range(60)], len(HALVES)),
            "drawn_under": HALVES * 60,
            "right": [True, False] * (size // 2),
            "finish_reason": "stop",
            "none": none,
            "mless": none + rng.normal(0, 0.05, size),
        }
    )


def claim_with(odds_ratio):
    return Claim.model_validate(
        {
            "id": "points",
            "claim": "Slashes raise the pass rate",
            "source": "Table 1",
            "measure": "pass_rates",
            "with": {"more": "mless", "less": "none"},
            "range": [0, None],
            "unit": "points",
            "written": "before",
            "reading": "literal",
            "odds_ratio": odds_ratio,
        }
    )


def test_a_claim_gets_the_points_of_each_problem(draws):
    values = pass_rates(draws, "mless", "none")
    expected = point_differences(draws, "mless", "none")
    assert values.values.ravel() == pytest.approx(expected.values)


def test_an_interval_within_the_margin_is_no_effect_of_that_size(draws):
    # From 50 % right answers, odds of 1 to 1.5, are 60 %.
    verdict = judge_one(claim_with(odds_ratio=1.5), "tiny", {"draws": draws})
    assert verdict.verdict == SMALL
    assert verdict.equivalence == pytest.approx(10)
    verdict = judge_one(claim_with(odds_ratio=1.0001), "tiny", {"draws": draws})
    assert verdict.verdict == "undecided"


def test_a_margin_is_that_of_the_answers_without_slashes(draws):
    without = draws.drawn_under == "none"
    draws.loc[without, "right"] = [True, False, False, False, False, False] * 20
    judged = judge_one(claim_with(odds_ratio=2), "tiny", {"draws": draws})
    # From one in six, odds of 1 to 5, to 2 to 5, which is two in seven.
    assert judged.equivalence == pytest.approx(100 * (2 / 7 - 1 / 6))


def test_a_condition_that_nobody_scored_cannot_be_tested(draws):
    with pytest.raises(Untestable, match="scored under gap"):
        pass_rates(draws, "mless", "gap")
    with pytest.raises(Untestable, match="two answers of each half"):
        pass_rates(draws[draws.drawn_under == "none"], "mless", "none")


def test_a_claim_that_none_can_test_is_told_of_a_model_that_was_asked(draws):
    one_half = draws[draws.drawn_under == "none"]
    evidence = {"first": {}, "tiny": {"draws": one_half}}
    (verdict,) = judge([claim_with(odds_ratio=1.5)], evidence)
    assert verdict.model == "tiny"
    assert "two answers of each half" in verdict.reason
    (verdict,) = judge([claim_with(odds_ratio=1.5)], {"first": {}, "second": {}})
    assert verdict.model == "first"
