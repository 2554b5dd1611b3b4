"""What is drawn is what was given: checked through the artists, pixels are never compared."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lib.figures import draw
from lib.figures.style import LOOKS, look_of, ratio_axis

NAN = float("nan")


def rows(columns, *values):
    return pd.DataFrame(values, columns=columns.split())


POINTS = rows(
    "condition head value low high",
    *[("none", 1, 20, 15, 26), ("none", 3, 30, 28, 33), ("mless", 1, NAN, NAN, NAN), ("mless", 3, 1, 0, 9)],
)


def texts(labels):
    return [label.get_text() for label in labels]


def test_estimates_stand_beside_each_other_with_their_intervals(ax):
    none, mless = draw.estimates(ax, POINTS, "head", "value", "condition", gap=0.2, even=1)
    assert none.get_xdata().tolist() == pytest.approx([0.9, 2.9]) and none.get_ydata().tolist() == [20, 30]
    assert mless.get_xdata().tolist() == pytest.approx([1.1, 3.1]) and np.isnan(mless.get_ydata()[0])
    assert (none.get_label(), mless.get_label()) == ("None", "Mless")
    ends = [line.get_ydata().tolist() for line in ax.lines if line.get_marker() == "_"]
    assert ends[:2] == [[15, 26], [28, 33]] and ends[3] == [0, 9]
    assert ax.lines[0].get_ydata() == [1, 1] and {line.get_linestyle() for line in (none, mless)} == {"None"}


def test_places_that_are_named_stand_in_their_order(ax):
    named = POINTS.assign(head=["end", "before", "end", "before"])
    (series,) = draw.estimates(ax, named[:2], "head", "value", "condition", line=True)
    assert series.get_xdata().tolist() == [0, 1] and series.get_linestyle() == "-"
    assert texts(ax.get_xticklabels()) == ["end", "before"]


def test_a_band_is_an_area_and_a_look_may_be_given(ax):
    (series,) = draw.estimates(ax, POINTS[:2], "head", "value", "condition", band=True, looks={"none": LOOKS["arm"]})
    (area,) = ax.collections
    assert area.get_datalim(ax.transData).extents.tolist() == [1, 15, 3, 33]
    assert (series.get_color(), series.get_label()) == (LOOKS["arm"].colour, "none")


def test_conditions_differ_in_colour_and_mark_and_an_unknown_one_is_refused():
    conditions = [LOOKS[name] for name in ("none", "mless", "mful", "random", "arm")]
    assert all(len({getattr(look, field) for look in conditions}) == 5 for field in ("colour", "marker"))
    assert look_of("w/ Meaningless tokens") == (LOOKS["mless"], "w/ Meaningless tokens")
    assert look_of("mless:25") == (LOOKS["mless"], "mless:25")
    with pytest.raises(ValueError, match="unknown condition 'bogus'"):
        look_of("bogus")


def tokens(condition, *given):
    table = rows("part received", *given)
    return table.assign(condition=condition, position=range(len(given)))


HEAD = pd.concat(
    [
        tokens("none", ("instruction", 9.0), ("instruction", 0.2), ("problem", 0.3), ("problem", NAN)),
        tokens(
            "mless", ("instruction", 9), ("instruction", 0.1), ("inserted", 0.01), ("inserted", 0.02), ("problem", 0.2)
        ),
    ]
)


def test_curves_leave_out_the_first_token_and_compare_the_same_ones(ax):
    without, after = draw.received(ax, HEAD, {"none": "w/o", "mless": "w/"}, fill=True)
    np.testing.assert_array_equal(without.get_ydata(), [0.2, 0.3, NAN])
    assert after.get_ydata().tolist() == [0.1, 0.2] and after.get_xdata().tolist() == [1, 2]
    assert {line.get_linestyle() for line in (without, after)} == {"-"} and len(ax.collections) == 2
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 0.3 and ax.get_xlabel() == "Token position"


def test_a_whole_prompt_has_its_inserted_tokens_shaded(ax):
    (line,) = draw.received(ax, HEAD, {"mless": "w/"}, whole=True)
    assert line.get_ydata().tolist() == [0.1, 0.01, 0.02, 0.2]
    shade = draw.span(ax, HEAD, "inserted")
    assert (shade.get_x(), shade.get_width()) == (1.5, 2)  # tokens 2 and 3


def test_controls_span_their_layer_or_all_heads(ax):
    control = rows("control layer lowest highest", ("untrained", 2, 0.4, 0.6), ("uniform", 2, 0.5, 0.5))
    draw.controls(ax, control)
    assert ax.collections[0].get_datalim(ax.transData).extents.tolist() == [1.5, 0.4, 2.5, 0.6]
    draw.controls(ax, control, heads=9)
    assert list(ax.lines[1].get_xdata()) == [0.5, 9.5] and list(ax.lines[1].get_ydata()) == [0.5, 0.5]


BARS = rows(
    "source model condition accuracy low high",
    *[("this run", "M", "none", 63.2, 59.0, 67.5), ("this run", "M", "mless", NAN, NAN, NAN)],
    *[("the paper", "M", "none", 64.0, NAN, NAN), ("the paper", "M", "mless", 66.0, NAN, NAN)],
)


def test_bars_have_the_accuracies_and_the_papers_are_hatched_without_interval(ax):
    bars = draw.bars(ax, BARS, {"none": "None", "mless": "Mless"})
    np.testing.assert_array_equal([bar.get_height() for bar in bars], BARS.accuracy)
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True, True]
    assert texts(ax.texts) == ["63.2", "n/a", "64.0", "66.0"] and ax.texts[0].xy[1] == 67.5
    assert list(ax.lines[0].get_ydata()) == [59.0, 67.5] and len(ax.lines) == 2
    assert bars[0].get_x() + bars[0].get_width() < bars[1].get_x()
    assert texts(ax.get_xticklabels()) == ["M\n(this run)", "M\n(the paper)"]
    assert ax.get_legend_handles_labels()[1] == ["None", "Mless", "reported in the paper"]


def test_numbers_stand_upright_over_ten_bars(ax):
    many = pd.concat([BARS.assign(model=str(index)) for index in range(3)])
    draw.bars(ax, many, {})
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))


def test_maps_of_all_models_have_one_scale_and_dots_above_one(ax):
    image = draw.lambda_map(ax, pd.DataFrame([[0.3, 1.1], [NAN, 0.9]], index=[1, 2], columns=[1, 2]))
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 2) and image.get_extent() == [0.5, 2.5, 2.5, 0.5]
    assert ax.collections[0].get_offsets().tolist() == [[2, 1]] and image.get_array().mask[1, 0]


def test_the_map_of_arm_frames_only_cells_whose_interval_leaves_zero_out(ax):
    cells = [(0.1, 90, 5, 4, 6), (0.1, 95, 1, -1, 2), (0.2, 90, -4, -10, -3), (0.2, 95, 0, -1, 1)]
    image = draw.arm_map(ax, rows("c p1 effect effect_low effect_high", *cells))
    assert image.get_array().tolist() == [[5, 1], [-4, 0]] and len(ax.patches) == 2
    assert ax.texts[0].get_text() == "+5.0\n[+4.0, +6.0]" and texts(ax.get_yticklabels()) == ["0.1", "0.2"]


@pytest.mark.parametrize("low, high", [(0.97, 1.03), (0.1, 1.2), (0.5, 8.0)])
def test_ticks_of_ratios_are_plain_few_and_include_one(ax, low, high):
    ratio_axis(ax, low, high)
    labels = texts(ax.get_yticklabels())
    assert "1" in labels and 2 <= len(labels) <= 8 and ax.get_ylim()[0] < low and ax.get_ylim()[1] > high


def test_what_lies_off_the_scale_is_told_at_the_edge(ax):
    ratio_axis(ax, 0.95, 1.05)
    draw.off_the_scale(ax, rows("condition layer ratio", ("arm", 1, 0.025), ("arm", 2, 1.3), ("arm", 3, 1.0)))
    assert texts(ax.texts) == ["↓ 0.025", "↑ 1.3"] and [text.xy[0] for text in ax.texts] == [1, 2]


def test_rows_of_the_forest_stand_by_pair_with_their_band_and_their_numbers(ax):
    given = [("m", "slashes", "a − b", 0.5, -0.5, 1.5, 40, 0.8), ("other", "slashes", "a − b", -2, -3, -1, 40, NAN)]
    given.append(("m", "example", "c − b", 9, 8, 10, 40, 0.8))
    points = draw.forest(ax, rows("model curve x effect low high n band", *given))
    assert [point.get_xdata()[0] for point in points] == [0.5, -2, 9]
    heights = [point.get_ydata()[0] for point in points]
    assert heights[0] - heights[1] == 1 and heights[1] - heights[2] == 2
    assert points[0].get_color() == points[2].get_color() != points[1].get_color()
    assert (ax.patches[0].get_x(), ax.patches[0].get_width()) == (-0.8, 1.6) and ax.patches[1].get_width() == 0
    assert texts(ax.texts)[0] == "+0.5 [−0.5, +1.5], n = 40"
    assert texts(ax.get_yticklabels()) == ["slashes\n(a − b)", "example\n(c − b)"]
    low, high = ax.get_xlim()
    assert low == -high and high > 10


CELLS = [("a", "m", "supported", "also"), ("a", "w", "undecided", None), ("b", "m", "contradicted", "weaker")]


def test_the_matrix_has_a_cell_per_claim_and_model_and_hollow_marks_where_untrained_networks_agree(ax):
    marks = draw.matrix(ax, rows("id model verdict training", *CELLS), lambda row: row["id"])
    assert [(mark.get_xdata()[0] // 1, mark.get_ydata()[0] // 1) for mark in marks] == [(0, 1), (1, 1), (0, 0)]
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [True, False, False]
    assert texts(ax.get_xticklabels()) == ["m", "w"] and texts(ax.get_yticklabels()) == ["b", "a"]
