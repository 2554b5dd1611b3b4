"""Two figures say the same when their numbers and what is drawn do, whatever the processor."""

import io

import numpy as np
import pandas as pd
import pytest

from lib.figures.comparing import TOLERANCE, drawing, largest_difference, same_drawing
from lib.figures.received import draw_received
from lib.figures.style import figure_with_rows

NAN = float("nan")
TABLE = pd.DataFrame({"model": ["a", "b", "c"], "value": [0.5, NAN, -200.0], "p": [1.0, 3e-16, 0.5], "n": [1, 2, 3]})


def changed(column, row, value):
    table = TABLE.copy()
    table[column] = table[column].astype(type(value))
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    "column, row, value, size",
    [
        ("value", 0, 0.5, 0),
        ("value", 0, 0.5000005, 1e-6),
        ("value", 0, 0.505, 0.01 / 1.01),
        ("value", 2, 200.0, 2),
        ("value", 1, 0.1, np.inf),  # a gap that is filled
        ("value", 0, NAN, np.inf),
        ("p", 1, 9e-16, 6e-13),  # zero but for rounding, beside a p of 1
        ("n", 1, 3.0, 1 / 3),
        ("model", 1, "x", np.inf),
    ],
)
def test_the_largest_difference_is_relative_to_the_larger_number(column, row, value, size):
    found, where = largest_difference(TABLE, changed(column, row, value))
    assert found == pytest.approx(size, rel=1e-3)
    assert not size or where.startswith(f"{column} in line {row + 2}: {value}, was ")


OTHERS = [TABLE.iloc[:2], TABLE.rename(columns={"p": "q"}), TABLE[["value", "model", "p", "n"]]]


@pytest.mark.parametrize("other", OTHERS)
def test_other_rows_and_columns_are_another_table(other):
    size, where = largest_difference(TABLE, other)
    assert size > TOLERANCE and where


@pytest.mark.parametrize("values", [["a", None], [True, None], ["", "1"], [None, None]])
def test_gaps_are_equal_to_gaps_in_any_column(values):
    table = pd.read_csv(io.StringIO(pd.DataFrame({"x": values, "n": [1, 2]}).to_csv()))
    assert largest_difference(table, table.copy()) == (0, "")


def test_empty_tables_are_equal():
    assert largest_difference(TABLE.iloc[:0], TABLE.iloc[:0]) == (0, "")


def drawn(weights=(0.1, 0.3, 0.2), condition="none", title="Layer 1, λ 0.65", change=lambda ax: None):
    figure, axes = figure_with_rows(1, 1)
    draw_received(axes[0, 0], {condition: np.array(weights)}, title)
    change(axes[0, 0])
    return drawing(figure)


def test_numbers_in_the_sixth_digit_are_the_same_drawing():
    assert same_drawing(drawn(), drawn((0.1000001, 0.3000002, 0.2), title="Layer 1, λ 0.66"))


@pytest.mark.parametrize(
    "change",
    [
        lambda ax: ax.set_title("Head 1, λ 0.65"),
        lambda ax: ax.set_ylabel("attention"),
        lambda ax: ax.set_ylim(0, 0.5),
        lambda ax: ax.set_yscale("log"),
        lambda ax: ax.set_xticks([0, 1, 2], ["a", "b", "c"]),
        lambda ax: ax.lines[0].set_color("red"),
        lambda ax: ax.lines[0].set_linewidth(3),
        lambda ax: ax.lines[0].set_ydata([0.1, 0.3, 0.0]),
        lambda ax: ax.axhline(0.1),
        lambda ax: ax.get_legend().remove(),
        lambda ax: ax.figure.set_figheight(4),
    ],
)
def test_another_look_text_part_or_place_is_another_drawing(change):
    assert not same_drawing(drawn(), drawn(change=change))


def test_another_condition_is_another_drawing():
    assert not same_drawing(drawn(), drawn(condition="mless"))
