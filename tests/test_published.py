"""A number that two stored tables report is the same, with the same interval."""

import pytest

from docs import stored
from docs.write import where


def same(estimates, others):
    """Assert that estimates by label equal those of another table."""
    assert estimates
    assert estimates.keys() == others.keys()
    for label, one in estimates.items():
        other = others[label]
        numbers = (one.effect, one.low, one.high)
        assert numbers == pytest.approx((other.effect, other.low, other.high), rel=1e-3)


def of_claim(claim):
    """Return the estimates of a claim by model."""
    return {row.model: row.estimate for row in stored.about(claim)}


def test_the_accuracy_claim_equals_the_table_of_limits_at_its_limit():
    at_limit = where(stored.rows("studies/results/limits.csv"), limit=768)
    same(of_claim("accuracy-mless"), {row.model: row.effect for row in at_limit})


@pytest.mark.parametrize(
    "claim, treatment, reference",
    [
        ("points-slashes", "mless", "none"),
        ("points-layer-1-needed", "mless", "hidden-from-layer-1"),
        ("points-arm", "arm", "none"),
    ],
)
def test_a_weighted_claim_has_the_numbers_of_the_table_of_diagnostics(
    claim, treatment, reference
):
    weighted = stored.rows("studies/results/weights.csv")
    checked = where(weighted, treatment=treatment, reference=reference)
    same(of_claim(claim), {row.model: row.points for row in checked})


def test_the_accuracies_of_fig_10_equal_those_of_the_table_of_graders():
    graded = stored.rows("studies/results/authors_rule.csv")
    graded = where(graded, profile="families", part="main")
    drawn = where(stored.rows("figures/families/fig10.csv"), source="this run")
    assert len(graded) == len(drawn) == 4
    same(
        {(row.model, row.condition): row.accuracy for row in drawn},
        {(row.model, row.condition): row.ours for row in graded},
    )
