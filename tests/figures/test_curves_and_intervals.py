"""Figures show the numbers of their tables, and no two series look alike. The tests
check the artists and never compare pixels.
"""

import numpy as np
import pandas as pd
import pytest
from artists import table, texts

from reproduction.figures.drawings import (
    interval_lines,
    interval_rows,
    original_curves,
    shade_inserted,
    token_curves,
    with_counts,
)
from reproduction.figures.saved_figures import (
    COLOURS,
    CONDITION_LOOKS,
    MARKERS,
    OTHER_COLOURS,
    OTHER_MARKERS,
    PAPER_COLOURS,
    WIDE_AND_PALE_LINE,
    grid,
    tell_apart,
)


def looks_of(names, models=False):
    """Return the colour and marker of each of these names."""
    looks = tell_apart(names, models)
    return [(looks[name]["color"], looks[name]["marker"]) for name in names]


@pytest.mark.parametrize(
    "names, models",
    [
        (["mless:25", "mless@end", "mless+arm", "arm:mode=code", "a", "b"], False),
        ([f"model {number}" for number in range(50)], True),
    ],
)
def test_no_two_series_look_alike(names, models):
    names = [*CONDITION_LOOKS, *names]
    assert len(set(looks_of(names, models))) == len(names)


def test_conditions_look_the_same_everywhere_and_other_series_look_different():
    assert looks_of(["mless"]) == looks_of(["model", "none", "mless"])[2:]
    assert looks_of(["none", "model"])[1:] == looks_of(["model"])
    _, colours, markers = zip(*CONDITION_LOOKS.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(CONDITION_LOOKS)
    # No colour of a model means something else in another figure.
    every = [*colours, *COLOURS, *OTHER_COLOURS]
    assert len(set(every)) == len(every)
    # Markers that point in a direction would suggest an increase or decrease.
    assert not {*markers, *MARKERS, *OTHER_MARKERS} & set("<>^v1234")


@pytest.mark.parametrize("count, columns", [(1, 1), (3, 3), (4, 2), (5, 2)])
def test_a_grid_has_the_requested_number_of_panels(count, columns):
    figure, axes = grid(count)
    assert len(axes) == len(figure.axes) == count
    assert axes[0].get_gridspec().ncols == columns


HEAD = table("""model,layer,head,condition,position,part,received
m,1,8,none,0,original,0.7
m,1,8,none,1,original,0.4
m,1,8,none,2,original,0.2
m,1,8,mless,0,original,0.3
m,1,8,mless,1,inserted,0.1
m,1,8,mless,2,inserted,0.3
m,1,8,mless,3,original,0.2
""")
ESTIMATES = table("""model,layer,effect,low,high,n
a,1,0.5,0.4,0.7,9
a,2,1.0,0.7,1.5,9
b,1,,,,7
""")


def test_curves_show_the_received_attention_of_each_labelled_condition(ax):
    token_curves(ax, HEAD, {"none": "without", "mless": "with"})
    none, mless = ax.lines
    assert none.get_xydata().tolist() == [[0, 0.7], [1, 0.4], [2, 0.2]]
    assert mless.get_ydata().tolist() == [0.3, 0.1, 0.3, 0.2]
    assert [none.get_label(), mless.get_label()] == ["without", "with"]
    assert none.get_color() != mless.get_color()
    assert ax.get_title() == "m\nLayer 1 Head 8"
    # The first token receives far more than all others, so the axis does not show it.
    low, high = ax.get_ylim()
    assert low == 0
    assert 0.4 < high < 0.7


def test_curves_can_have_the_colours_of_the_papers_figure(ax):
    colours = PAPER_COLOURS["fig13"]
    token_curves(ax, HEAD, {"none": "without", "mless": "with"}, colours)
    assert [line.get_color() for line in ax.lines] == [*colours.values()]


def test_one_curve_is_wide_and_lies_behind_the_others(ax):
    token_curves(ax, HEAD, {"none": "without", "mless": "with"}, behind="mless")
    none, mless = ax.lines
    assert mless.get_linewidth() == WIDE_AND_PALE_LINE["linewidth"]
    assert mless.get_linewidth() > none.get_linewidth()
    assert mless.get_zorder() < none.get_zorder()


def test_the_inserted_tokens_are_shaded(ax):
    shade_inserted(ax, HEAD, "Meaningless tokens")
    (shade,) = ax.patches
    assert (shade.get_x(), shade.get_width()) == (0.5, 2)
    assert texts(ax.texts) == ["Meaningless tokens"]
    assert ax.texts[0].get_position() == (1.5, 0.98)  # in their middle, at the top


def test_original_tokens_have_a_mark_where_others_were_inserted(ax):
    original_curves(ax, HEAD, {"mless": "with"})
    mless, mark = ax.lines
    assert mless.get_ydata().tolist() == [0.3, 0.2]
    assert mark.get_xdata() == [0.5, 0.5]


def test_interval_rows_are_grouped_from_the_top_with_the_series_side_by_side(ax):
    interval_rows(ax, ESTIMATES, "effect", "layer", "model")
    of_a, of_b = ax.containers
    assert of_a[0].get_xdata().tolist() == [0.5, 1.0]
    ends = [segment[:, 0].tolist() for segment in of_a[2][0].get_segments()]
    assert np.allclose(ends, [[0.4, 0.7], [0.7, 1.5]])
    assert of_a[0].get_ydata()[0] < of_b[0].get_ydata()[0] < of_a[0].get_ydata()[1]
    assert texts(ax.get_yticklabels()) == ["1", "2"]
    assert ax.yaxis_inverted()
    # A band behind every second row shows which estimates belong to it.
    (band,) = ax.patches
    low, high = sorted(band.get_bbox().intervaly)
    first = [series[0].get_ydata()[0] for series in ax.containers]
    assert low < min(first) < ax.get_yticks()[0] < max(first) < high
    assert high < of_a[0].get_ydata()[1]
    assert of_a.lines[0].get_color() == COLOURS[0]


def test_estimates_of_different_series_lie_in_the_middle_of_rows_of_their_own(ax):
    each = ESTIMATES.assign(row=["first", "second", "third"])
    interval_rows(ax, each, "effect", "row", "model")
    of_a, of_b = ax.containers
    assert of_a[0].get_ydata().tolist() == ax.get_yticks()[:2].tolist() == [0, 1]
    assert of_b[0].get_ydata().tolist() == [2]
    assert ax.get_ylim() == (2.5, -0.5)
    assert not ax.patches


def test_estimates_in_doubt_have_hollow_marks_that_the_legend_explains(ax):
    marked = ESTIMATES.assign(doubt=[False, True, False])
    interval_rows(ax, marked, "effect", "layer", "model", hollow="doubt")
    of_a, _ = ax.containers
    (hollow,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert hollow.get_xdata().tolist() == [1.0]
    assert hollow.get_ydata().tolist() == of_a[0].get_ydata()[1:].tolist()
    assert hollow.get_marker() == of_a[0].get_marker()
    assert hollow.get_color() == of_a[0].get_color()
    _, labels = ax.get_legend_handles_labels()
    assert labels == ["hollow: doubt", "a", "b"]


def test_intervals_of_two_lines_lie_beside_each_other(ax):
    both = pd.concat([ESTIMATES[:2], ESTIMATES[:2].assign(model="b")])
    interval_lines(ax, both, "layer", "effect", "model")
    in_front, behind = [line[0] for line in ax.containers[::-1]]
    assert (in_front.get_xdata() < behind.get_xdata()).all()
    shared = (in_front.get_xdata() + behind.get_xdata()) / 2
    assert shared.tolist() == pytest.approx([1, 2])
    # The series are no models here.
    assert not {in_front.get_color(), behind.get_color()} & set(COLOURS)


def test_a_line_joins_only_estimates_from_the_same_number_of_problems(ax):
    fewer = ESTIMATES[:2].assign(layer=[2, 3], n=[4, 9])
    three = pd.concat([ESTIMATES[:1], fewer])
    interval_lines(ax, three, "layer", "effect", "model")
    joined, alone = ax.containers
    assert joined[0].get_xydata().tolist() == [[1, 0.5], [3, 1.0]]
    assert joined[0].get_linestyle() == "-"
    assert alone[0].get_xydata().tolist() == [[2, 0.5]]
    assert alone[0].get_linestyle() == "None"
    assert alone[0].get_fillstyle() == "none"
    assert alone.get_label() == "hollow: fewer problems"


def test_a_model_has_its_number_of_problems_in_its_name():
    counted = with_counts(pd.concat([ESTIMATES, ESTIMATES[2:].assign(n=8)]))
    names = counted.model.unique().tolist()
    assert names == ["a, n = 9", "b, n = 7 to 8"]


def test_interval_rows_of_an_empty_table_are_an_empty_panel(ax):
    interval_rows(ax, ESTIMATES[:0], "effect", "layer", "model")
    assert not ax.containers


def test_looks_continue_after_those_of_the_neighbouring_panel(ax):
    interval_rows(ax, ESTIMATES, "effect", "layer", "model", order=["c"])
    assert ax.containers[0].lines[0].get_color() == COLOURS[1]
