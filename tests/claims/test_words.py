"""The words about a row follow from its numbers."""

import pandas as pd

from lib.claims import words
from lib.claims.verdict import COLUMNS

ROW = dict.fromkeys(COLUMNS)
ROW |= {"id": "dilution", "claim": "It drops", "source": "Fig. 2", "model": "m", "verdict": "supported", "unit": "λ"}
ROW |= {"part": "head 4", "parts": 9, "held": 9, "effect": 0.8, "low": 0.7, "high": 0.9, "n": 100, "clusters": 28}
ROW |= {"reading": "literal", "high_end": 1.0, "survives": True}
CONTROL = {"control_verdict": "supported", "control_effect": 0.5, "control_low": 0.4, "control_high": 0.6}
CONTROL |= {"difference": 0.3, "difference_low": 0.2, "difference_high": 0.4}
UNIFORM = {"uniform_verdict": "supported", "uniform_effect": 0.45, "uniform_low": 0.4, "uniform_high": 0.5}
PART = {"verdict": "in part", "held": 4, "parts": 5, "holds": "L1 up, L2 up", "refuted": "Gini down"}
PAPER = {"paper": 2.0, "paper_of": "B-1.5B", "needed": 744, "needed_low": 155, "needed_high": 2077}
ANSWERS = {"id": "accuracy-mless", "verdict": "undecided", "unit": "points", "parts": 1, "held": 0, "cut": 25.5}
ANSWERS |= {"cut_less": 24, "finished_n": 60, "finished": 1.5, "finished_low": -2.7, "finished_high": 6.2} | PAPER


def said(**changes):
    (row,) = words.rows_of(pd.DataFrame([ROW | changes]))
    return row


def test_a_verdict_in_part_names_its_parts_and_one_that_is_lost_is_marked():
    assert said(**PART)["told"] == "in part (4 of 5)"
    assert said(**PART, survives=False)["told"] == "in part (4 of 5) †"
    assert said(verdict="undecided", survives=False)["told"] == "undecided"
    assert "of 5 parts hold: L1 up, L2 up; refuted: Gini down" in said(**PART)["measured"]
    assert said(training="also")["told"] == "supported, also without training"
    assert said(training="weaker")["told"] == "supported, weaker than without training"


def test_a_row_of_few_problems_or_none_has_no_verdict():
    assert said(n=19)["told"] == said(n=19)["stands"] == "too few"
    untested = said(n=0, reason="layer 7 was not measured")
    assert (untested["told"], untested["measured"]) == ("not tested", "Not tested: layer 7 was not measured")


def test_numbers_name_problems_templates_heads_and_controls():
    start = "head 4: 0.80 [0.70, 0.90] λ, claimed < 1, n = 100 of 28 templates; as claimed in 8 of 9 heads"
    start += "; all 9 parts hold; untrained 0.40 to 0.60; evenly spread attention 0.450 [0.400"
    assert said(**CONTROL, **UNIFORM, heads=9, heads_held=8)["measured"].startswith(start)
    assert "claimed 0.9 to 1.1," in said(low_end=0.9, high_end=1.1)["measured"]
    assert "claimed > 0," in said(low_end=0, high_end=None)["measured"]


def test_an_accuracy_has_cut_answers_the_effect_without_them_and_the_n_that_decides_beside_it():
    (text,) = words.accuracies(pd.DataFrame([ROW | ANSWERS]))
    assert text == (
        "It drops? m: +0.80 [+0.70, +0.90] points, n = 100, undecided; 26 and 24 % of answers were cut at the token "
        "limit; +1.5 [-2.7, +6.2] where both ended (n = 60); an effect of 2, the paper's for B-1.5B, needs n = 744 "
        "(155 to 2,077)."
    )
    assert words.accuracies(pd.DataFrame([ROW])) == ["No model's accuracy was tested."]


def test_the_listing_has_three_lines_a_row_from_which_the_verdict_follows():
    lines = words.listing(pd.DataFrame([ROW, ROW | ANSWERS])).splitlines()
    assert len(lines) == 3 * 2 + 2 and lines[0] == "SUPPORTED: dilution (Fig. 2, literal), m"
    assert [line for line in lines if line.endswith("..")] == []


def test_cells_tell_part_unit_effect_control_and_n():
    text = "head 4, λ\n0.80 [0.70, 0.90]\nuntrained 0.40 to 0.60\nn = 100; 9 of 9 parts"
    assert words.cell_text(ROW | CONTROL) == text
    few = words.cell_text(ROW | {"n": 19, "parts": 1, "heads": 4, "heads_held": 3})
    assert few == "head 4, λ\n0.80 [0.70, 0.90]\nn = 19, too few; 3 of 4 heads"
    assert "\ncut 26, 24 %; both ended +1.5\n" in words.cell_text(ROW | ANSWERS)


DEEP = {"effect": 1.02, "low": 1.0, "high": 1.04}
TABLE = pd.DataFrame(
    [
        ROW | CONTROL | UNIFORM | {"claim": "One", "training": "weaker"},
        ROW | CONTROL | UNIFORM | {"claim": "One", "model": "B", "effect": 0.7, "control_effect": 0.6},
        ROW | {"id": "two", "claim": "Two"},
        ROW | {"id": "two", "claim": "Two", "model": "B"} | PART,
        ROW | {"id": "three", "claim": "Three", "reading": "strict", "verdict": "contradicted", "survives": False},
        ROW | {"id": "later-layers", "part": "layers 5 to 9", "reading": "strict"} | DEEP,
        ROW | {"id": "nats", "claim": "Likelier", "unit": "nats"},
        ROW | {"id": "length", "verdict": "undecided", "n": 0},
    ]
)


def test_literal_readings_are_counted_and_untested_cells_too():
    assert words.totals(TABLE) == {"supported": 4, "in part": 1, "not tested": 3}
    wide = words.counts(TABLE).set_index("model")
    assert wide.loc["m"].to_dict() == {"supported": 3, "in part": 0, "not tested": 1} and wide.sum().sum() == 4 * 2
    first = "4 claims, as the paper words them, on 2 models (8 cells): 4 supported, 1 in part, 3 not tested."
    assert words.lead(TABLE)[0] == first


def test_sentences_say_what_holds_where_and_what_training_does():
    assert words.inside(TABLE) == [
        "Supported in all of 2 models: One.",
        "Supported in some of 2 models: Two.",
        "Supported in none of 2 models: nothing.",
        "Of 4 verdicts on the inside 0 also without training, 0 stronger than without training, "
        "1 weaker than without training.",
    ]
    assert words.finding(TABLE) == [
        "Slashes leave layer 1's original tokens 0.70 to 0.80 of their attention (λ, mean over heads); "
        "untrained networks 0.50 to 0.60, evenly spread attention 0.45. So training undoes 25 to 60 % of the dilution.",
        "From layer 5 on mean λ is: m 1.020 [1.000, 1.040].",
    ]


def test_the_closing_counts_rows_and_names_what_does_not_stand():
    first, second = words.closing(TABLE)
    assert first.startswith("7 rows were tested") and "0.2 wrong verdicts" in first
    assert second == "Corrected for all rows (Holm) 6 of 7 verdicts stand; not (†): three (m)."
