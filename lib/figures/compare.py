"""Whether a table still says what its file does, to a reader's eye.

Processors round differently: the same run on another machine differs in the sixth
digit, and no file should be written anew for that.
"""

import io
import re

import pandas as pd

# What no reader sees: of a number, and of the largest number of its column.
SAME = 0.01
SAME_OF_COLUMN = 0.001
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")


def csv_of(table):
    """Return a table as the text of the file that is kept of it."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def still_says(path, csv):
    """Return whether the file that is kept says the same as this text."""
    try:
        old = pd.read_csv(path)
    except (OSError, ValueError):  # not there, or damaged
        return False
    return same(old, pd.read_csv(io.StringIO(csv)))


def same(old, new):
    """Return whether two tables are the same to a reader.

    Texts and counts have to be equal, fractions to a hundredth of themselves or a
    thousandth of the largest of their column. P-values are left out.
    """
    names = [name for name in old if not P_VALUE.fullmatch(name)]
    if names != [name for name in new if not P_VALUE.fullmatch(name)]:
        return False
    tolerance = {"rtol": SAME, "atol": SAME_OF_COLUMN}
    try:
        for name in names:
            columns = _comparable(old[name], new[name])
            pd.testing.assert_series_equal(*columns, check_dtype=False, **tolerance)
    except AssertionError:
        return False
    return True


def _comparable(old, new):
    """Return two columns over the largest number of the old one; counts as texts."""
    kinds = {old.dtype.kind, new.dtype.kind}
    if kinds == {"i"}:
        return old.astype(str), new.astype(str)
    if kinds <= {"i", "f"}:
        return old / old.abs().max(), new / old.abs().max()
    return old, new
