"""Tables in few digits, and sentences, as a notebook shows them; and whether a table
still says what its file does, to a reader's eye.

Processors round differently: the same run on another machine differs in the sixth
digit, and no file should be written anew for that.
"""

import io
import re
import textwrap

import pandas as pd
from IPython.display import Markdown, display

from lib.models.names import resolve
from lib.prompts.problems import describe
from lib.statistics.rounding import format_interval

# What no reader sees: of a number, and of the largest number of its column.
SAME = 0.01
SAME_OF_COLUMN = 0.001
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")
SMALLEST_SHOWN_P = 1e-3  # a smaller p-value is printed as less than this
MOST_ROWS = 20  # of a table that is shown whole
SIGNED = ("effect", "against others")  # differences, which are printed with a sign
LOW = re.compile(r"(?<![^\W_])low(?![^\W_])")  # a word of the name of a lower end

# Else the length of a number would decide where a line breaks, and rows and columns
# would be left out.
pd.set_option("display.width", 1000)
pd.set_option("display.max_columns", None)
pd.set_option("display.max_colwidth", None)
pd.set_option("display.max_rows", None)


class FoldedTable:
    """A long table, which a reader unfolds in a notebook."""

    def __init__(self, table):
        self.table = table

    def __repr__(self):
        return repr(self.table)

    def _repr_html_(self):
        summary = f"<summary>A table of {len(self.table)} rows</summary>"
        return f"<details>{summary}{self.table.to_html()}</details>"


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame, all for none, rounded to so many digits.

    The first column is the index, printed once where it repeats; gaps are empty. A
    p-value has three digits. An estimate and its ends become one column. A table of
    more than MOST_ROWS is folded, and of one without rows nothing is shown.
    """
    if table.empty:
        return None
    shown = table[list(columns or table)].rename_axis(columns=None)
    shown = shown.reset_index(drop=True)

    # An estimate and the two columns of its ends become one column of texts.
    for name, low, high in triples(shown.columns):
        sign = "+" if name in SIGNED else ""
        ends = zip(shown[name], shown.pop(low), shown.pop(high), strict=True)
        shown[name] = [
            "" if pd.isna(interval[0]) else format_interval(*interval, sign)
            for interval in ends
        ]

    # Every other number is rounded as its column is.
    for name in shown:
        values = shown[name]
        if values.isna().any():
            values = values.convert_dtypes()  # counts stay whole beside gaps
        shown[name] = [_cell(name, value, digits) for value in values]

    first = shown.pop(shown.columns[0])
    shown = shown.set_index(first.where(first != first.shift(), ""))
    return FoldedTable(shown) if len(shown) > MOST_ROWS else shown


def triples(names):
    """Return (estimate, low, high) of the columns that are an estimate followed by its
    ends.
    """
    following = zip(names, names[1:], names[2:], strict=False)
    return [
        (name, low, high)
        for name, low, high in following
        if LOW.search(low) and high == LOW.sub("high", low)
    ]


def _cell(name, value, places):
    """Return a gap as nothing, and a fraction with as many places as the others of its
    column.
    """
    if pd.isna(value):
        return ""
    if P_VALUE.fullmatch(name):
        return f"< {SMALLEST_SHOWN_P}" if value < SMALLEST_SHOWN_P else f"{value:.3f}"
    return f"{value:z.{places}f}" if isinstance(value, float) else value


def say(*paragraphs):
    """Show paragraphs as prose."""
    display(Markdown("\n\n".join(paragraphs)))


def quoted(text):
    """Return a text as a Markdown block that keeps its lines."""
    return textwrap.indent(text, "    ")


def settings_text(section):
    """Return which models and problems a section of a profile names, as a caption says
    it.
    """
    models = []
    for source in map(resolve, section.models):
        revision = f" @ {source.revision[:12]}" if source.revision else ""
        models.append(f"{source.name}{revision}")
    problems = f"{describe(section.problems)}, in a {section.format} prompt"
    return f"Models: {'; '.join(models)}. Problems: {problems}."


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
