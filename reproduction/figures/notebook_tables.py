"""Show rounded tables and sentences in a notebook; write tables as csv, and decide
whether a stored table shows the same as a new one.

Processors round differently, so that the same run on another machine may differ in the
sixth digit; a stored file is not written again because of such a difference.
"""

import html
import io
import re
import statistics

import numpy as np
import pandas as pd
from IPython.display import Markdown, display

from lib.models.sources import resolve
from lib.prompts.problems import describe
from lib.statistics.rounding import decimals_of, format_interval

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


SMALLEST_SHOWN_P = 1e-3  # smaller p-values are printed as "< 0.001"
MAX_UNFOLDED_ROWS = 20  # longer tables are shown folded
SIGNED = ("effect", "change", "points", "against others")  # differences: with a sign
# By a pattern in a condition's name: the word for it in tables.
CONDITION_WORDS = {
    r"^mless\b": "slashes",
    r"^mful\b": "he",
    r"^random\b": "sentence",
    r"(?:^|(?<=\+))arm\b": "ARM",
}
# Column names of stored tables: the words for them where a table is shown.
COLUMN_WORDS = {
    "only_none": "only without",  # problems solved only without the insertion
    "only_this": "only with",
    "cut_none": "cut without",  # % of the answers without the insertion
    "cut_mless": "cut with",
}
LOW = re.compile(r"(?<![^\W_])low(?![^\W_])")  # part of the name of a lower bound

# Without these options, pandas would omit rows and columns, and the length of a number
# would decide where lines break.
pd.set_option("display.width", 1000)
pd.set_option("display.max_columns", None)
pd.set_option("display.max_colwidth", None)
pd.set_option("display.max_rows", None)


class FoldedTable:
    """A long table that a notebook shows folded, and a reader can unfold."""

    def __init__(self, table):
        self.table = table

    def __repr__(self):
        return repr(self.table)

    def _repr_html_(self):
        summary = f"<summary>A table of {len(self.table)} rows</summary>"
        return f"<details>{summary}{self.table.to_html()}</details>"


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame as `rounded` does; folded if there are more than
    MAX_UNFOLDED_ROWS rows, and None if there is none.
    """
    if table.empty:
        return None
    shown = rounded(table, columns, digits)
    return FoldedTable(shown) if len(shown) > MAX_UNFOLDED_ROWS else shown


def rounded(table, columns=None, digits=2):
    """Return columns of a DataFrame (None: all), rounded to `digits` decimals.

    The first column is the index, printed once for repeated values; missing values are
    empty. A p-value has three decimals. An estimate and its bounds become one column.
    Columns get the names of COLUMN_WORDS.
    """
    shown = table[list(columns or table)].rename_axis(columns=None)
    shown = shown.reset_index(drop=True).rename(columns=COLUMN_WORDS)

    # An estimate and its two bounds become one column of texts.
    for name, low, high in intervals_of(shown.columns):
        sign = "+" if name in SIGNED else ""
        rows = zip(shown[name], shown.pop(low), shown.pop(high), strict=True)
        shown[name] = interval_texts(list(rows), sign)

    # All numbers of a column have the same number of decimals.
    for name in shown:
        values = shown[name]
        if values.isna().any():
            values = (
                values.convert_dtypes()
            )  # counts stay integers if values are missing
        shown[name] = [_cell(name, value, digits) for value in values]

    first = shown.pop(shown.columns[0])
    return shown.set_index(first.where(first != first.shift(), ""))


def side_by_side(table, value, rows, by="model"):
    """Return the estimates of a column with their intervals as texts, in a row for each
    value of the columns `rows` and a column for each value of the column `by`.

    The two columns after `value` are the bounds.
    """
    column = table.columns.get_loc(value)
    estimates = table.iloc[:, column : column + 3].itertuples(index=False)
    texts = table.assign(text=interval_texts(list(estimates)))
    wide = texts.pivot_table("text", rows, by, aggfunc="first", sort=False)
    return wide.reset_index()


def interval_texts(rows, sign=""):
    """Return rows (estimate, low, high) as texts with the median number of decimals; ""
    for a missing estimate.
    """
    known = [row for row in rows if not pd.isna(row[0])]
    decimals = [decimals_of(low, high, sign) for _, low, high in known]
    usual = statistics.median_low(decimals) if decimals else None
    return [
        "" if pd.isna(estimate) else format_interval(estimate, low, high, sign, usual)
        for estimate, low, high in rows
    ]


def intervals_of(names):
    """Return the names (estimate, low, high) of each column that is followed by two
    columns with the bounds of its interval.
    """
    following = zip(names, names[1:], names[2:], strict=False)
    return [
        (name, low, high)
        for name, low, high in following
        if LOW.search(low) and high == LOW.sub("high", low)
    ]


def _cell(name, value, digits):
    """Return a value of the column `name` as it is printed: a float with `digits`
    decimals, a p-value with three, a missing value as "".
    """
    if pd.isna(value):
        return ""
    if P_VALUE.fullmatch(name):
        return f"< {SMALLEST_SHOWN_P}" if value < SMALLEST_SHOWN_P else f"{value:.3f}"
    return f"{value:z.{digits}f}" if isinstance(value, float) else value


def in_words(table, columns=("condition",)):
    """Return a table with its conditions named as in the legends of figures, such as
    slashes:25 for mless:25. A table without rows is returned unchanged.

    columns: those that name conditions.
    """
    if table.empty:
        return table
    words = {name: table[name].replace(CONDITION_WORDS, regex=True) for name in columns}
    return table.assign(**words)


def say(*paragraphs):
    """Show paragraphs of Markdown in a notebook."""
    display(Markdown("\n\n".join(paragraphs)))


def quoted(text):
    """Return a text as HTML that keeps its lines, for Markdown."""
    return preformatted(html.escape(text, quote=False))


def preformatted(content):
    """Return HTML as a block that keeps its lines and breaks them between words.

    Without the style, JupyterLab breaks them anywhere.
    """
    style = "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere"
    return f'<pre style="{style}">{content}</pre>'


def settings_text(section):
    """Return a caption with the models and problems of a profile's section."""
    models = []
    for source in map(resolve, section.models):
        revision = f" @ {source.revision[:12]}" if source.revision else ""
        models.append(f"{source.name}{revision}")
    problems = f"{describe(section.problems)}, in a {section.format} prompt"
    return f"Models: {'; '.join(models)}. Problems: {problems}."
