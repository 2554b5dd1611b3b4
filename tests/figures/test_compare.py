"""A table is another one when a reader would see it, and a run ends by saying so."""

import io

import pandas as pd
import pytest

from lib.figures.compare import MISSING, RECORD, agreement, difference
from lib.paths import write_json

NAN = float("nan")
TABLE = pd.DataFrame(
    {
        "model": ["a", "b", "c"],
        "value": [0.5, NAN, -200.0],
        "n": [1, 300, 301],
        "p_holm": [0.2, 0.04, NAN],
    }
)


def changed(column, row, value):
    values = list(TABLE[column])
    values[row] = value
    return TABLE.assign(**{column: values})


SEEN = [
    ("value", 2, -202.5),  # more than a hundredth of itself
    ("value", 2, 200.0),
    ("value", 0, 0.71),  # more than a thousandth of the column's largest
    ("value", 1, 0.1),  # a gap that is filled
    ("value", 0, NAN),
    ("n", 1, 301),  # a count
    ("model", 1, "x"),
]


@pytest.mark.parametrize("column, row, value", SEEN)
def test_what_a_reader_sees_is_a_difference_in_its_column(column, row, value):
    assert difference(TABLE, changed(column, row, value)).startswith(f"{column}: ")


@pytest.mark.parametrize(
    "column, row, value",
    [("value", 2, -201.9), ("value", 0, 0.69), ("value", 0, 0.5), ("p_holm", 0, 0.9)],
)
def test_what_no_reader_sees_is_no_difference(column, row, value):
    assert difference(TABLE, changed(column, row, value)) == ""


def test_a_fraction_that_happens_to_be_whole_is_still_one():
    whole = pd.DataFrame({"value": [100, 50]})
    assert difference(whole, pd.DataFrame({"value": [100.0, 50.2]})) == ""
    assert difference(whole, pd.DataFrame({"value": [100.0, 50.7]}))


OTHERS = [TABLE[:2], TABLE.rename(columns={"n": "N"}), TABLE[["value", "model", "n"]]]


@pytest.mark.parametrize("other", OTHERS)
def test_other_rows_and_columns_are_another_table(other):
    assert difference(TABLE, other)


@pytest.mark.parametrize("values", [["a", None], [True, None], [None, None]])
def test_gaps_are_equal_to_gaps(values):
    csv = pd.DataFrame({"x": values, "n": [1, 2]}).to_csv()
    table = pd.read_csv(io.StringIO(csv))
    assert difference(table, table.copy()) == ""


def test_the_last_words_of_a_run_count_what_agrees_and_name_what_does_not(tmp_path):
    write_json(tmp_path / RECORD, {"a": "", "b": MISSING, "c": "n: other"})
    assert agreement(tmp_path) == (
        "1 of 3 figures agree with the files that were there. Drawn anew: b (a file"
        " was missing), c (n: other)."
    )
    write_json(tmp_path / RECORD, {"a": MISSING, "b": MISSING})
    assert agreement(tmp_path) == "No figure had files to compare with; drawn anew: 2."
