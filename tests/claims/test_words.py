"""The words about a row follow from its numbers."""

import pandas as pd
import pytest

from lib import evaluation
from lib.claims import words
from lib.claims.verdict import COLUMNS
from lib.profiles import load_profile

ROW = dict.fromkeys(COLUMNS)
ROW |= {"id": "dilution", "claim": "It drops", "source": "Fig. 2", "model": "m", "verdict": "supported"}
ROW |= {"component": "head 4", "components": 9, "effect": 0.8, "low": 0.7, "high": 0.9, "n": 100, "clusters": 28}
ROW |= {"unit": "λ", "high_end": 1.0, "survives": True}
CONTROL = {"control_verdict": "supported", "control_component": "head 4", "control_effect": 0.5, "control_low": 0.4}
CONTROL |= {"control_high": 0.6, "difference": 0.3, "difference_low": 0.2, "difference_high": 0.4}
HOLDS, NOT = "It holds for this model", "It does not hold for this model"


@pytest.mark.parametrize(
    ("verdict", "control", "specific", "shared", "sentence"),
    [
        ("supported", None, None, False, HOLDS),
        (
            "supported",
            "supported",
            False,
            True,
            f"{HOLDS} and for untrained ones; nothing shows that training moves it",
        ),
        ("supported", "supported", True, True, f"{HOLDS} and for untrained ones; training moves it 0.30 above theirs"),
        ("supported", "contradicted", True, False, f"{HOLDS}; untrained ones do not, training brings it about"),
        ("contradicted", "supported", True, False, f"{NOT}; untrained ones show it, training undoes it (0.30 above"),
        ("undecided", "undecided", False, False, "These problems cannot tell, nor for untrained ones; nothing shows"),
    ],
)
def test_what_is_learnt_follows_from_verdict_control_and_specificity(verdict, control, specific, shared, sentence):
    row = ROW | {"verdict": verdict, "specific": specific} | (CONTROL | {"control_verdict": control} if control else {})
    assert words.verdict_text(row) == verdict + ", also without training" * shared
    assert words.learnt(row).startswith(sentence)


def test_a_row_of_few_problems_or_none_teaches_nothing():
    assert words.verdict_text(ROW | {"n": 19}) == "too few" and "20 problems" in words.learnt(ROW | {"n": 19})
    untested = ROW | {"n": 0, "reason": "layer 7 was not measured"}
    assert words.verdict_text(untested) == "not tested" and words.beside(untested) == "not tested"
    assert words.measured_text(untested) == "Not tested: layer 7 was not measured."


def test_numbers_name_problems_templates_and_controls():
    uniform = {"uniform_verdict": "supported", "uniform_component": "head 1", "uniform_effect": 0.45}
    text = words.measured_text(ROW | CONTROL | uniform | {"uniform_low": 0.4, "uniform_high": 0.6})
    start = "head 4: 0.80 [0.70, 0.90] λ, claimed < 1, n = 100 of 28 templates, the least favourable of 9"
    assert text.startswith(start)
    assert text.endswith("; untrained 0.50 [0.40, 0.60]; uniform attention 0.45 [0.40, 0.60] (head 1)")


def test_what_never_varies_has_no_interval():
    same = ROW | {"effect": 8 / 9, "low": 8 / 9, "high": 8 / 9}
    assert "0.89 λ in all 100 problems" in words.measured_text(same) and "[0.89" not in words.measured_text(same)


def test_the_closing_counts_rows_and_names_what_stands():
    rows = [ROW, ROW | {"id": "length", "survives": False}, ROW | {"id": "affine", "verdict": "undecided"}]
    first, second, third = words.closing(pd.DataFrame([*rows, ROW | {"id": "few", "n": 19}]))
    assert first.startswith("3 rows were tested") and "0.1 wrong verdicts" in first
    assert second == "Corrected for all rows (Holm) 1 of 2 verdicts stand: dilution." and third == "Not: length."


def test_the_page_has_four_lines_a_row_from_which_the_verdict_follows():
    rows = pd.DataFrame(
        [ROW, ROW | {"id": "length", "verdict": "undecided", "needed": 90, "paper": -2.0, "paper_of": "b"}]
    )
    lines = words.page(rows).splitlines()
    assert len(lines) == 8 + 2 and lines[0] == "SUPPORTED: dilution (Fig. 2), m"
    assert lines[6].endswith("; the paper -2 (b); an effect of the paper's size needs n = 90")


TABLE = pd.DataFrame(
    [
        ROW | CONTROL,
        ROW | CONTROL | {"model": "B", "control_verdict": "undecided"},
        ROW | {"id": "regularity"},
        ROW | {"id": "regularity", "model": "B", "verdict": "undecided"},
        ROW | {"id": "affine", "verdict": "contradicted"},
        ROW | {"id": "affine", "model": "B", "verdict": "undecided"},
        ROW | {"id": "accuracy-mless", "verdict": "undecided", "n": 80, "needed": 2345, "unit": "points"},
        ROW | {"id": "accuracy-mless", "model": "B", "verdict": "contradicted", "n": 200, "unit": "points"},
        ROW | {"id": "likelihood-gain", "claim": "Likelier", "unit": "nats"},
        ROW | {"id": "length", "verdict": "undecided", "n": 0},
    ]
)


def test_sentences_say_what_holds_in_all_models_in_some_and_in_none_and_which_n_would_decide_accuracy():
    assert words.inside(TABLE) == [
        "Of 3 claims about the inside of 2 models, supported in all: dilution; in some: regularity; in none: affine.",
        "Untrained networks share 1 of 4 verdicts.",
    ]
    assert words.accuracies(TABLE) == [
        "Effect on accuracy, in points, on m (n = 80): accuracy-mless +0.80 [+0.70, +0.90] (needs 2,345).",
        "Effect on accuracy, in points, on B (n = 200): accuracy-mless +0.80 [+0.70, +0.90] (contradicted).",
    ]
    assert words.accuracies(TABLE[:1]) == ["No model's accuracy was tested."]


def test_verdicts_are_counted_per_model():
    first, second = words.counts(TABLE).to_dict("records")
    assert (first["model"], first["supported"], first["undecided"], first["not tested"]) == ("m", 3, 1, 1)
    assert second["model"] == "B"
    assert words.lead(TABLE)[0].startswith("Of 10 verdicts, on 6 claims and 2 models, 4 are supported by what was")


def test_cells_tell_effect_control_and_n():
    first, second = words.rows_of(TABLE)[0], words.rows_of(TABLE)[2]
    assert words.cell_text(first) == "0.80 [0.70, 0.90]\nuntrained 0.50, n = 100"
    assert words.cell_text(second | {"n": 19}) == "0.80 [0.70, 0.90]\nn = 19, too few"
    assert words.beside(first) == "0.80 [0.70, 0.90] λ, claimed < 1"


def test_a_notebook_ends_with_the_claims_that_its_numbers_decide():
    run = load_profile("demo")
    found = words.found(run, "03", answers=[evaluation.answers(run)])
    assert list(found.claim) == ["55 slashes raise accuracy", '55 times "he" raises accuracy'] and set(found.n) == {96}
    assert words.found(run, "02", answers=[evaluation.answers(run)]).empty
