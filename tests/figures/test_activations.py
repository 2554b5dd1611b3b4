"""Figures of activations and ARM: what is drawn is what was given."""

import numpy as np
import pytest

from lib.figures.activations import (
    draw_arm_map,
    draw_change_by_layer,
    draw_changes,
    draw_classes,
    draw_effects,
    draw_histograms,
    draw_pass_at_k,
)


def ends(*means):
    means = np.array(means)
    return means, means - 0.1, means + 0.1


def test_histograms_show_shares_without_the_end_bins(ax):
    starts = np.linspace(-1, 0.6, 5)
    (line,) = draw_histograms(ax, starts, {"arm": [50, 10, 20, 15, 5]}, "layer 1")
    assert line.get_label() == "ARM" and ax.get_yscale() == "log"
    np.testing.assert_allclose(line.get_xdata(), [-0.4, 0, 0.4], atol=1e-12)
    np.testing.assert_allclose(line.get_ydata(), [10, 20, 15])


def test_changes_stand_side_by_side_and_within_reach(ax):
    curves = {"mless": ends(0.9, 1.2), "arm": ends(1.5, 2.0)}
    points = draw_changes(ax, ["near zero", "gate variance"], curves, "layer 1", (0.5, 3))
    assert [len(p.get_xdata()) for p in points] == [2, 2] and (points[0].get_xdata() < points[1].get_xdata()).all()
    assert ax.get_ylim()[0] < 0.5 and ax.get_ylim()[1] > 3
    assert [text.get_text() for text in ax.get_xticklabels()] == ["near\nzero", "gate\nvar."]


@pytest.mark.parametrize("values", [(0.97, 1.03), (0.1, 1.2), (0.5, 8.0)])
def test_log_ticks_are_plain_few_and_include_one(ax, values):
    draw_change_by_layer(ax, [1, 2], {"mless": tuple(np.array(values) for _ in range(3))}, "L1")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert "1" in labels and 2 <= len(labels) <= 8 and ax.get_xlabel() == "Layer"


def test_classes_have_a_point_per_condition(ax):
    points = draw_classes(ax, ["digits", "others"], {"none": ends(10, 12), "arm": ends(1, 2)}, "model")
    assert [list(p.get_ydata()) for p in points] == [[10, 12], [1, 2]] and ax.get_ylim()[0] == 0


def test_the_map_frames_only_cells_whose_interval_leaves_zero_out(ax):
    effects = np.array([[5.0, 1.0], [-4.0, 0.0]])
    lows, highs = effects - np.array([[1, 2], [6, 1]]), effects + np.array([[1, 2], [1, 1]])
    image = draw_arm_map(ax, [0.1, 0.2], [90, 95], effects, lows, highs, "map")
    np.testing.assert_array_equal(image.get_array(), effects)
    assert len(ax.patches) == 2  # +5 [4, 6] and -4 [-10, -3]
    assert ax.texts[0].get_text() == "+5.0\n[+4.0, +6.0]" and [t.get_text() for t in ax.get_yticklabels()] == [
        "0.1",
        "0.2",
    ]


def test_pass_at_k_and_effects_keep_their_order(ax):
    lines = draw_pass_at_k(ax, [1, 3], {"none": ends(20, 30), "arm": ends(25, 35)}, "model")
    assert [list(line.get_ydata()) for line in lines] == [[20, 30], [25, 35]]
    ax.clear()
    points = draw_effects(ax, ["layer 2", "layer 3"], [1, -1], [0, -2], [2, 0], "layers")
    assert list(points.get_ydata()) == [1, 0] and [t.get_text() for t in ax.get_yticklabels()] == ["layer 2", "layer 3"]
