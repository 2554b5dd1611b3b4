"""The figures of what is measured beside the paper's pictures, checked through their artists."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lib.figures.dilution import (
    draw_by_condition,
    draw_causes,
    draw_controls,
    draw_lambda_by_head,
    draw_lambda_by_layer,
    draw_lambda_map,
)
from lib.figures.style import CONDITION_STYLES, FULL_WIDTH, figure_with_rows

NAN = float("nan")


def test_lambda_by_head_draws_points_intervals_and_the_line_at_one(ax):
    points, *intervals = draw_lambda_by_head(
        ax, [1, 2, 3], [0.5, NAN, 1.1], [0.4, NAN, 1.0], [0.7, NAN, 1.3], "Layer 1"
    )
    np.testing.assert_array_equal(points.get_ydata(), [0.5, NAN, 1.1])
    assert points.get_linestyle() == "None"
    assert [list(line.get_ydata()) for line in intervals[::2]] == [[0.4, 0.7], [1.0, 1.3]]
    assert list(ax.lines[0].get_ydata()) == [1, 1]
    assert (ax.get_title(), ax.get_xlabel()) == ("Layer 1", "Head")
    assert ax.get_ylabel() == "λ = received attention with / without"


def test_heads_are_counted_from_one(ax):
    draw_lambda_by_head(ax, np.arange(1, 33), np.ones(32), np.ones(32), np.ones(32), "T")
    assert ax.get_xlim() == (0.5, 32.5)


def test_the_longest_title_of_a_panel_stays_inside_a_third_of_the_page():
    figure, axes = figure_with_rows(1, 3)
    for ax in axes[0]:
        draw_lambda_by_head(ax, [1, 2], [1, 1], [1, 1], [1, 1], "Qwen2.5-Coder-1.5B-Instruct Layer 3, Mless")
    figure.canvas.draw()
    boxes = [ax.title.get_window_extent() for ax in axes[0]]
    assert boxes[0].x1 < boxes[1].x0 and boxes[1].x1 < boxes[2].x0 and boxes[2].x1 < figure.bbox.x1


def test_the_numbers_of_a_map_of_many_heads_do_not_touch(ax):
    draw_lambda_map(ax, np.full((3, 14), 0.94), "T")
    ax.figure.set_figwidth(FULL_WIDTH / 2)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts[:14]]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_lambda_by_layer_adds_a_curve_per_call(ax, legend_texts):
    first = draw_lambda_by_layer(ax, [1, 2], [0.5, 0.6], [0.4, 0.5], [0.6, 0.7], "mless")[0]
    second = draw_lambda_by_layer(ax, [1], [0.8], [0.7], [0.9], "random")[0]
    assert first.get_color() != second.get_color()
    assert legend_texts() == ["Mless", "Random sentence"]
    assert sum(list(line.get_ydata()) == [1, 1] for line in ax.lines) == 1
    assert ax.get_xlabel() == "Layer"


@pytest.mark.parametrize("label", ["Mful", "mful"])
def test_lambda_by_layer_of_a_condition_looks_like_it(ax, label, legend_texts):
    curve, *_ = draw_lambda_by_layer(ax, [1], [0.5], [0.4], [0.6], label)
    assert curve.get_color() == CONDITION_STYLES["mful"].colour and legend_texts() == ["Mful"]


def test_the_map_treats_a_half_and_two_alike(ax):
    image = draw_lambda_map(ax, [[0.5, 1.0, 1.5]], "T")
    assert (image.norm(0.5), image.norm(1.0), image.norm(2.0)) == pytest.approx((0, 0.5, 1))
    assert image.colorbar.ax.get_ylabel() == "λ = received attention with / without"


def test_the_map_counts_layers_and_heads_from_one(ax):
    image = draw_lambda_map(ax, np.full((3, 4), 0.8), "T")
    assert list(image.get_extent()) == [0.5, 4.5, 3.5, 0.5]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Head", "Layer")


def test_a_small_map_carries_its_numbers(ax):
    draw_lambda_map(ax, [[0.5, NAN], [1.25, 0.9]], "T")
    assert [text.get_text() for text in ax.texts] == ["0.50", "1.25", "0.90"]
    assert [text.get_position() for text in ax.texts] == [(1, 1), (1, 2), (2, 2)]


def test_a_large_map_dots_the_cells_above_one(ax):
    values = np.full((10, 10), 0.8)
    values[2, 4], values[0, 0] = 1.2, NAN
    draw_lambda_map(ax, values, "T")
    assert ax.collections[0].get_offsets().tolist() == [[5, 3]]
    assert not ax.texts


@pytest.mark.parametrize("values", [[[NAN, NAN]], [[1.0]]])
def test_a_map_without_spread_draws(ax, values):
    draw_lambda_map(ax, values, "T")
    ax.figure.canvas.draw()


@pytest.mark.parametrize("label", ["Coefficient of variation", "Dispersion"])
def test_a_measure_of_the_span_has_a_point_and_an_interval_per_condition(ax, label):
    points = draw_by_condition(ax, ["mless", "random"], [0.4, NAN], [0.3, NAN], [0.6, NAN], label)
    assert [point.get_color() for point in points] == ["#D55E00", "#000000"]
    assert list(ax.lines[0].get_ydata()) == [0.3, 0.6]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["Mless", "Random\nsentence"]
    assert ax.get_ylim() == pytest.approx((0, 0.66)) and ax.get_ylabel() == label


def test_a_measure_of_zero_still_has_an_axis(ax):
    draw_by_condition(ax, ["mless"], [0.0], [0.0], [0.0], "Dispersion")
    assert ax.get_ylim() == (0, 1)


def test_causes_stand_side_by_side_at_each_head(ax, legend_texts):
    ends = ([0.5, 0.6], [0.4, 0.5], [0.6, 0.7])
    both, terms, distance = draw_causes(ax, [1, 2], {"both": ends, "terms": ends, "distance": ends}, "T")
    assert list(terms.get_xdata()) == [1, 2]
    assert both.get_xdata()[0] < 1 < distance.get_xdata()[0]
    assert len({line.get_color() for line in (both, terms, distance)}) == 3
    assert len(legend_texts()) == 3 and ax.get_xlabel() == "Head"


def test_controls_are_a_band_and_a_line_over_their_layer_or_a_whole_panel_named_once(ax, legend_texts):
    rows = {"untrained": [(1, 0.4, 0.5), (2, 0.3, 0.6)], "uniform": [(1, 0.45, 0.45), (2, 0.45, 0.45)]}
    controls = pd.DataFrame([(name, *row) for name, some in rows.items() for row in some])
    controls.columns = ["control", "layer", "lowest", "highest"]
    draw_controls(ax, controls)
    assert legend_texts() == ["untrained networks", "uniform attention"]
    bands = [band.get_datalim(ax.transData) for band in ax.collections]
    assert [(band.x0, band.x1, band.y0, band.y1) for band in bands] == [(0.5, 1.5, 0.4, 0.5), (1.5, 2.5, 0.3, 0.6)]
    draw_controls(ax, controls[controls.layer == 1], width=9)
    assert ax.collections[-1].get_datalim(ax.transData).x1 == 9.5
