"""Rows and sentences of notebooks 01, 02 and 04, on hand-written tables: each sentence, and its opposite."""

import pandas as pd
import pytest

from lib.measurement import findings


def frame(columns, *rows):
    return pd.DataFrame(rows, columns=columns.split())


HEADS = frame("figure model lambda", ("fig13", "A", 0.6), ("fig13", "A", 0.4), ("fig18", "B", 0.9), ("fig18", "B", 1.1))
# model, condition, layer, head, λ, p
LAMBDAS = frame(
    "model condition layer head lambda p n",
    ("A", "mless", 1, 1, 0.5, 0.01, 7),
    ("A", "mless", 1, 2, 1.5, 0.01, 7),
    ("A", "mless", 2, 1, 0.5, 0.90, 7),
    ("A", "mless", 3, 1, 1.2, 0.04, 7),
    ("A", "random", 2, 1, 0.2, 0.01, 7),
)
LAYERS = frame(
    "model measure condition layer mean low high n",
    ("A", "lambda", "mless", 1, 0.63, 0.61, 0.64, 7),
    ("A", "lambda", "mful", 1, 0.60, 0.61, 0.64, 7),
    ("A", "flatness", "mless", 1, 0.17, 0.1, 0.2, 7),
    ("A", "flatness", "random", 1, 0.70, 0.1, 0.2, 7),
    ("A", "flatness", "random", 2, 0.10, 0.1, 0.2, 7),
)
COUNTED = frame(
    "model condition layer below above heads mean low high n",
    ("A", "mless", 1, 9, 0, 9, 0.634, 0.6, 0.7, 100),
    ("A", "mless", 2, 8, 1, 9, 0.766, 0.6, 0.7, 100),
    ("A", "mful", 1, 9, 0, 9, 0.611, 0.6, 0.7, 100),
)
CAUSES = frame("model cause share", ("A", "both", 1.0), ("A", "terms", 0.958), ("A", "distance", -0.102))
CHANGES = frame(
    "model condition layer measure ratio low high p n",
    ("A", "mless", 1, "near zero", 0.96, 0.95, 0.97, 0.001, 9),
    ("A", "mless", 1, "L1", 1.10, 1.01, 1.2, 0.001, 9),
    ("A", "mless", 1, "L2", 1.10, 1.01, 1.2, 0.001, 9),
    ("A", "mless", 1, "variance", 1.20, 1.01, 1.3, 0.2, 9),
    ("A", "mless", 2, "variance", 0.80, 0.7, 0.9, 0.001, 4),
)
CLASSES = pd.DataFrame(
    [
        ("A", "none", "digits", 2.3, 1.9, 2.7),
        ("A", "none", "operators", -0.98, -1.7, -0.2),
        ("A", "none", "conjunctions", 1.0, -0.1, 2.1),
        ("A", "none", "others", 0.0, 0.0, 0.0),
        ("A", "mless", "digits", 9.0, 8.0, 10.0),
    ],
    columns=["model", "condition", "class", "against others", "against low", "against high"],
)


def test_drawn_heads_have_a_row_per_figure_with_their_lambdas():
    first, second = findings.drawn_heads_rows(HEADS)
    assert first["found"] == "λ 0.40 to 0.60" and first["lambda"] == [0.6, 0.4] and first["n"] == 1
    assert (second["figure"], second["model"]) == ("fig18", "B")


def test_drawn_heads_agree_with_the_paper_or_not():
    assert findings.drawn_heads_sentences(HEADS) == [
        "A: with the slashes the original tokens receive less on 2 of 2 drawn heads, as the paper says of every head.",
        "B: with the slashes the original tokens receive less on 1 of 2 drawn heads and no less on 1, where the paper "
        "says every head.",
    ]


def test_heads_are_counted_beside_the_mean_of_their_layer():
    (row,) = findings.counted_layers(LAMBDAS, LAYERS).to_dict("records")
    assert (row["below"], row["above"], row["heads"], row["mean"], row["n"]) == (1, 1, 2, 0.63, 7)


def test_later_layers_are_counted_together():
    mless, random = findings.later_layers(LAMBDAS).to_dict("records")
    assert (mless["below"], mless["above"], mless["heads"], mless["n"]) == (0, 1, 2, 7)
    assert (random["condition"], random["below"]) == ("random", 1)


def test_the_effect_has_four_rows_per_model():
    span = LAYERS[LAYERS.measure == "flatness"]
    rows = {row["figure"]: row for row in findings.effect_rows(COUNTED, span, CAUSES)}
    assert [row["found"] for row in rows.values()] == [
        "λ L1 0.63, L2 0.77",
        "L1 λ: mless 0.63, mful 0.61",
        "L1 spread: mless 0.17, random 0.70",
        "terms 96%, distance -10% of log λ",
    ]
    assert rows["fig09"]["lambda"] == [0.634, 0.766] and {row["n"] for row in rows.values()} == {100}


