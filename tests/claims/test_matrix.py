"""Claims of several models side by side: the table behind the matrix and the sentences about it."""

import matplotlib.pyplot as plt

from lib.claims.matrix import cell_text, matrix_sentences, matrix_table
from lib.figures.claims import draw_matrix

CONTROL = {"effect": 0.5, "low": 0.4, "high": 0.6, "verdict": "supported"}


def row(claim, model, verdict, n=24, control=None, needed=None):
    told = {"id": claim, "claim": claim, "source": "Fig. 1", "model": model, "verdict": verdict, "n": n, "unit": "λ"}
    return told | {"effect": 0.45, "low": 0.41, "high": 0.5, "needed": needed, "control": control}


ROWS = [
    row("dilution", "A", "supported", control=CONTROL),
    row("dilution", "B", "supported", control=CONTROL | {"verdict": "undecided"}),
    row("regularity", "A", "supported"),
    row("regularity", "B", "undecided"),
    row("affine", "A", "contradicted"),
    row("affine", "B", "undecided"),
    row("accuracy-mless", "A", "undecided", n=80, needed=2345),
    row("accuracy-mless", "B", "contradicted", n=200),
    row("length", "A", "undecided", n=0),
]


def test_sentences_say_what_holds_in_all_models_in_some_and_in_none_and_which_n_would_decide_accuracy():
    assert matrix_sentences(matrix_table(ROWS)) == [
        "Of 3 claims about the inside of 2 models, supported in all: dilution; in some: regularity; in none: affine.",
        "Untrained networks share 1 of 4 verdicts.",
        "Effect on accuracy, in points, on A (n = 80): accuracy-mless +0.450 [+0.410, +0.500] (needs 2,345).",
        "Effect on accuracy, in points, on B (n = 200): accuracy-mless +0.450 [+0.410, +0.500] (contradicted).",
    ]
    assert matrix_sentences(matrix_table(ROWS[:1]))[-1] == "No model's accuracy was tested."


def test_the_table_has_a_row_for_each_claim_and_model_that_tested_it_with_its_control():
    table = matrix_table(ROWS)
    assert list(zip(table.model, table.id, strict=True))[:4] == [
        ("A", "dilution"), ("A", "regularity"), ("A", "affine"), ("A", "accuracy-mless")
    ]  # fmt: skip
    assert table.shared.tolist() == [True] + 7 * [False] and table.control_effect.count() == 2
    texts = [cell_text(one) for one in table.itertuples()]
    assert texts[0] == "0.450 [0.410, 0.500]\nuntrained 0.50, n = 24" and texts[1] == "0.450 [0.410, 0.500]\nn = 24"


def test_the_matrix_tells_verdicts_by_mark_as_well_as_by_colour_and_shared_ones_by_a_hollow_mark():
    figure, ax = plt.subplots()
    cells = {("dilution", "A"): ("supported", True, "0.4"), ("affine", "B"): ("contradicted", False, "0.2")}
    marks = draw_matrix(ax, ["dilution", "affine"], ["A", "B"], cells)
    assert [(mark.get_marker(), mark.get_markerfacecolor() == "white") for mark in marks] == [("o", True), ("X", False)]
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("not tested") == 2 and {"0.4", "0.2"} <= set(texts)
    assert marks[0].get_ydata()[0] > marks[1].get_ydata()[0]  # the first claim on top
    plt.close(figure)
