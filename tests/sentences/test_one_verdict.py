"""The words about a verdict follow from its numbers.

What is said of all of them is held against the README.
"""

import pytest

from lib.claims.verdict import Answers, Control, Estimate, Power, Verdict
from lib.sentences import one_verdict

UNTRAINED = {"control": Control(0.95, 0.9, 1.02, 24, "undecided")}
EVEN = {"uniform": Control(0.45, 0.4, 0.5, 24, "supported")}
SUPPORTED = {
    "verdict": "supported",
    "parts": 2,
    "holds": ("head 1", "head 2"),
}
IN_PART = {
    "verdict": "in part",
    "parts": 5,
    "holds": ("L1 up", "L2 up"),
    "refuted": ("Gini down",),
}


def verdict(n=24, **changes):
    """Return a verdict on a claim that two heads support, unless changed."""
    fields = {
        "id": "dilution",
        "claim": "Every head drops",
        "reading": "literal",
        "source": "Fig. 2",
        "model": "tiny",
        "unit": "λ",
        "range": (None, 1),
        "written": "after",
        "part": "head 1",
        "effect": 0.8,
        "low": 0.7,
        "high": 0.9,
        "n": n,
        "survives": True,
    }
    return Verdict(**(fields | SUPPORTED | changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (IN_PART, "in part (2 of 5)"),
        (IN_PART | {"survives": False}, "in part (2 of 5) †"),
        ({"survives": False}, "supported †"),
        ({"verdict": "undecided", "survives": False}, "undecided"),
        ({"training": "also"}, "supported, also without training"),
        ({"training": "weaker"}, "supported, weaker than without training"),
        ({"n": 19}, "too few"),
        ({"n": 19, "equivalence": 2}, "too few"),
        ({"equivalence": 2}, "supported, and small"),
        ({"n": 0, "reason": "no layer 7"}, "not tested"),
    ],
)
def test_a_verdict_is_told_with_its_parts_and_whether_it_is_lost(changes, text):
    assert one_verdict.verdict_text(verdict(**changes)) == text


def test_numbers_name_problems_templates_heads_parts_and_controls():
    changes = {"clusters": 28, "heads": 9, "heads_held": 8}
    text = one_verdict.measured_text(verdict(n=100, **changes, **UNTRAINED, **EVEN))
    assert text == (
        "head 1: 0.80 [0.70, 0.90] λ, claimed < 1, n = 100 of 28 templates; as claimed"
        " in 8 of 9 heads; all 2 parts hold; untrained 0.900 to 1.020; evenly spread"
        " attention 0.450 [0.400, 0.500]"
    )
    alone = one_verdict.measured_text(verdict(n=24, clusters=24))
    assert "templates" not in alone
    text = one_verdict.measured_text(verdict(**IN_PART))
    assert "of 5 parts hold: L1 up, L2 up; refuted: Gini down" in text


@pytest.mark.parametrize(
    ("ends", "text"),
    [((0.9, 1.1), "claimed 0.9 to 1.1,"), ((0, None), "claimed > 0,")],
)
def test_the_claimed_range_is_told_by_its_ends(ends, text):
    assert text in one_verdict.measured_text(verdict(range=ends))


def test_beside_an_accuracy_stand_cut_answers_the_others_effect_and_the_n_needed():
    finished = Estimate(1.0, 0.5, 1.5, 30)
    answers = Answers(12.5, 2.5, finished)
    power = Power(1200, 900, 1600)
    judged = verdict(answers=answers, power=power, paper=-2.0, paper_of="a 7B")
    assert one_verdict.answers_text(judged) == (
        "; 12 and 2 % of answers were cut at the token limit; +1.00 [+0.50, +1.50]"
        " where both ended (n = 30); an effect of 2, the paper's for a 7B, needs"
        " n = 1,200 (900 to 1,600)"
    )
