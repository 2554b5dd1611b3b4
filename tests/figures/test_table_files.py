"""Two tables count as the same unless a reader would see a difference."""

import pandas as pd
import pytest
from artists import table

from reproduction.figures.notebook_tables import csv_of, looks_same, shows_same

TABLE = table("""model,value,n,p_holm
a,0.5,1,0.2
b,,300,0.04
c,-200,301,
""")


# Column and row of a cell, another value, and whether the table still counts as the
# same.
CHANGED = """
value 2 -202.5 no  # changes by more than 1 %
value 2 200 no
value 2 -201.9 yes
value 0 0.71 no  # changes by more than a thousandth of the column's maximum
value 0 0.69 yes
value 1 0.1 no  # a missing value
value 0 nan no
n 1 301 no  # a count
model 1 x no
p_holm 0 0.9 yes
"""


@pytest.mark.parametrize("row", CHANGED.strip().splitlines())
def test_tables_differ_only_if_a_reader_would_see_the_difference(row):
    column, number, value, is_same = row.split()[:4]
    texts = TABLE.astype(str)
    texts.loc[int(number), column] = value
    assert looks_same(TABLE, table(texts.to_csv(index=False))) is (is_same == "yes")


def test_integers_are_compared_with_fractions_within_a_tolerance():
    integers = pd.DataFrame({"value": [100, 50]})
    assert looks_same(integers, pd.DataFrame({"value": [100.0, 50.2]}))
    assert not looks_same(integers, pd.DataFrame({"value": [100.0, 50.7]}))


def test_tables_with_other_rows_or_columns_differ():
    assert not looks_same(TABLE, TABLE[:2])
    assert not looks_same(TABLE, TABLE.rename(columns={"n": "N"}))
    portions = TABLE.rename(columns={"n": "p_holm_of"})
    assert looks_same(portions, portions)
    assert not looks_same(portions, portions.assign(p_holm_of=1))
    assert not looks_same(TABLE, TABLE[["value", "model", "n"]])


@pytest.mark.parametrize("csv", ["x,n\na,1\n,2\n", "x,n\nTrue,1\n,2\n", "x,n\n,1\n"])
def test_missing_values_equal_missing_values(csv):
    assert looks_same(table(csv), table(csv))


# Two columns of numbers, and whether they look the same.
COLUMNS = """
nan,nan 1,2 no  # an interval where none was
1,2 nan,nan no
nan,0 0,nan no
0,0 0,1e-9 no  # a thousandth of the largest number is 0
0,0 0,0 yes
nan,nan nan,nan yes
inf,1 inf,2 no
inf,1 inf,1.005 yes
"""


@pytest.mark.parametrize("row", COLUMNS.strip().splitlines())
def test_missing_zero_and_infinite_numbers_hide_no_difference(row):
    *columns, is_same = row.partition("  #")[0].split()
    old, new = (
        pd.DataFrame({"low": map(float, texts.split(","))}) for texts in columns
    )
    assert looks_same(old, new) is (is_same == "yes")


def test_a_table_without_columns_differs_from_a_stored_one(tmp_path):
    stored = tmp_path / "table.csv"
    stored.write_text(csv_of(TABLE))
    assert shows_same(stored, csv_of(TABLE))
    assert not shows_same(stored, csv_of(pd.DataFrame()))
