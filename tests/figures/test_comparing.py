"""Two figures say the same when their numbers and what is drawn do, whatever the processor."""

import io

import numpy as np
import pandas as pd
import pytest

from lib.figures.comparing import TOLERANCE, drawing, largest_difference, same_drawing
from lib.figures.received import draw_received
from lib.figures.style import figure_with_rows

NAN = float("nan")
TABLE = pd.DataFrame({"model": ["a", "b", "c"], "value": [0.5, NAN, -200.0], "n": [1, 2, 3]})
ENDS = pd.DataFrame({"effect": [0.02, 5.0], "low": [0.00013, 4.0], "high": [0.0464, 6.0], "p_holm": [0.044, 3e-16]})


def changed(column, row, value, table=TABLE):
    table = table.copy()
    table[column] = table[column].astype(type(value))
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    "column, row, value, size",
    [
        ("value", 0, 0.5, 0),
        ("value", 0, 0.502, 0.001),  # beside 200, 0.5 counts as 2
        ("value", 2, -198.0, 0.01),
        ("value", 2, 200.0, 2),
        ("value", 1, 0.1, np.inf),  # a gap that is filled
        ("value", 0, NAN, np.inf),
        ("n", 1, 3, np.inf),  # a count
        ("model", 1, "x", np.inf),
    ],
)
def test_a_number_is_compared_by_its_size(column, row, value, size):
    found, where = largest_difference(TABLE, changed(column, row, value))
    assert found == pytest.approx(size, rel=1e-3)
    assert not size or where.startswith(f"{column} in line {row + 2}: {value}, was ")


@pytest.mark.parametrize(
    "column, row, value, size",
    [
        ("low", 0, 0.000132, 4.32e-5),  # what another processor gave: 1.4 % of the number
        ("effect", 0, 0.021, 0.001 / 0.04627),
        ("high", 1, 6.02, 0.02 / 2.02),
        ("effect", 1, 5.05, 0.025),  # one percent of the number, two and a half of the interval
    ],
)
def test_an_estimate_and_its_ends_are_compared_by_the_width_of_the_interval(column, row, value, size):
    assert largest_difference(ENDS, changed(column, row, value, ENDS))[0] == pytest.approx(size, rel=0.01)


def test_an_interval_without_width_counts_as_a_thousandth_of_the_largest_end():
    even = pd.DataFrame({"ratio": [1.0, 2.0], "low": [1.0, 1.5], "high": [1.0, 2.5]})
    assert largest_difference(even, changed("ratio", 0, 1 + 1e-7, even))[0] == pytest.approx(4e-5)


@pytest.mark.parametrize("column", ["p", "p_value", "p_holm", "control.p"])
@pytest.mark.parametrize(
    "old, new, same",
    [(0.044, 0.0488, True), (0.0499, 0.0501, False), (0.3, 0.8, True), (0.004, 0.04, False), (3e-16, 9e-4, True)],
)
def test_a_p_value_is_compared_by_what_it_decides_and_by_its_order_of_magnitude(column, old, new, same):
    tables = (pd.DataFrame({column: [value, 1.0]}) for value in (old, new))
    assert (largest_difference(*tables)[0] <= TOLERANCE) == same


OTHERS = [TABLE.iloc[:2], TABLE.rename(columns={"n": "N"}), TABLE[["value", "model", "n"]]]


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
