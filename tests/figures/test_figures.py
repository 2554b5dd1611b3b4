"""Every figure from a table of a few rows: it draws, saves the numbers that it was
given, and names its panels.
"""

import numpy as np
import pandas as pd
import pytest
from artists import texts

from lib.figures.looks import OUTCOME_LOOKS

M = "SmolLM2-135M-Instruct"
OTHER = "gemma-3-270m"
CONDITIONS = ("none", "mless", "mful", "random", "arm")


def product(**columns):
    """Return a table with a row for every combination of the columns' values."""
    index = pd.MultiIndex.from_product(columns.values(), names=columns)
    return index.to_frame(index=False).assign(n=40)


def estimated(name, prefix="", **columns):
    """Return such a table with an estimate and its ends."""
    ends = {name: 0.8, f"{prefix}low": 0.7, f"{prefix}high": 0.9}
    return product(**columns).assign(**ends)


def curves(*heads):
    """Return what five tokens receive in heads of layer 1; two are inserted."""
    parts = ["instruction"] * 2 + ["inserted"] * 2 + ["problem"]
    tokens = pd.DataFrame({"position": range(5), "part": parts})
    rows = product(layer=[1], head=heads, condition=CONDITIONS).drop(columns="n")
    rows = rows.assign(model=M, problem="sum/1").merge(tokens, how="cross")
    rows["received"] = 0.1 + 0.01 * rows.index
    return rows[(rows.condition != "none") | (rows.part != "inserted")]


NATS = estimated(
    "effect", panel=["pairs"], curve=["slashes"], x=["mless − none"], model=[M]
).assign(band=0.5)
COURSES = pd.concat(
    NATS.assign(panel=panel, x=x)
    for panel, x in [("length", 10), ("length", 55), ("place", "end")]
)
WAYS = ["sampled answers, weighted", "sampled answers, counted"]
POINTS = estimated("effect", curve=["slashes"], x=["mless − none"], model=[M], way=WAYS)
POINTS = POINTS.assign(answers=200, scored=[160, np.nan]).assign(
    effective=[120, np.nan], band=2, reported=2.3
)
POINTS = POINTS.assign(unit="points")
VERDICTS = product(id=["a", "b", "c"], model=[M, OTHER])
VERDICTS = VERDICTS.assign(claim="It " + VERDICTS.id, verdict="supported", n=24)
VERDICTS["survives"] = [True, True, False, True, False, None]
VERDICTS["reading"] = ["literal"] * 4 + ["strict"] * 2
DRAWN = {  # name: tables, how many panels, title of one of them
    "likelihood": ([NATS], 1, ""),
    "answer_at_once": ([NATS], 1, ""),
    "overview": ([NATS, curves(1)], 2, f"{M}\nLayer 1 Head 1"),
    "likelihood_courses": ([COURSES], 2, "How many, n = 40"),
    "points": ([POINTS], 1, ""),
    "claims_matrix": ([VERDICTS], 1, ""),
}
IN_ROWS = ("likelihood", "answer_at_once", "overview", "claims_matrix", "points")


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_its_panels_and_saves_every_number_that_it_draws(
    drawn, run, name
):
    tables, count, title = DRAWN[name]
    axes = drawn(name, *tables)
    assert len(axes) == count
    assert title in {ax.get_title() for ax in axes}
    assert (run.figures / f"{name}.png").stat().st_size > 500
    table = pd.read_csv(run.figures / f"{name}.csv")
    saved = table.select_dtypes("number").to_numpy().ravel()
    numbers = heights(axes, name)
    assert len(numbers) or name in IN_ROWS
    for number in numbers:
        assert np.isclose(saved, number, rtol=1e-5).any(), f"{number} is not saved"


def heights(axes, name):
    """Return every number that the y axes show."""
    if name in IN_ROWS:
        return []
    lines = [line for ax in axes for line in ax.lines]
    own = [line for line in lines if line.get_transform() == line.axes.transData]
    values = [np.asarray(line.get_ydata(), float) for line in own]
    numbers = np.unique(np.concatenate(values))
    return numbers[np.isfinite(numbers)]


