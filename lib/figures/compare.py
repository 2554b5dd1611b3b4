"""Whether a table still says what its file does, to a reader's eye.

Processors round differently: the same run on another machine differs in the sixth
digit, and no file should be written anew for that.
"""

import io
import json
import re
from pathlib import Path

import pandas as pd

RECORD = "figures.json"  # in a run's results: why each figure was drawn, "" if kept
MISSING = "a file was missing"
# What no reader sees: of a number, and of the largest number of its column.
SAME = 0.01
SAME_OF_COLUMN = 0.001
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")


def csv_of(table):
    """Return a table as the text of the file that is kept of it."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def why_anew(path, csv):
    """Return why a file is to be replaced by this text, "" to keep it."""
    try:
        old = pd.read_csv(path)
    except (OSError, ValueError):  # not there, or damaged
        return MISSING
    return difference(old, pd.read_csv(io.StringIO(csv)))


def difference(old, new):
    """Return where two tables first differ to a reader, "" if nowhere.

    Texts and counts have to be equal, fractions to a hundredth of themselves or a
    thousandth of the largest of their column. P-values are left out.
    """
    names = [name for name in old if not P_VALUE.fullmatch(name)]
    if names != [name for name in new if not P_VALUE.fullmatch(name)]:
        return f"other columns: {', '.join(new)}"
    for name in names:
        columns = _comparable(old[name], new[name])
        tolerance = {"rtol": SAME, "atol": SAME_OF_COLUMN}
        try:
            pd.testing.assert_series_equal(*columns, check_dtype=False, **tolerance)
        except AssertionError as error:
            return f"{name}: {' '.join(str(error).split())}"
    return ""


def _comparable(old, new):
    """Return two columns over the largest number of the old one; counts as texts."""
    kinds = {old.dtype.kind, new.dtype.kind}
    if kinds == {"i"}:
        return old.astype(str), new.astype(str)
    if kinds <= {"i", "f"}:
        return old / old.abs().max(), new / old.abs().max()
    return old, new


def recorded(results):
    """Return why each figure of a run was drawn, "" where its files were kept.

    What a killed run left of the record is no figure.
    """
    try:
        return json.loads((Path(results) / RECORD).read_text())
    except (OSError, ValueError):
        return {}


def agreement(results):
    """Return the last words of a run: how many figures show the numbers that were
    there, and which were drawn anew and why.
    """
    reasons = recorded(results)
    if set(reasons.values()) == {MISSING}:
        return f"No figure had files to compare with; drawn anew: {len(reasons)}."
    anew = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
    text = f"{len(reasons) - len(anew)} of {len(reasons)} figures agree with the files"
    text += " that were there."
    return f"{text} Drawn anew: {', '.join(anew)}." if anew else text
