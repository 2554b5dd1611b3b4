"""A table is another one when a reader would see it, and a run ends by saying so."""

import io

import pandas as pd
import pytest

from lib.figures.compare import NO_PICTURE, NO_TABLE, RECORD, agreement, difference
from lib.paths import write_json

NAN = float("nan")
TABLE = pd.DataFrame(
    {"model": ["a", "b", "c"], "value": [0.5, NAN, -200.0], "n": [1, 2, 3]}
)


def changed(table, column, row, value):
    values = list(table[column])
    values[row] = value
    return table.assign(**{column: values})


SEEN = [
    ("value", 2, -202.1),  # more than a hundredth of itself
    ("value", 2, -202.01),
    ("value", 0, 0.71),  # more than a thousandth of the column's largest
    ("value", 2, 200.0),
    ("value", 1, 0.1),  # a gap that is filled
    ("value", 0, NAN),
    ("n", 1, 3),  # a count
    ("model", 1, "x"),
]
UNSEEN = [("value", 2, -201.9), ("value", 0, 0.69), ("value", 0, 0.5)]


@pytest.mark.parametrize("column, row, value", SEEN)
def test_what_a_reader_sees_is_named_with_its_place(column, row, value):
    where = difference(TABLE, changed(TABLE, column, row, value))
    assert where.startswith(f"{column} in line {row + 2}: {value}, was ")


@pytest.mark.parametrize("column, row, value", UNSEEN)
def test_what_no_reader_sees_is_no_difference(column, row, value):
    assert difference(TABLE, changed(TABLE, column, row, value)) == ""


def test_a_fraction_that_happens_to_be_whole_is_still_one():
    whole = pd.DataFrame({"value": [100, 50]})
    assert whole.value.dtype.kind == "i"
    assert difference(whole, pd.DataFrame({"value": [100.0, 50.2]})) == ""
    assert difference(whole, pd.DataFrame({"value": [100.0, 50.7]}))


P_VALUES = [
    (0.044, 0.0488, True),
    (0.0499, 0.0501, False),
    (0.3, 0.8, True),
    (0.04, 0.06, False),
    (3e-16, 9e-4, True),
    (NAN, 0.3, False),
]


@pytest.mark.parametrize("was, now, same", P_VALUES)
@pytest.mark.parametrize("name", ["p_holm", "p_value", "effect_p_value", "p"])
def test_a_p_value_is_the_same_on_its_side_of_the_level(name, was, now, same):
    old = pd.DataFrame({name: [was, 1.0]})
    new = pd.DataFrame({name: [now, 1.0]})
    assert (difference(old, new) == "") == same


OTHER_TABLES = [
    TABLE.iloc[:2],
    TABLE.rename(columns={"n": "N"}),
    TABLE[["value", "model", "n"]],
]


@pytest.mark.parametrize("other", OTHER_TABLES)
def test_other_rows_and_columns_are_another_table(other):
    assert difference(TABLE, other)
    assert difference(other[:0], other[:0]) == ""


def test_what_there_is_is_named_before_what_there_was():
    renamed = TABLE.rename(columns={"n": "N"})
    names = "columns model, value, N, were model, value, n"
    assert difference(TABLE, renamed) == names
    assert difference(TABLE, TABLE[:2]) == "2 rows, were 3"


@pytest.mark.parametrize(
    "values", [["a", None], [True, None], ["", "1"], [None, None], [1.5, None]]
)
def test_gaps_are_equal_to_gaps(values):
    csv = pd.DataFrame({"x": values, "n": [1, 2]}).to_csv()
    table = pd.read_csv(io.StringIO(csv))
    assert difference(table, table.copy()) == ""


def test_the_last_words_of_a_run_count_what_agrees_and_name_what_does_not(tmp_path):
    assert agreement(tmp_path) == ""
    reasons = {"a": "", "b": "", "c": NO_TABLE, "d": "n in line 2: 3, was 4"}
    write_json(tmp_path / RECORD, reasons)
    assert agreement(tmp_path).splitlines() == [
        "2 of 3 figures agree with the files that were there.",
        "1 new figure was drawn.",
        "d was drawn anew: n in line 2: 3, was 4.",
    ]
    write_json(tmp_path / RECORD, {"a": NO_TABLE, "b": NO_TABLE, "c": NO_PICTURE})
    assert agreement(tmp_path).splitlines() == [
        "2 new figures were drawn.",
        "c was drawn anew: no picture was there.",
    ]
