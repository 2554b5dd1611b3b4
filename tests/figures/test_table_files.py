"""Two tables count as the same if they differ no more than processors round."""

import pandas as pd
import pytest
from artists import table

from lib.statistics.intervals import decimals_of
from reproduction import paths
from reproduction.claims.verdicts import read_verdicts, verdict_table
from reproduction.figures.notebook_tables import csv_of, looks_same, shows_same

TABLE = table("""model,value,n,p_holm,effect,low,high
a,0.5,1,0.2,0.034,0.02,0.05
b,,300,0.04,51.9,-100,100
c,-200,301,,0.91,0.89,0.93
""")


# Column and row of a cell, another value, and whether the table still counts as the
# same.
CHANGED = """
value 2 -200.1 no
value 2 200 no
value 2 -200.02 yes  # 2e-5 of itself, and 1e-4 of the column's largest number
value 0 0.53 no
value 0 0.515 yes
value 1 0.1 no  # a missing value
value 0 nan no
effect 0 0.035 no  # beside a row of another size
effect 2 0.90 no
effect 2 0.91002 yes
effect 1 51.98 yes  # within 5e-4 of the width of its interval
low 0 0.0201 no
n 1 301 no  # a count
model 1 x no
p_holm 0 0.21 no
"""


@pytest.mark.parametrize("row", CHANGED.strip().splitlines())
def test_tables_differ_only_if_processors_round_less_differently(row):
    column, number, value, is_same = row.split()[:4]
    texts = TABLE.astype(str)
    texts.loc[int(number), column] = value
    assert looks_same(TABLE, table(texts.to_csv(index=False))) is (is_same == "yes")


def test_integers_are_compared_with_fractions_within_a_tolerance():
    integers = pd.DataFrame({"value": [100, 50]})
    assert looks_same(integers, pd.DataFrame({"value": [100.0, 50.01]}))
    assert not looks_same(integers, pd.DataFrame({"value": [100.0, 50.02]}))


def test_another_count_of_right_answers_makes_another_table():
    kept = pd.read_csv(paths.FIGURES / "families" / "fig10.csv")
    for row in kept.index[kept.accuracy.notna()]:
        altered = kept.copy()
        altered.loc[row, "accuracy"] -= 100 / kept.n[row]
        assert not looks_same(kept, altered)


HEADS = pd.read_csv(paths.FIGURES / "families" / "lambda_map.csv")
VERDICTS = verdict_table(read_verdicts(paths.DATA / "families"))


@pytest.mark.parametrize("kept, column", [(HEADS, "lambda"), (VERDICTS, "effect")])
def test_another_printed_digit_makes_another_table(kept, column):
    for row in kept.index[kept[column].notna()][::20]:
        altered = kept.copy()
        altered.loc[row, column] += 10.0 ** -decimals_of(kept.low[row], kept.high[row])
        assert not looks_same(kept, altered)


def test_tables_with_other_rows_or_columns_differ():
    assert not looks_same(TABLE, TABLE[:2])
    assert not looks_same(TABLE, TABLE.rename(columns={"n": "N"}))
    assert not looks_same(TABLE, TABLE[["n", *TABLE.columns.drop("n")]])


@pytest.mark.parametrize("csv", ["x,n\na,1\n,2\n", "x,n\nTrue,1\n,2\n", "x,n\n,1\n"])
def test_missing_values_equal_missing_values(csv):
    assert looks_same(table(csv), table(csv))


# Two columns of numbers, and whether they look the same.
COLUMNS = """
nan,nan 1,2 no  # an interval where none was
1,2 nan,nan no
nan,0 0,nan no
0,0 0,1e-9 no
0,0 0,0 yes
nan,nan nan,nan yes
inf,1 inf,2 no
inf,1 inf,1.00005 yes
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
