"""A number that is told in two places is the same one, with the same interval."""

import pytest

from docs import stored
from docs.write import where


def told(rows, field):
    """Return a field of rows, an Estimate, by model: the number and its ends."""
    return {row.model: ends(getattr(row, field)) for row in rows}


def ends(estimate):
    return pytest.approx((estimate.effect, estimate.low, estimate.high), rel=1e-3)


def of_claim(claim):
    """Return a claim's number and its ends, by model."""
    estimates = [(row.model, row.estimate) for row in stored.about(claim)]
    return {model: (one.effect, one.low, one.high) for model, one in estimates}


def test_accuracy_moves_by_what_the_table_of_limits_has_at_its_limit():
    at_limit = where(stored.rows("studies/results/limits.csv"), limit=768)
    assert len(at_limit) == 2
    assert of_claim("accuracy-mless") == told(at_limit, "effect")


WEIGHTED = {
    "points-slashes": {"more": "mless", "less": "none"},
    "points-layer-1-needed": {"more": "mless", "less": "hidden-from-layer-1"},
    "points-arm": {"more": "arm", "less": "none"},
}


@pytest.mark.parametrize("claim, pair", WEIGHTED.items())
def test_a_weighted_claim_is_what_stands_beside_its_checks(claim, pair):
    checked = where(stored.rows("studies/results/weights.csv"), limit=1536, **pair)
    assert checked
    assert of_claim(claim) == told(checked, "points")


def test_an_accuracy_that_is_drawn_is_the_graders():
    graded = where(
        stored.rows("studies/results/authors_rule.csv"), profile="families", part="main"
    )
    drawn = where(stored.rows("figures/families/fig10.csv"), source="this run")
    assert len(graded) == len(drawn) == 4
    for row in drawn:
        (same,) = where(graded, model=row.model, condition=row.condition)
        found = row.accuracy
        assert (found.effect, found.low, found.high) == ends(same.ours)


def test_token_classes_differ_by_what_fig_7_shows():
    for row in stored.about("token-classes"):
        shown = where(
            stored.rows("figures/families/fig07.csv"),
            **{"model": row.model, "condition": "none", "class": row.part},
        )
        (difference,) = [getattr(one, "against others") for one in shown]
        found = row.estimate
        assert (found.effect, found.low, found.high) == ends(difference)


def test_no_interval_of_few_answers_has_no_width():
    for profile in ("demo", "families"):
        rows = where(stored.rows(f"figures/{profile}/fig10.csv"), source="this run")
        assert rows
        assert all(row.accuracy.high - row.accuracy.low > 1 for row in rows)
