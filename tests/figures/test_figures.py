"""Every figure from a table of a few rows: it draws, saves the numbers that it was
given, and names its panels.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from artists import extents, texts

from lib import figures
from lib.evaluation import sample_tables
from lib.evaluation.rows import frame
from lib.figures.attention_figures import SPAN_MEASURES
from lib.figures.head_figures import with_ratios
from lib.figures.looks import LOOKS, MODEL_LOOKS, OUTCOME_LOOKS

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


SPANS = estimated(
    "lambda", figure=["fig09", "fig10", "fig11"], model=[M], layer=[1], head=[1]
)
BY_HEAD = estimated(
    "lambda", model=[M, OTHER], condition=["mless", "mful"], layer=[1, 2], head=[1, 2]
)
CONTROLS = product(model=[M], control=["untrained", "uniform"], layer=[1, 2])
CONTROLS = CONTROLS.assign(lowest=0.5, highest=0.6)
BY_LAYER = estimated(
    "mean", model=[M], measure=["lambda"], condition=["mless", "mful"], layer=[1, 2]
)
SPAN = estimated(
    "mean",
    model=[M],
    measure=list(SPAN_MEASURES),
    condition=["mless", "random"],
    layer=[1, 2],
)
MASS = estimated(
    "mass", model=[M], inserted=["slashes", "a sentence as long"], layer=[1, 2]
)
CAUSES = estimated(
    "lambda", model=[M], cause=["both", "terms", "distance"], head=[1, 2]
)
CHANGES = estimated(
    "ratio",
    model=[M],
    condition=["mless", "arm"],
    layer=[1, 2],
    measure=["near zero", "L1", "L2", "variance", "gate variance"],
)
BINS = {
    "network": ["trained"],
    "condition": ["none", "mless", "arm"],
    "layer": [1, 2],
    "bin": [-2.0, -1, 0, 1],
}
COUNTS = xr.DataArray([[[[1, 60, 40, 1]] * 2] * 3], BINS, [*BINS])
HISTOGRAMS = {M: xr.Dataset({"counts": COUNTS}, attrs={"model": M})}
CLASSES = estimated(
    "near zero", model=[M], condition=CONDITIONS, **{"class": ["digits", "others"]}
)
SAMPLES = product(model=[M], condition=["none", "arm"])
for measure in ("pass@1", "pass@3", "distinct 2-grams"):
    SAMPLES[measure] = 0.8
    SAMPLES[f"{measure} low"] = 0.7
    SAMPLES[f"{measure} high"] = 0.9
FILLERS = estimated(
    "accuracy", model=[M], condition=["none", "mless", "mless:10", "question"]
)
BARS = FILLERS[FILLERS.condition != "question"]
ARMS = ["none", "arm:c=0.1:p1=90", "arm:c=0.1:p1=95", "arm:layer=2"]
GRADED = estimated(
    "effect", "effect_", model=[OTHER, M], condition=CONDITIONS[:2], grader=["a", "b"]
)
GRADED.insert(4, "accuracy", [10.5, 39, 11, 40, 37.5, 60, 39, 62])
GRID = estimated("effect", "effect_", model=[M], condition=ARMS)
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

HEAD_1 = "Average attention on Head 1"
DRAWN = {  # name: tables, how many panels, title of one of them
    "fig09": ([curves(1, 2, 3), SPANS], 6, f"{M}\nLayer 1 Head 2"),
    "fig10": ([BARS, curves(1)], 4, "Accuracy"),
    "fig10_right": ([curves(1), SPANS], 3, f"{HEAD_1}: whole prompt\n{M}, layer 1"),
    "fig11": ([curves(1, 2), SPANS], 2, f"{M}\nLayer 1 Head 1"),
    "fig13": ([curves(1, 2, 8)], 6, f"{M}\nLayer 1 Head 8"),
    "fig18": ([curves(1)], 2, f"{M}\nLayer 1 Head 1"),
    "lambda_by_head": ([BY_HEAD, CONTROLS], 2, M),
    "lambda_by_layer": ([BY_LAYER, CONTROLS], 1, M),
    "mass_by_layer": ([MASS], 1, M),
    "lambda_map": ([BY_HEAD], 2, f"{M}, 55 slashes"),
    "inserted_span": ([SPAN], 3, "Attention mass"),
    "causes": ([CAUSES], 1, M),
    "fig04": ([CHANGES, HISTOGRAMS], 6, "near zero, with / without"),
    "fig07": ([CLASSES], 1, M),
    "fig06": ([SAMPLES], 2, f"{M}: pass@k"),
    "fig08": ([FILLERS], 3, f"{M}\nLength (slashes)"),
    "fig12": ([GRID], 2, f"{M}: ARM in other layers"),
    "same_answers": ([GRADED], 2, "Right answers without slashes"),
    "likelihood": ([NATS], 1, ""),
    "answer_at_once": ([NATS], 1, ""),
    "overview": ([NATS, curves(1)], 2, f"{M}\nLayer 1 Head 1"),
    "likelihood_courses": ([COURSES], 2, "How many, n = 40"),
    "points": ([POINTS], 1, ""),
    "claims_matrix": ([VERDICTS], 1, ""),
}
# Those whose y axis has no numbers.
IN_ROWS = ("likelihood", "answer_at_once", "overview", "claims_matrix", "lambda_map")
IN_ROWS += ("inserted_span", "fig04", "points", "same_answers")
NOT_FIGURES = {"agreement", "one_prompt", "say", "show", "unfold"}
NOT_FIGURES |= {name for names in figures.DRAWING.values() for name in names}


@pytest.mark.parametrize("name", sorted({*figures.__all__} - NOT_FIGURES))
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
    if name in ("fig09", "fig10_right", "fig11"):
        assert {0.7, 0.8, 0.9} <= set(saved)  # λ of the same heads over all problems


def heights(axes, name):
    """Return every number that the y axes show."""
    if name in IN_ROWS:
        return []
    lines = [line for ax in axes for line in ax.lines]
    own = [line for line in lines if line.get_transform() == line.axes.transData]
    values = [np.asarray(line.get_ydata(), float) for line in own]
    if name == "fig10":
        values += [[bar.get_height() for bar in ax.patches] for ax in axes]
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
    ["fig06", "fig08", "fig12", "likelihood_courses", "points", "same_answers"],
)
def test_of_what_was_not_measured_nothing_is_drawn(drawn, run, name):
    (table,), *_ = DRAWN[name]
    assert drawn(name, table[:0]) == []
    assert not run.figures.exists()


def test_answers_that_are_none_have_no_columns_either(drawn, run):
    assert drawn("fig06", sample_tables.diversity(frame([]))) == []
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


def test_maps_of_all_models_have_one_scale_and_dots_above_one(drawn):
    ratios = BY_HEAD.assign(**{"lambda": [0.3, 1.1, np.nan, 0.9] * 4})
    ax, _ = drawn("lambda_map", ratios)
    (image,) = ax.images
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 2)
    assert image.get_extent() == [0.5, 2.5, 2.5, 0.5]
    assert ax.collections[0].get_offsets().tolist() == [[2, 1]]
    assert image.get_array().mask[1, 0]


def test_the_same_answers_stand_by_grader_without_slashes_and_as_what_they_change(
    drawn,
):
    left, right = drawn("same_answers", GRADED)
    assert texts(left.get_yticklabels()) == ["a", "b"]
    marks = {line.get_label(): line.get_xdata().tolist() for line in left.lines}
    assert marks == {M: [37.5, 60], OTHER: [10.5, 39]}
    heights = {line.get_label(): line.get_ydata().tolist() for line in left.lines}
    assert heights == {M: [-0.125, 0.875], OTHER: [0.125, 1.125]}
    assert texts(left.texts) == ["  37.5", "  60.0", "  10.5", "  39.0"]
    bars = [bar.get_segments()[0][:, 0].tolist() for bar in right.collections]
    assert bars == [[0.7, 0.9]] * 4


def test_shares_of_the_same_answers_are_in_per_cent_and_changes_in_points(drawn):
    left, right = drawn("same_answers", GRADED)
    assert (left.get_xlabel(), right.get_xlabel()) == ("%", "points")
    changes = [list(line.get_xdata()) for line in right.lines]
    assert changes == [[0.8, 0.8], [0.8, 0.8], [0, 0]]
    assert texts(right.get_yticklabels()) == ["", ""]  # the left panel names both


def test_controls_span_all_heads_of_their_layer(drawn):
    controls = CONTROLS.assign(lowest=[0.3, 0.4, 0.5, 0.6])
    ax, *_ = drawn("lambda_by_head", BY_HEAD, controls)
    even = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert [line.get_xydata().tolist() for line in even] == [[[0.5, 0.5], [2.5, 0.5]]]
    assert extents(ax, ax.collections[0]) == [0.5, 0.3, 2.5, 0.6]


def test_controls_have_the_place_of_their_layer_among_layers(drawn):
    (ax,) = drawn("lambda_by_layer", BY_LAYER, CONTROLS)
    areas = [extents(ax, area)[::2] for area in ax.collections]
    assert areas == [[0.5, 1.5], [1.5, 2.5]]


def test_controls_higher_than_every_head_are_on_the_scale(drawn):
    ax, *_ = drawn("lambda_by_head", BY_HEAD, CONTROLS.assign(highest=3.0))
    assert ax.get_ylim()[1] > 3


def test_fig10_is_named_after_the_papers_problems_where_they_are_its_own(drawn, run):
    (accuracy, *_) = drawn("fig10", BARS, curves(1))
    assert accuracy.get_title() == "Accuracy"
    update = {"problems": "math500"}
    run.accuracy = run.accuracy.model_copy(update=update)
    (accuracy, *_) = drawn("fig10", BARS, curves(1))
    assert accuracy.get_title() == "Results on MATH-500"


def test_fig08_shows_the_papers_numbers_hollow_on_all_of_the_scale(drawn):
    length, place, _ = drawn("fig08", FILLERS)
    assert length.get_ylim() == place.get_ylim() == (0, 100)
    hollow = [line for line in place.lines if line.get_fillstyle() == "none"]
    assert [list(line.get_ydata()) for line in hollow] == [[72.4, 75.0]]


def test_fig04_has_a_histogram_per_model_and_a_row_per_model_in_each_measure(drawn):
    counts = COUNTS.copy()
    counts.loc[{"condition": "mless", "bin": -1.0}] = 30
    histograms = {M: xr.Dataset({"counts": counts}, attrs={"model": M})}
    histogram, measure, *_ = drawn("fig04", CHANGES, histograms)
    none, mless = 60 / 102, 30 / 72
    shares = [line.get_ydata()[0] for line in histogram.lines]
    assert shares == pytest.approx([100 * none, 100 * mless, 100 * none])
    # A bin stands at its middle.
    assert [line.get_xdata()[0] for line in histogram.lines] == [-0.5] * 3
    (even, points) = measure.lines
    assert even.get_xdata() == [1, 1]
    assert points.get_xydata().tolist() == [[0.8, 0]]
    assert texts(measure.get_yticklabels()) == [M]


def test_models_stand_in_the_order_of_the_profile_in_every_figure(drawn):
    both = pd.concat([curves(1).assign(model=OTHER), curves(1)])
    first, second = drawn("fig11", both, SPANS)
    assert first.get_title().startswith(M)
    assert second.get_title().startswith(OTHER)
    first, second = drawn("lambda_by_head", BY_HEAD[::-1], CONTROLS)
    assert (first.get_title(), second.get_title()) == (M, OTHER)
    pairs = ["mless − none", "gap − none"]
    rows = [NATS.assign(model=name, x=pair) for pair in pairs for name in (OTHER, M)]
    (ax,) = drawn("likelihood", pd.concat(rows))
    (_, own), (_, other) = (line.get_ydata() for line in ax.lines[:2])
    assert own > other


def test_no_model_looks_like_another_or_like_a_condition():
    conditions = {LOOKS[name] for name in CONDITIONS}
    looks = list(MODEL_LOOKS.values())
    for field in ("colour", "marker"):
        of_models = {getattr(look, field) for look in looks}
        assert len(of_models) == len(looks)
        assert not of_models & {getattr(look, field) for look in conditions}


def test_the_ratio_stands_below_the_curves_of_the_same_tokens(drawn, run):
    top, _, bottom = drawn("fig10_right", curves(1), SPANS)
    none, mless, mful = (line.get_ydata() for line in top.lines)
    _, mless_ratio, mful_ratio = (line.get_ydata() for line in bottom.lines)
    assert mless_ratio == pytest.approx(mless / none)
    assert mful_ratio == pytest.approx(mful / none)
    assert top.get_xlim() == bottom.get_xlim()
    saved = pd.read_csv(run.figures / "fig10_right.csv")
    assert saved.ratio[saved.part == "inserted"].isna().all()


def test_panels_of_the_same_head_have_one_y_axis(drawn):
    first, second, below_first, below_second = drawn("fig13", curves(1, 2))
    assert first.get_ylim() == below_first.get_ylim()
    assert second.get_ylim() == below_second.get_ylim()


def test_the_numbers_of_problems_of_several_models_stand_in_the_title(drawn):
    other = COURSES.assign(model=OTHER, n=60)
    lengths, _ = drawn("likelihood_courses", pd.concat([COURSES, other]))
    assert lengths.get_title() == "How many, n = 40 to 60"


NAMED_CURVES = {
    "fig11": {"Random sentence": "random", "Meaningless tokens": "mless"},
    "fig10_right": {"w/o": "none", "w/ Mless": "mless", "w/ Mful": "mful"},
}


@pytest.mark.parametrize("name", NAMED_CURVES)
def test_a_curve_has_the_name_and_the_colour_of_its_condition(drawn, name):
    ax, *_ = drawn(name, curves(1), SPANS)
    colours = {line.get_label(): line.get_color() for line in ax.lines}
    looks = {label: LOOKS[key] for label, key in NAMED_CURVES[name].items()}
    assert colours == {label: look.colour for label, look in looks.items()}


@pytest.mark.parametrize("name", ["fig13", "fig18"])
def test_the_same_tokens_stand_above_and_the_whole_prompt_below(drawn, name):
    top, bottom = drawn(name, curves(1))
    # Of five tokens two are inserted, and the first is left out.
    assert [len(line.get_ydata()) for line in top.lines] == [2, 2]
    assert [len(line.get_ydata()) for line in bottom.lines] == [4]


@pytest.mark.parametrize(
    "name, ratio", [("fig09", 0.1), ("fig10_right", 0.2), ("fig11", 0.3)]
)
def test_a_figure_of_heads_saves_their_lambda_over_all_problems(
    drawn, run, name, ratio
):
    spans = SPANS.assign(**{"lambda": [0.1, 0.2, 0.3]})  # of fig09, fig10 and fig11
    drawn(name, curves(1), spans)
    saved = pd.read_csv(run.figures / f"{name}.csv")
    assert saved["lambda"].dropna().tolist() == [ratio]


def test_attention_and_its_ratios_are_named_beside_them(drawn):
    axes = drawn("fig10_right", curves(1), SPANS)
    labels = ["Average attention weight"] * 2 + ["with / without"]
    assert sorted(ax.get_ylabel() for ax in axes) == labels


NAMES_OF_FIG09 = ("Average attention weight", "with / without")


def test_the_ratios_of_several_heads_have_one_y_axis(drawn):
    top, _, bottom, other = drawn("fig09", curves(1, 2), SPANS)
    assert bottom.get_ylim() == other.get_ylim()
    assert (top.get_ylabel(), bottom.get_ylabel()) == NAMES_OF_FIG09


def test_ratios_are_taken_within_a_model():
    own = with_ratios(curves(1))
    stronger = curves(1).assign(model=OTHER)
    stronger.received *= 2
    both = with_ratios(pd.concat([stronger, curves(1)], ignore_index=True))
    expected = own.ratio.tolist()
    for _, rows in both.groupby("model"):
        assert rows.ratio.tolist() == pytest.approx(expected, nan_ok=True)


def test_the_caption_of_a_head_names_its_problem(drawn):
    ax, *_ = drawn("fig13", curves(1))
    caption = ax.figure.get_supxlabel().replace("\n", " ")
    assert "One prompt, of problem sum/1. The first token takes most" in caption
