"""A table is another one when a reader would see it."""

import pandas as pd
import pytest
from artists import table

from lib.figures.tables import same

TABLE = table("""model,value,n,p_holm
a,0.5,1,0.2
b,,300,0.04
c,-200,301,
""")


# A cell, another value, and whether a reader would still see the same.
CHANGED = """
value 2 -202.5 no  # more than a hundredth of itself
value 2 200 no
value 2 -201.9 yes
value 0 0.71 no  # more than a thousandth of the column's largest
value 0 0.69 yes
value 1 0.1 no  # a gap that is filled
value 0 nan no
n 1 301 no  # a count
model 1 x no
p_holm 0 0.9 yes
"""


@pytest.mark.parametrize("row", CHANGED.strip().splitlines())
def test_a_table_is_another_one_where_a_reader_sees_it(row):
    column, place, value, is_same = row.split()[:4]
    texts = TABLE.astype(str)
    texts.loc[int(place), column] = value
    assert same(TABLE, table(texts.to_csv(index=False))) is (is_same == "yes")


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
