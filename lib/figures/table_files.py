"""Write tables as csv, and decide whether a stored table shows the same as a new one.

Processors round differently, so that the same run on another machine may differ in the
sixth digit; a stored file is not written again because of such a difference.
"""

import io
import re

import numpy as np
import pandas as pd

# Differences that no reader sees: relative to the number, and to the largest number of
# its column. They are added.
RELATIVE_TOLERANCE = 0.01
COLUMN_TOLERANCE = 0.001
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")


def csv_of(table):
    """Return a table as the text of a csv file, with six significant digits."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def shows_same(path, csv):
    """Return whether a stored csv file shows the same as a csv text; False if it is
    missing or damaged, and for a text without columns.
    """
    try:
        old = pd.read_csv(path)
        new = pd.read_csv(io.StringIO(csv))
    except (OSError, ValueError):
        return False
    return looks_same(old, new)


def looks_same(old, new):
    """Return whether two tables look the same to a reader.

    Texts and counts have to be equal; other numbers may differ by a hundredth of
    themselves plus a thousandth of the largest in their column. P-values are ignored.
    """
    names = [name for name in old if not P_VALUE.fullmatch(name)]
    if names != [name for name in new if not P_VALUE.fullmatch(name)]:
        return False
    tolerance = {"rtol": RELATIVE_TOLERANCE, "atol": COLUMN_TOLERANCE}
    try:
        for name in names:
            columns = _comparable(old[name], new[name])
            pd.testing.assert_series_equal(*columns, check_dtype=False, **tolerance)
    except AssertionError:
        return False
    return True


def _comparable(old, new):
    """Return two columns in the form in which they are compared: counts as texts, other
    numbers divided by the largest finite one of the old column.
    """
    kinds = {old.dtype.kind, new.dtype.kind}
    if kinds == {"i"}:
        return old.astype(str), new.astype(str)
    if kinds <= {"i", "f"}:
        largest = old.abs()[np.isfinite(old)].max()
        # Without a number other than 0, any number is a difference.
        scale = largest if largest > 0 else np.finfo(float).tiny
        return old / scale, new / scale
    return old, new
