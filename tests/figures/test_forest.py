"""What stands pair by pair is what was given, checked through the artists."""

import pandas as pd
from artists import texts

from lib.figures.forest import TENTH, forest

NAN = float("nan")


def rows(columns, *values):
    return pd.DataFrame(values, columns=columns.split())


FOREST = rows(
    "model curve x effect low high n band",
    ("gemma-3-270m", "slashes", "a − b", 0.5, -0.5, 1.5, 40, 0.8),
    ("SmolLM2-135M-Instruct", "slashes", "a − b", -2, -3, -1, 40, NAN),
    ("gemma-3-270m", "example", "c − b", 9, 8, 10, 40, 0.8),
)


def test_rows_of_the_forest_stand_by_pair(ax):
    first, other = forest(ax, FOREST)
    assert first.get_xdata().tolist() == [0.5, 9]
    assert other.get_xdata().tolist() == [-2]
    top, bottom = first.get_ydata()
    assert top - other.get_ydata()[0] == 1
    assert other.get_ydata()[0] - bottom == 2
    assert first.get_color() != other.get_color()
    assert texts(ax.get_yticklabels()) == ["slashes\n(a − b)", "example\n(c − b)"]


def test_rows_of_the_forest_have_their_interval_their_numbers_and_their_band(ax):
    forest(ax, FOREST)
    ends = [line.get_segments()[0][:, 0].tolist() for line in ax.collections]
    assert ends == [[-0.5, 1.5], [-3, -1]]
    assert texts(ax.texts)[0] == "+0.5 [−0.5, +1.5], n = 40"
    band, none, *_ = ax.patches
    assert (band.get_x(), band.get_width()) == (-0.8, 1.6)
    assert none.get_width() == 0


def test_the_axis_of_the_forest_reaches_as_far_to_either_side(ax):
    forest(ax, FOREST)
    low, high = ax.get_xlim()
    assert low == -high
    assert high > 10
    assert texts(ax.get_xticklabels()) == [
        "−10",
        "−3",
        "−1",
        "−0.5",
        "0",
        "0.5",
        "1",
        "3",
        "10",
    ]


def test_a_pair_is_named_in_the_middle_of_its_rows(ax):
    forest(ax, FOREST)
    assert ax.get_yticks().tolist() == [-1.5, -4]


def test_the_band_has_a_name_only_where_there_is_one(ax):
    forest(ax, FOREST)
    names = [FOREST.model[0], FOREST.model[1]]
    assert ax.get_legend_handles_labels()[1] == [*names, TENTH]
    ax.clear()
    forest(ax, FOREST.assign(band=NAN))
    assert ax.get_legend_handles_labels()[1] == names


def test_the_axis_of_the_forest_is_linear_to_one_nat(ax):
    forest(ax, FOREST)
    assert ax.xaxis.get_transform().linthresh == 1
