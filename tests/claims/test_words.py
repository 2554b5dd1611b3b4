"""The words about a row follow from its numbers; what is said of all of them is held
against the README.
"""

import pandas as pd
import pytest
from report_folder import CONTROL, claim

from lib.claims import words

PART = {
    "verdict": "in part",
    "held": 4,
    "parts": 5,
    "holds": "L1 up, L2 up",
    "refuted": "Gini down",
}


def said(**changes):
    (row,) = words.rows_of(pd.DataFrame([claim(**changes)]))
    return row


@pytest.mark.parametrize(
    "changes, told",
    [
        (PART, "in part (4 of 5)"),
        (PART | {"survives": False}, "in part (4 of 5) †"),
        ({"verdict": "undecided", "survives": False}, "undecided"),
        ({"training": "also"}, "supported, also without training"),
        ({"training": "weaker"}, "supported, weaker than without training"),
        ({"n": 19}, "too few"),
        ({"n": 0, "reason": "no layer 7"}, "not tested"),
    ],
)
def test_a_verdict_is_told_with_its_parts_what_training_adds_and_whether_it_is_lost(
    changes, told
):
    assert said(**changes)["told"] == told


def test_numbers_name_problems_templates_heads_parts_and_controls():
    uniform = {
        "uniform_verdict": "supported",
        "uniform_effect": 0.45,
        "uniform_low": 0.4,
        "uniform_high": 0.5,
    }
    measured = said(**CONTROL, **uniform, n=100, clusters=28, heads=9, heads_held=8)[
        "measured"
    ]
    start = (
        "head 1: 0.80 [0.70, 0.90] λ, claimed < 1, n = 100 of 28 templates; as claimed"
        " in 8 of 9 heads; all 2 parts"
    )
    assert (
        measured.startswith(start)
        and "evenly spread attention 0.450 [0.400" in measured
    )
    assert (
        "of 5 parts hold: L1 up, L2 up; refuted: Gini down" in said(**PART)["measured"]
    )
    for low, high, text in (
        (0.9, 1.1, "claimed 0.9 to 1.1,"),
        (0, None, "claimed > 0,"),
    ):
        assert text in said(low_end=low, high_end=high)["measured"]


def test_cells_tell_part_unit_effect_control_and_n():
    cell = words.cell_text(claim(**CONTROL))
    assert (
        cell == "head 1, λ\n0.80 [0.70, 0.90]\nuntrained 0.900 to 1.020\nn = 24; 2 of 2"
        " parts"
    )
    answers = {
        "parts": 1,
        "heads": 4,
        "heads_held": 3,
        "n": 19,
        "cut": 25.5,
        "cut_less": 24,
        "finished_n": 60,
    }
    cell = words.cell_text(claim(**answers, finished=1.5))
    assert cell.endswith(
        "]\ncut 26, 24 %; both ended +1.5\nn = 19, too few; 3 of 4 heads"
    )
