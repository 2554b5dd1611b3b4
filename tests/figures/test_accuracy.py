"""Bars and points of accuracy: what is drawn is what was given."""

import pytest

from lib.figures.accuracy import draw_accuracy_bars, draw_accuracy_points, fig10_layout

NAN = float("nan")
MEASURED = ("Qwen2.5-Math-1.5B", [("none", 63.2, 59.0, 67.5), ("mless", 65.0, 60.5, 69.0)], False)
PAPER = ("Qwen2.5-Math-1.5B", [("none", 64.0, None, None), ("mless", 66.0, None, None)], True)


def test_bars_have_the_accuracies_as_heights_and_as_texts(ax):
    bars = draw_accuracy_bars(ax, [MEASURED, PAPER])
    assert [bar.get_height() for bar in bars] == [63.2, 65.0, 64.0, 66.0]
    assert [text.get_text() for text in ax.texts] == ["63.2", "65.0", "64.0", "66.0"]
    assert ax.get_ylabel() == "Accuracy (%)"
    assert (ax.get_yticks()[0], ax.get_yticks()[-1]) == (0, 100)


def test_intervals_of_bars_end_where_they_were_given(ax):
    first, second = draw_accuracy_bars(ax, [MEASURED])
    assert [list(line.get_ydata()) for line in ax.lines] == [[59.0, 67.5], [60.5, 69.0]]
    assert ax.lines[0].get_xdata()[0] == pytest.approx(first.get_x() + first.get_width() / 2)
    assert first.get_x() + first.get_width() < second.get_x()


def test_the_papers_bars_are_hatched_and_without_interval(ax, legend_texts):
    bars = draw_accuracy_bars(ax, [MEASURED, PAPER])
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True, True]
    assert len(ax.lines) == 2
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert [tick.endswith("(paper)") for tick in ticks] == [False, True]
    assert legend_texts() == ["None", "Mless", "reported in the paper"]


def test_numbers_above_bars_clear_the_interval(ax):
    draw_accuracy_bars(ax, [MEASURED])
    assert [text.xy[1] for text in ax.texts] == [67.5, 69.0]


def test_an_undefined_accuracy_is_said_to_be_missing(ax):
    draw_accuracy_bars(ax, [("M", [("none", NAN, NAN, NAN), ("mless", 10.0, 5.0, 20.0)], False)])
    ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == "n/a"


@pytest.mark.parametrize("models, rotation", [(4, 0), (5, 90)])
def test_numbers_stand_upright_over_ten_bars(ax, models, rotation):
    draw_accuracy_bars(ax, [MEASURED] * models)
    assert ax.texts[0].get_rotation() == rotation


def test_accuracy_points_stand_at_their_labels_beside_the_papers(ax, legend_texts):
    ends = ([10, 20], [5, 12], [16, 29])
    points = draw_accuracy_points(ax, ["no tokens", "10"], *ends, "Length", reported=[72.4, NAN])
    assert list(points.get_ydata()) == [10, 20] and legend_texts() == ["this run", "the paper, 7B"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["no tokens", "10"]
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 72.4


def test_accuracy_points_without_reported_numbers_have_one_legend_entry(ax, legend_texts):
    draw_accuracy_points(ax, ["a"], [10], [5], [16], "T", reported=[NAN])
    assert legend_texts() == ["this run"]


def test_fig10_has_bars_beside_two_stacked_curves():
    figure, (left, upper, lower) = fig10_layout()
    figure.canvas.draw()
    assert left.get_position().x1 < upper.get_position().x0
    assert upper.get_position().y0 > lower.get_position().y1
