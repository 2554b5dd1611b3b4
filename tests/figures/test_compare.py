"""A table is another one when a reader would see it."""

import pandas as pd
import pytest
from artists import table

from lib.figures.tables import same

NAN = float("nan")
TABLE = table("""model,value,n,p_holm
a,0.5,1,0.2
b,,300,0.04
c,-200,301,
""")


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
def test_what_a_reader_sees_is_another_table(column, row, value):
    assert not same(TABLE, changed(column, row, value))


@pytest.mark.parametrize(
    "column, row, value", [("value", 2, -201.9), ("value", 0, 0.69), ("p_holm", 0, 0.9)]
)
def test_what_no_reader_sees_is_the_same_table(column, row, value):
    assert same(TABLE, changed(column, row, value))


def test_a_fraction_that_happens_to_be_whole_is_still_one():
    whole = pd.DataFrame({"value": [100, 50]})
    assert same(whole, pd.DataFrame({"value": [100.0, 50.2]}))
    assert not same(whole, pd.DataFrame({"value": [100.0, 50.7]}))


def test_other_rows_and_columns_are_another_table():
    assert not same(TABLE, TABLE[:2])
    assert not same(TABLE, TABLE.rename(columns={"n": "N"}))
    portions = TABLE.rename(columns={"n": "p_holm_of"})
    assert same(portions, portions)
    assert not same(portions, portions.assign(p_holm_of=1))
    assert not same(TABLE, TABLE[["value", "model", "n"]])


@pytest.mark.parametrize("csv", ["x,n\na,1\n,2\n", "x,n\nTrue,1\n,2\n", "x,n\n,1\n"])
def test_gaps_are_equal_to_gaps(csv):
    assert same(table(csv), table(csv))
