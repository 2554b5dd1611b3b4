"""A number that is told in two places is the same one, with the same interval."""

import pytest

from docs import stored
from docs.write import where


def same(told, others):
    """Say that estimates by their places are the same elsewhere."""
    assert told
    assert told.keys() == others.keys()
    for place, one in told.items():
        other = others[place]
        numbers = (one.effect, one.low, one.high)
        assert numbers == pytest.approx((other.effect, other.low, other.high), rel=1e-3)


def of_claim(claim):
    """Return what is known of a claim by model."""
    return {row.model: row.estimate for row in stored.about(claim)}


def test_accuracy_moves_by_what_the_table_of_limits_has_at_its_limit():
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
def test_a_weighted_claim_has_the_numbers_of_the_diagnostics(
    claim, treatment, reference
):
    weighted = stored.rows("studies/results/weights.csv")
    checked = where(weighted, limit=1536, treatment=treatment, reference=reference)
    same(of_claim(claim), {row.model: row.points for row in checked})


def test_an_accuracy_that_is_drawn_is_the_graders():
    graded = stored.rows("studies/results/authors_rule.csv")
    graded = where(graded, profile="families", part="main")
    drawn = where(stored.rows("figures/families/fig10.csv"), source="this run")
    assert len(graded) == len(drawn) == 4
    same(
        {(row.model, row.condition): row.accuracy for row in drawn},
        {(row.model, row.condition): row.ours for row in graded},
    )


def test_token_classes_differ_by_what_fig_7_shows():
    shown = where(stored.rows("figures/families/fig07.csv"), condition="none")
    told = {
        (row.model, row.part): row.estimate for row in stored.about("token-classes")
    }
    differences = {
        (row.model, getattr(row, "class")): getattr(row, "against others")
        for row in shown
    }
    # A claim tells the class that decides it alone.
    same(told, {place: differences[place] for place in told})


@pytest.mark.parametrize("profile", ["demo", "families"])
def test_no_interval_of_few_answers_has_no_width(profile):
    rows = where(stored.rows(f"figures/{profile}/fig10.csv"), source="this run")
    assert rows
    assert all(row.accuracy.high - row.accuracy.low > 1 for row in rows)
