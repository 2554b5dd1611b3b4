"""The words about a row follow from its numbers."""

import pytest

from lib.claims.sentences import closing, learnt, measured_text, verdict_text

ROW = {
    "id": "dilution",
    "claim": "It drops",
    "source": "Fig. 2",
    "model": "m",
    "verdict": "supported",
    "component": "head 4",
}
ROW |= {"components": 9, "effect": 0.8, "low": 0.7, "high": 0.9, "n": 100, "clusters": 28, "constant": False}
ROW |= {"unit": "λ", "range": [None, 1], "paper": None, "needed": None, "reason": None, "survives": True}
ROW |= {"control": None, "uniform": None, "specific": None}
CONTROL = {
    "component": "head 4",
    "effect": 0.5,
    "low": 0.4,
    "high": 0.6,
    "verdict": "supported",
    "difference": 0.3,
    "difference_low": 0.2,
    "difference_high": 0.4,
    "networks": 3,
}


@pytest.mark.parametrize(
    ("verdict", "control", "specific", "word", "sentence"),
    [
        ("supported", None, None, "supported", "It holds for this model."),
        (
            "supported",
            "supported",
            False,
            "supported, also without training",
            "It holds for this model and for untrained ones; nothing shows that training moves it.",
        ),
        (
            "supported",
            "supported",
            True,
            "supported, also without training",
            "It holds for this model and for untrained ones; training moves it 0.30 above theirs.",
        ),
        (
            "supported",
            "contradicted",
            True,
            "supported",
            "It holds for this model; untrained ones do not, training brings it about (0.30 above theirs).",
        ),
        (
            "contradicted",
            "supported",
            True,
            "contradicted",
            "It does not hold for this model; untrained ones show it, training undoes it (0.30 above theirs).",
        ),
        (
            "undecided",
            "undecided",
            False,
            "undecided",
            "These problems cannot tell, nor for untrained ones; nothing shows that training moves it.",
        ),
    ],
)
def test_what_is_learnt_follows_from_verdict_control_and_specificity(verdict, control, specific, word, sentence):
    row = ROW | {"verdict": verdict, "specific": specific, "control": control and CONTROL | {"verdict": control}}
    assert verdict_text(row) == word and learnt(row) == sentence


def test_a_row_of_few_problems_or_none_teaches_nothing():
    assert verdict_text(ROW | {"n": 19}) == "too few" and "20 problems" in learnt(ROW | {"n": 19})
    untested = ROW | {"n": 0, "reason": "layer 7 was not measured"}
    assert verdict_text(untested) == "not tested" and measured_text(untested) == "Not tested: layer 7 was not measured."


def test_numbers_name_problems_templates_and_controls():
    text = measured_text(ROW | {"control": CONTROL, "uniform": CONTROL | {"effect": 0.45, "component": "head 1"}})
    assert text.startswith(
        "head 4: 0.80 [0.70, 0.90] λ, claimed < 1, n = 100 of 28 templates, the least favourable of 9"
    )
    assert text.endswith("; untrained 0.50 [0.40, 0.60]; uniform attention 0.45 [0.40, 0.60] (head 1)")


def test_what_never_varies_has_no_interval():
    same = ROW | {"effect": 8 / 9, "low": 8 / 9, "high": 8 / 9, "constant": True}
    assert "0.89 λ in all 100 problems" in measured_text(same) and "[0.89" not in measured_text(same)


def test_the_closing_counts_rows_and_names_what_stands():
    rows = [ROW, ROW | {"id": "length", "survives": False}, ROW | {"id": "affine", "verdict": "undecided"}]
    rows += [ROW | {"id": "few", "n": 19}]
    first, second, third = closing(rows)
    assert first.startswith("3 rows were tested") and "0.1 wrong verdicts" in first
    assert second == "Corrected for all rows (Holm) 1 of 2 verdicts stand: dilution." and third == "Not: length."
