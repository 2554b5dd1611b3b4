"""Show tables in few digits and sentences in a notebook, and compare a table with its
file as a reader would.

Processors round differently: the same run on another machine differs in the sixth
digit, and no file should be rewritten because of that.
"""

import io
import re
import statistics
import textwrap

import pandas as pd
from IPython.display import Markdown, display

from lib.models.names import resolve
from lib.prompts.problems import describe
from lib.statistics.rounding import decimals_of, format_interval

# Relative difference that no reader sees.
SAME = 0.01
SAME_OF_COLUMN = 0.001
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")
SMALLEST_SHOWN_P = 1e-3  # a smaller p-value is printed as less than this
MOST_ROWS = 20  # of a table that is shown unfolded
SIGNED = ("effect", "against others")  # differences, which are printed with a sign
# What a condition begins with, and its word in tables.
WORDS = {r"^mless\b": "slashes", r"^mful\b": "he", r"^random\b": "sentence"}
LOW = re.compile(r"(?<![^\W_])low(?![^\W_])")  # part of the name of a lower bound

# Otherwise the length of a number would decide where a line breaks, and rows and
# columns would be omitted.
pd.set_option("display.width", 1000)
pd.set_option("display.max_columns", None)
pd.set_option("display.max_colwidth", None)
pd.set_option("display.max_rows", None)


class FoldedTable:
    """A long table that a reader can unfold in a notebook."""

    def __init__(self, table):
        self.table = table

    def __repr__(self):
        return repr(self.table)

    def _repr_html_(self):
        summary = f"<summary>A table of {len(self.table)} rows</summary>"
        return f"<details>{summary}{self.table.to_html()}</details>"


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame (None: all), rounded to `digits` decimals.

    The first column is the index, printed once for repeated values; missing values are
    empty. A p-value has three decimals. An estimate and its bounds become one column. A
    table with more than MOST_ROWS rows is folded, and one without rows is not shown.
    """
    if table.empty:
        return None
    shown = table[list(columns or table)].rename_axis(columns=None)
    shown = shown.reset_index(drop=True)

    # An estimate and its two bounds become one column of texts.
    for name, low, high in triples(shown.columns):
        sign = "+" if name in SIGNED else ""
        ends = zip(shown[name], shown.pop(low), shown.pop(high), strict=True)
        shown[name] = _intervals(list(ends), sign)

    # All numbers of a column have the same number of decimals.
    for name in shown:
        values = shown[name]
        if values.isna().any():
            values = (
                values.convert_dtypes()
            )  # counts stay integers if values are missing
        shown[name] = [_cell(name, value, digits) for value in values]

    first = shown.pop(shown.columns[0])
    shown = shown.set_index(first.where(first != first.shift(), ""))
    return FoldedTable(shown) if len(shown) > MOST_ROWS else shown


def _intervals(rows, sign):
    """Return (estimate, low, high) rows as texts with the decimals that are usual among
    them; a missing estimate is empty.
    """
    known = [row for row in rows if not pd.isna(row[0])]
    decimals = [decimals_of(low, high, sign) for _, low, high in known]
    usual = statistics.median_low(decimals) if decimals else None
    return [
        "" if pd.isna(row[0]) else format_interval(*row, sign, usual) for row in rows
    ]


def triples(names):
    """Return (estimate, low, high) for each column that two bounds follow."""
    following = zip(names, names[1:], names[2:], strict=False)
    return [
        (name, low, high)
        for name, low, high in following
        if LOW.search(low) and high == LOW.sub("high", low)
    ]


def _cell(name, value, places):
    """Return a missing value as nothing, and a fraction with the decimals of its
    column.
    """
    if pd.isna(value):
        return ""
    if P_VALUE.fullmatch(name):
        return f"< {SMALLEST_SHOWN_P}" if value < SMALLEST_SHOWN_P else f"{value:.3f}"
    return f"{value:z.{places}f}" if isinstance(value, float) else value


def in_words(table):
    """Return a table that names the conditions as the legends of figures do, such as
    slashes:25 for mless:25. A table without rows may lack the column.
    """
    if table.empty:
        return table
    return table.assign(condition=table.condition.replace(WORDS, regex=True))


def say(*paragraphs):
    """Show paragraphs as prose."""
    display(Markdown("\n\n".join(paragraphs)))


def quoted(text):
    """Return a text as a Markdown block that keeps its lines."""
    return textwrap.indent(text, "    ")


def settings_text(section):
    """Return the caption that names the models and problems of a profile's section."""
    models = []
    for source in map(resolve, section.models):
        revision = f" @ {source.revision[:12]}" if source.revision else ""
        models.append(f"{source.name}{revision}")
    problems = f"{describe(section.problems)}, in a {section.format} prompt"
    return f"Models: {'; '.join(models)}. Problems: {problems}."


def csv_of(table):
    """Return a table as the text of its file."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def still_says(path, csv):
    """Return whether the stored file shows the same as this text."""
    try:
        old = pd.read_csv(path)
    except (OSError, ValueError):  # not there, or damaged
        return False
    return same(old, pd.read_csv(io.StringIO(csv)))


def same(old, new):
    """Return whether two tables look the same to a reader.

    Texts and counts have to be equal; fractions may differ by a hundredth of
    themselves, or by a thousandth of the largest in their column. P-values are ignored.
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
    """Return two columns divided by the old one's largest number; counts as texts."""
    kinds = {old.dtype.kind, new.dtype.kind}
    if kinds == {"i"}:
        return old.astype(str), new.astype(str)
    if kinds <= {"i", "f"}:
        return old / old.abs().max(), new / old.abs().max()
    return old, new