def test_points_are_full_where_weighted_and_the_papers_gain_is_a_ring(drawn):
    other = POINTS.assign(x="layer-1-only − gap", band=1, reported=np.nan)
    (ax,) = drawn("points", pd.concat([POINTS, other]))
    marks = [line for line in ax.lines if np.isfinite(line.get_xdata()).all()]
    fills = [line.get_fillstyle() for line in marks if line.get_markersize() == 5]
    assert fills == ["full", "none"] * 2
    (ring,) = [line for line in marks if line.get_markersize() == 9]
    assert ring.get_xydata().tolist() == [[2.3, -1]]
    bands = [(band.get_x(), band.get_width()) for band in ax.patches[:4]]
    assert bands == [(-2, 4)] * 2 + [(-1, 2)] * 2
    first, second, *_ = texts(ax.texts)
    assert first.endswith("sampled answers, weighted, n = 40 (120 of 160 effective)")
    assert second.endswith("sampled answers, counted, n = 40")


def labels_of(ax):
    return ax.get_legend_handles_labels()[1]


def test_the_legend_of_points_names_what_is_drawn_and_nothing_else(drawn):
    (ax,) = drawn("points", POINTS)
    margin = "margin that was written down beforehand"
    marks = [M, "weighted", "counted"]
    assert labels_of(ax) == [*marks, "the paper's gain", margin]
    (ax,) = drawn("points", POINTS[:1].assign(band=np.nan, reported=np.nan))
    assert labels_of(ax) == [M, "weighted"]


def test_single_answers_are_hollow_and_an_interval_reaches_to_both_ends(drawn):
    (ax,) = drawn("points", POINTS.assign(way="single answers, counted"))
    marks = [line for line in ax.lines if line.get_markersize() == 5]
    assert marks[0].get_fillstyle() == "none"
    ends = [bar.get_segments()[0][:, 0].tolist() for bar in ax.collections]
    assert ends == [[0.7, 0.9]] * 2


def test_points_of_a_pair_stand_together_whatever_the_tables_order(drawn):
    other = POINTS.assign(x="gap − none")
    (ax,) = drawn("points", pd.concat([POINTS[:1], other, POINTS[1:]]))
    pairs = ["slashes\n(mless − none)", "slashes\n(gap − none)"]
    assert texts(ax.get_yticklabels()) == pairs


def test_the_matrix_grows_with_its_rows(drawn):
    (few,) = drawn("claims_matrix", VERDICTS[:4])
    (more,) = drawn("claims_matrix", VERDICTS)
    # A line for other readings, and a claim in one.
    grown = more.figure.get_figheight() - few.figure.get_figheight()
    assert grown == pytest.approx(2 * 0.235)


@pytest.mark.parametrize(
    "name",
    ["likelihood_courses", "points"],
)
def test_of_what_was_not_measured_nothing_is_drawn(drawn, run, name):
    (table,), *_ = DRAWN[name]
    assert drawn(name, table[:0]) == []
    assert not run.figures.exists()


VERDICTS_BY_ROW = [
    ("contradicted", "small"),  # a
    ("in part", "supported"),  # b
    ("undecided", "supported"),  # c, in another reading
]


@pytest.fixture
def matrix(drawn):
    """The matrix of three claims and two models, of which one cell was not tested."""
    verdicts = [verdict for row in VERDICTS_BY_ROW for verdict in row]
    rows = VERDICTS.assign(verdict=verdicts, n=[40, 40, 40, 40, 40, 0])
    (ax,) = drawn("claims_matrix", rows)
    return ax


def test_the_matrix_has_what_holds_first_and_other_readings_last(matrix):
    sentences = texts(matrix.texts)
    assert sentences == ["It b", "†", "It a", "Other readings, and controls", "It c"]
    names = " ".join(texts(matrix.get_xticklabels()))
    assert names.replace("\n", "") == f"{M} {OTHER}"


def test_the_matrix_has_a_mark_per_outcome_and_none_where_nothing_was_tested(matrix):
    names = {look.marker + look.fill: name for name, look in OUTCOME_LOOKS.items()}
    marks = {}
    for line in matrix.lines:
        for place in line.get_xydata().tolist():
            outcome = names[line.get_marker() + line.get_fillstyle()]
            marks[tuple(place)] = outcome
    assert marks == {
        (0.5, 0.5): "holds in part",
        (1.5, 0.5): "holds",
        (0.5, 1.5): "does not hold",
        (1.5, 1.5): "does not hold",
        (0.5, 3.5): "undecided",
    }


def test_the_matrix_marks_what_does_not_stand_when_corrected(matrix):
    (lost,) = [text for text in matrix.texts if text.get_text() == "†"]
    assert lost.get_position() == (0.62, 0.5)


def test_the_numbers_of_problems_of_several_models_stand_in_the_title(drawn):
    other = COURSES.assign(model=OTHER, n=60)
    lengths, _ = drawn("likelihood_courses", pd.concat([COURSES, other]))
    assert lengths.get_title() == "How many, n = 40 to 60"
