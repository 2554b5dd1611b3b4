"""Curves of received attention, checked through their artists on hand-written data; pixels are never compared."""

import numpy as np
import pytest

from lib.figures.received import draw_heads, draw_received
from lib.figures.style import CONDITION_STYLES, figure_with_rows

NAN = float("nan")


def test_received_lines_hold_the_data_from_the_first_token_on(ax, legend_texts):
    lines = draw_received(ax, {"none": [0.1, 0.2, NAN], "mless": [0.05, 0.1, NAN]}, "T", first=1)
    assert lines == list(ax.lines)
    np.testing.assert_array_equal(lines[0].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(lines[1].get_ydata(), [0.05, 0.1, NAN])
    assert legend_texts() == ["None", "Mless"]


def test_received_axes_are_labelled_and_start_at_zero(ax):
    draw_received(ax, {"none": [0.1, 0.2]}, "Qwen2.5-Math-7B Layer 1 Head 22")
    assert ax.get_title() == "Qwen2.5-Math-7B Layer 1 Head 22"
    assert ax.get_xlabel() == "Token position"
    assert ax.get_ylabel() == "Average attention weight (received)"
    assert ax.get_ylim()[0] == 0


@pytest.mark.parametrize(
    "curves, rows",
    [
        ({"none": [0.1, 0.9], "mless": [0.2, 0.1], "mful": [0.1, 0.1]}, 1),
        ({"w/o Meaningless tokens": [0.1, 0.9], "w/ Meaningless tokens": [0.2, 0.1]}, 2),
    ],
)
def test_the_legend_has_room_above_the_curves(ax, curves, rows):
    draw_received(ax, curves, "T")
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.y0 > ax.transData.transform((0, 0.9))[1]
    assert -(-len(curves) // ax.get_legend()._ncols) == rows


def test_a_condition_looks_the_same_under_all_its_names(ax, legend_texts):
    key, name = draw_received(ax, {"mless": [0.1, 0.2], "w/ Meaningless tokens": [0.1, 0.2]}, "T")
    assert key.get_color() == name.get_color() == CONDITION_STYLES["mless"].colour
    assert key.get_linestyle() == name.get_linestyle()
    assert legend_texts() == ["Mless", "w/ Meaningless tokens"]


@pytest.mark.parametrize("field", ["colour", "line", "marker"])
def test_conditions_differ_in_every_respect(field):
    assert len({getattr(look, field) for look in CONDITION_STYLES.values()}) == len(CONDITION_STYLES)


def test_no_two_conditions_share_a_name():
    names = [name for look in CONDITION_STYLES.values() for name in look.names]
    assert len(set(names)) == len(names)


def test_an_unknown_condition_is_refused(ax):
    with pytest.raises(ValueError, match="unknown condition 'bogus'"):
        draw_received(ax, {"bogus": [0.1]}, "T")


def test_fill_adds_an_area_per_curve(ax):
    artists = draw_received(ax, {"none": [0.1, 0.2], "mful": [0.1, 0.1]}, "T", fill=True)
    assert artists == [*ax.lines, *ax.collections]
    assert len(ax.collections) == 2


@pytest.mark.parametrize("weights", [[0.2], [0.2, NAN]])
def test_a_single_point_is_visible(ax, weights):
    (line,) = draw_received(ax, {"none": weights}, "T")
    assert line.get_marker() == "o"


def test_weights_that_are_all_undefined_still_draw(ax):
    draw_received(ax, {"none": [NAN, NAN]}, "T", fill=True)
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_ylim()).all()


def test_a_head_has_its_original_tokens_above_and_the_whole_prompt_below():
    _, axes = figure_with_rows(2, 1)
    lines = draw_heads(axes, [("Head 1", [0.2, 0.3], [0.1, 0.2], [0.1, 0.0, 0.2], slice(2, 3))])
    assert [list(line.get_ydata()) for line in lines] == [[0.2, 0.3], [0.1, 0.2], [0.1, 0.0, 0.2]]
    assert [ax.get_title() for ax in axes.flat] == ["Head 1", "Head 1"]
    (patch,) = axes[1, 0].patches
    assert (patch.get_x(), patch.get_x() + patch.get_width()) == (1.5, 2.5) and not axes[0, 0].patches
    assert axes[1, 0].get_legend().get_texts()[-1].get_text() == "Meaningless tokens"
