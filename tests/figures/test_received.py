"""The figures are checked through their artists, on hand-written data; pixels are never compared."""

import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib import figures
from lib.errors import InputError

NAN = float("nan")
MEASURED = ("Qwen2.5-Math-1.5B", [("none", 63.2, 59.0, 67.5), ("mless", 65.0, 60.5, 69.0)])
PAPER = ("Qwen2.5-Math-1.5B", [("none", 64.0, None, None), ("mless", 66.0, None, None)], True)
TABLE = pd.DataFrame({"token": [1, 2], "weight": [1 / 3, NAN]})


@pytest.fixture(autouse=True)
def closed_figures():
    with figures.style():
        yield
    plt.close("all")


@pytest.fixture
def ax():
    return figures.figure_with_rows(1, 1)[1][0, 0]


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def example_figure():
    figure, axes = figures.figure_with_rows(1, 1)
    figures.draw_received(axes[0, 0], {"none": [0.1, 0.3, NAN]}, "Layer 1 Head 1")
    figures.draw_accuracy_bars(figure.add_subplot(), [MEASURED, PAPER])
    figures.caption(figure, "SmolLM2-135M-Instruct, n = 3, float32")
    return figure


def test_received_lines_hold_the_data_from_the_first_token_on(ax):
    lines = figures.draw_received(ax, {"none": [0.1, 0.2, NAN], "mless": [0.05, 0.1, NAN]}, "T", first=1)
    assert lines == list(ax.lines)
    np.testing.assert_array_equal(lines[0].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(lines[1].get_ydata(), [0.05, 0.1, NAN])
    assert legend_texts(ax) == ["None", "Mless"]


def test_received_axes_are_labelled_and_start_at_zero(ax):
    figures.draw_received(ax, {"none": [0.1, 0.2]}, "Qwen2.5-Math-7B Layer 1 Head 22")
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
    figures.draw_received(ax, curves, "T")
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.y0 > ax.transData.transform((0, 0.9))[1]
    assert -(-len(curves) // ax.get_legend()._ncols) == rows


def test_a_condition_looks_the_same_under_all_its_names(ax):
    key, name = figures.draw_received(ax, {"mless": [0.1, 0.2], "w/ Meaningless tokens": [0.1, 0.2]}, "T")
    assert key.get_color() == name.get_color() == figures.CONDITION_STYLES["mless"].colour
    assert key.get_linestyle() == name.get_linestyle()
    assert legend_texts(ax) == ["Mless", "w/ Meaningless tokens"]


@pytest.mark.parametrize("field", ["colour", "line", "marker"])
def test_conditions_differ_in_every_respect(field):
    assert len({getattr(look, field) for look in figures.CONDITION_STYLES.values()}) == len(figures.CONDITION_STYLES)


def test_no_two_conditions_share_a_name():
    names = [name for look in figures.CONDITION_STYLES.values() for name in look.names]
    assert len(set(names)) == len(names)


def test_an_unknown_condition_is_refused(ax):
    with pytest.raises(ValueError, match="unknown condition 'bogus'"):
        figures.draw_received(ax, {"bogus": [0.1]}, "T")


def test_fill_adds_an_area_per_curve(ax):
    artists = figures.draw_received(ax, {"none": [0.1, 0.2], "mful": [0.1, 0.1]}, "T", fill=True)
    assert artists == [*ax.lines, *ax.collections]
    assert len(ax.collections) == 2


@pytest.mark.parametrize("weights", [[0.2], [0.2, NAN]])
def test_a_single_point_is_visible(ax, weights):
    (line,) = figures.draw_received(ax, {"none": weights}, "T")
    assert line.get_marker() == "o"


def test_weights_that_are_all_undefined_still_draw(ax):
    figures.draw_received(ax, {"none": [NAN, NAN]}, "T", fill=True)
    figures.shade_span(ax, 0, 1)
    ax.figure.canvas.draw()
    assert np.isfinite(ax.get_ylim()).all()


def test_the_shade_covers_the_tokens_of_the_span(ax):
    figures.draw_received(ax, {"mless": np.full(10, 0.1)}, "T")
    patch = figures.shade_span(ax, 3, 6)
    assert (patch.get_x(), patch.get_x() + patch.get_width()) == (2.5, 5.5)
    assert legend_texts(ax) == ["Mless", "Meaningless tokens"]


def test_bars_have_the_accuracies_as_heights_and_as_texts(ax):
    bars = figures.draw_accuracy_bars(ax, [MEASURED, PAPER])
    assert [bar.get_height() for bar in bars] == [63.2, 65.0, 64.0, 66.0]
    assert [text.get_text() for text in ax.texts] == ["63.2", "65.0", "64.0", "66.0"]
    assert ax.get_ylabel() == "Accuracy (%)"
    assert (ax.get_yticks()[0], ax.get_yticks()[-1]) == (0, 100)


def test_intervals_of_bars_end_where_they_were_given(ax):
    first, second = figures.draw_accuracy_bars(ax, [MEASURED])
    assert [list(line.get_ydata()) for line in ax.lines] == [[59.0, 67.5], [60.5, 69.0]]
    assert ax.lines[0].get_xdata()[0] == pytest.approx(first.get_x() + first.get_width() / 2)
    assert first.get_x() + first.get_width() < second.get_x()


def test_the_papers_bars_are_hatched_and_without_interval(ax):
    bars = figures.draw_accuracy_bars(ax, [MEASURED, PAPER])
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True, True]
    assert len(ax.lines) == 2
    ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert [tick.endswith("(paper)") for tick in ticks] == [False, True]
    assert legend_texts(ax) == ["None", "Mless", "reported in the paper"]


def test_numbers_above_bars_clear_the_interval(ax):
    figures.draw_accuracy_bars(ax, [MEASURED])
    assert [text.xy[1] for text in ax.texts] == [67.5, 69.0]


def test_an_undefined_accuracy_is_said_to_be_missing(ax):
    figures.draw_accuracy_bars(ax, [("M", [("none", NAN, NAN, NAN), ("mless", 10.0, 5.0, 20.0)])])
    ax.figure.canvas.draw()
    assert ax.texts[0].get_text() == "n/a"


@pytest.mark.parametrize("models, rotation", [(4, 0), (5, 90)])
def test_numbers_stand_upright_over_ten_bars(ax, models, rotation):
    figures.draw_accuracy_bars(ax, [MEASURED] * models)
    assert ax.texts[0].get_rotation() == rotation


def test_accuracy_points_stand_at_their_labels_beside_the_papers(ax):
    ends = ([10, 20], [5, 12], [16, 29])
    points = figures.draw_accuracy_points(ax, ["no tokens", "10"], *ends, "Length", reported=[72.4, NAN])
    assert list(points.get_ydata()) == [10, 20] and legend_texts(ax) == ["this run", "the paper, 7B"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["no tokens", "10"]
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 72.4


def test_accuracy_points_without_reported_numbers_have_one_legend_entry(ax):
    figures.draw_accuracy_points(ax, ["a"], [10], [5], [16], "T", reported=[NAN])
    assert legend_texts(ax) == ["this run"]


def test_the_layouts_have_the_papers_axes():
    assert figures.figure_with_rows(2, 3)[1].shape == (2, 3)
    figure, (left, upper, lower) = figures.fig10_layout()
    figure.canvas.draw()
    assert left.get_position().x1 < upper.get_position().x0
    assert upper.get_position().y0 > lower.get_position().y1


def test_the_caption_lies_below_the_axes(ax):
    text = figures.caption(ax.figure, "SmolLM2-135M-Instruct, float32, " * 8)
    ax.figure.canvas.draw()
    assert text.get_window_extent().y1 <= ax.get_tightbbox().y0
    assert text.get_window_extent().x1 <= ax.figure.bbox.x1


def test_save_writes_three_files_and_nothing_else(tmp_path):
    paths = figures.save_figure(example_figure(), tmp_path / "new" / "demo", "fig09", TABLE)
    assert [path.name for path in paths] == ["fig09.png", "fig09.pdf", "fig09.csv"]
    assert sorted((tmp_path / "new" / "demo").iterdir()) == sorted(paths)
    assert paths[2].read_bytes() == b"token,weight\n1,0.333333\n2,\n"


def test_the_same_data_give_the_same_bytes(tmp_path):
    first = figures.save_figure(example_figure(), tmp_path / "a", "fig", TABLE)
    time.sleep(1.1)  # dates in a file count whole seconds
    second = figures.save_figure(example_figure(), tmp_path / "b", "fig", TABLE)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_pdf_embeds_truetype_even_outside_the_style(tmp_path):
    figure = example_figure()
    with plt.rc_context({"pdf.fonttype": 3}):
        _, pdf, _ = figures.save_figure(figure, tmp_path, "fig", TABLE)
    assert b"/FontFile2" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()


def test_an_unwritable_folder_is_an_input_error(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="taken") as caught:
        figures.save_figure(example_figure(), tmp_path / "taken", "fig", TABLE)
    assert "\n" not in str(caught.value)


def test_a_failed_write_leaves_no_partial_file(tmp_path):
    (tmp_path / "fig.png").mkdir()
    with pytest.raises(InputError):
        figures.save_figure(example_figure(), tmp_path, "fig", TABLE)
    assert [path.name for path in tmp_path.iterdir()] == ["fig.png"]