def test_dilution_is_counted_for_the_slashes_alone():
    later = frame("model condition below above heads n", ("A", "mless", 0, 5, 18, 24), ("A", "random", 9, 9, 18, 24))
    assert findings.dilution_sentences(COUNTED, later) == [
        "A, layer 1: the slashes surely dilute 9 of 9 heads and surely strengthen 0; mean λ 0.63 (n = 100).",
        "A, layer 2: the slashes surely dilute 8 of 9 heads and surely strengthen 1; mean λ 0.77 (n = 100).",
        "A, all later layers that were loaded: they surely dilute 0 of 18 heads and surely strengthen 5 (n = 24).",
    ]


@pytest.mark.parametrize("random, text", [(0.7, "more uneven"), (0.17, "no more uneven"), (0.1, "no more uneven")])
def test_a_random_sentence_is_more_uneven_or_not(random, text):
    span = frame(
        "model measure condition layer mean",
        ("A", "flatness", "mless", 1, 0.17),
        ("A", "flatness", "random", 1, random),
    )
    assert findings.span_sentences(span) == [
        f"A, layer 1: a random sentence receives {text} attention than slashes do "
        f"(coefficient of variation {random:.2f} against 0.17)."
    ]


def test_the_dilution_comes_from_the_larger_cause():
    (text,) = findings.cause_sentences(CAUSES)
    assert text == (
        "A, layer 1: the dilution comes from the enlarged denominator "
        "(of log λ, added terms alone give 96%, distance alone -10%)."
    )
    (other,) = findings.cause_sentences(CAUSES.assign(share=[1.0, 0.2, 0.7]))
    assert "comes from the distance (" in other


@pytest.mark.parametrize(
    "low, describe, told", [(0.546, "do not describe", "0.95 [0.55, 0.97]"), (0.91, "describe", "0.950 [0.910, 0.970]")]
)
def test_one_lambda_and_one_sigma_describe_the_outputs_or_not(low, describe, told):
    affine = pd.DataFrame(
        [("A", "R2 of lambda * old + sigma", 0.95, low, 0.97, 100), ("A", "R2 of old + sigma", -0.6, -0.8, -0.4, 100)],
        columns=["model", "measure", "mean", "low", "high", "n"],
    )
    assert findings.affine_sentences(affine) == [
        f"A: one λ and one σ per prompt and head {describe} the outputs of layer 1 with slashes (R² {told}, n = 100)."
    ]


def test_activations_have_a_row_for_changes_and_one_for_classes():
    first, second = findings.activation_rows(CHANGES, CLASSES)
    assert first["found"] == "layer 1, mless: near zero ×0.96, L1 ×1.10, L2 ×1.10, variance ×1.20" and first["n"] == 9
    assert second["found"] == "near zero against others: digits +2.3, operators -1.0, conjunctions +1.0 points"


@pytest.mark.parametrize(
    "row, column, value, moves", [(0, "high", 0.97, True), (0, "high", 1.01, False), (3, "low", 0.99, False)]
)
def test_activations_move_away_from_zero_when_all_four_measures_say_so(row, column, value, moves):
    changes = CHANGES.copy()
    changes.loc[row, column] = value
    (text,) = findings.change_sentences(changes)
    verdict = "surely moves activations away from zero" if moves else "does not move all four as the paper says"
    assert text == f"A, layer 1: mless {verdict} (near zero ×0.96, L1 ×1.10, L2 ×1.10, variance ×1.20, n = 9)."


def test_arm_is_judged_beside_the_slashes():
    both = pd.concat([CHANGES, CHANGES.assign(condition="arm")])
    assert [text.split()[3] for text in findings.change_sentences(both)] == ["mless", "arm"]


def test_layers_in_which_a_measure_surely_rises_or_falls_are_counted():
    row = findings.rising_layers(CHANGES).set_index("measure").loc["variance"]
    assert (row.rises, row.falls, row.layers) == (0, 1, 2)


def test_classes_surely_above_and_below_the_others_are_named():
    (text,) = findings.class_sentences(CLASSES)
    assert text == "A, layer 1: more near-zero activations than others surely have: digits; fewer: operators."
    none = CLASSES.assign(**{"against low": -1.0, "against high": 1.0})
    assert findings.class_sentences(none)[0].endswith("surely have: none; fewer: none.")


def test_likeness_is_said_of_layer_one():
    alike = frame("model condition layer shape elements n", ("A", "arm", 1, 0.23, -0.07, 9), ("A", "arm", 2, 1, 1, 9))
    assert findings.likeness_sentences(alike) == [
        "A: arm changes the histogram of layer 1 as slashes do with cosine 0.23, single activations with -0.07 (n = 9)."
    ]
