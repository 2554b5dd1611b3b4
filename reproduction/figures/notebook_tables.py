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
from lib.prompts.conditions import is_chat
from lib.prompts.problems import describe
from lib.statistics.intervals import decimals_of, format_interval

# By how much numbers may differ in tables that look the same: parts of the number, of
# the width of its interval, and of the largest number in a column without intervals.
OF_NUMBER = 2e-5
OF_INTERVAL = 5e-4
OF_COLUMN = 1e-4
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")

# For figures and documents, which have no room for complete names.
SHORT_NAMES = {
    "Qwen2.5-Coder-1.5B-Instruct": "Qwen 1.5B",
    "Qwen2.5-Coder-0.5B-Instruct": "Qwen 0.5B",
    "gemma-3-270m": "Gemma 270M",
    "SmolLM2-135M-Instruct": "SmolLM 135M",
}

# The forms of prompts, by the setting `format` of a profile's section.
FORMS = {
    "plain": "a plain prompt",
    "chat": "a chat prompt",
    "authors": "the prompt of the authors' code",
    "authors-chat": "the prompt of the authors' code in a chat",
}


def short(model: str) -> str:
    """Return a model's short name, or the name of a model that has none."""
    return SHORT_NAMES.get(model, model)


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
    """Return whether two tables have the same numbers, except for how processors round.

    Texts, counts and missing values have to be equal. Another number may differ by
    OF_NUMBER of itself plus OF_INTERVAL of the width of its interval, which are the two
    columns after an estimate, or without an interval OF_COLUMN of the largest number in
    its column.

    Processors differ by less. The figures and verdicts of the profile demo were
    computed with the instructions of AVX-512, AVX2 and SSE (ATEN_CPU_CAPABILITY,
    ONEDNN_MAX_CPU_ISA, MKL_ENABLE_INSTRUCTIONS). λ and its bounds differed by 6e-5 of
    their interval. Where rounding moves one activation across an edge, shares of
    activations differed by 3e-4 of their interval, and a histogram by 5e-5 of its
    largest bin. Received attention differed in the last of the six stored digits.
    """
    if list(old) != list(new) or len(old) != len(new):
        return False
    tolerances = _tolerances(old)
    for name in old:
        before, now = old[name], new[name]
        is_same = (before == now) | (before.isna() & now.isna())
        if sorted(before.dtype.kind + now.dtype.kind) in (["f", "f"], ["f", "i"]):
            is_same |= (before - now).abs() <= tolerances[name]
        if not is_same.all():
            return False
    return True


def _tolerances(table):
    """Return by how much each number of a table may differ; 0 if it is not finite."""
    numbers = table.select_dtypes("number")
    sizes = numbers.where(np.isfinite(numbers)).abs()
    slack = sizes * 0 + OF_COLUMN * sizes.max()
    for name, low, high in intervals_of(list(numbers)):
        width = OF_INTERVAL * (numbers[high] - numbers[low]).where(np.isfinite, 0)
        slack[name] = slack[low] = slack[high] = width
    return (OF_NUMBER * sizes + slack).fillna(0)


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


caveat = ""  # a line above each table and figure of a notebook


def text_describes(described, run):
    """Set the caveat above the tables and figures that follow in a notebook, if `run`
    is not the profile whose results its text describes.

    described: the name of that profile. run: the Profile that is shown.
    """
    global caveat
    caveat = ""
    if run.name != described:
        caveat = (
            f"*Results of `{run.name}`. The text describes those of `{described}`.*"
        )


def say_caveat():
    """Show the caveat, if there is one."""
    if caveat:
        say(caveat)


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame as `rounded` does; folded if there are more than
    MAX_UNFOLDED_ROWS rows, and None if there is none. The caveat is shown first; with
    it, a table without rows is said to be left out, because the text mentions it.
    """
    if table.empty:
        if caveat:
            say(f"{caveat} *No table: it would have no rows.*")
        return None
    say_caveat()
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


def side_by_side(table, value, rows):
    """Return the estimates of a column with their intervals as texts, in a row for each
    value of the columns `rows` and a column for each model.

    The two columns after `value` are the bounds.
    """
    column = table.columns.get_loc(value)
    estimates = table.iloc[:, column : column + 3].itertuples(index=False)
    texts = table.assign(text=interval_texts(list(estimates)))
    wide = texts.pivot_table("text", rows, "model", aggfunc="first", sort=False)
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
    """Return a caption with the models and problems of a profile's section, and the
    form of the prompts.
    """
    models = []
    for source in map(resolve, section.models):
        revision = f" @ {source.revision[:12]}" if source.revision else ""
        models.append(f"{source.name}{revision}")
    problems = f"{describe(section.problems)}, in {prompt_form(section)}"
    return f"Models: {'; '.join(models)}. Problems: {problems}."


def prompt_form(section):
    """Return the form of a section's prompts, such as "a chat prompt"."""
    form = FORMS[section.format]
    if not is_chat(section.format):
        return form
    sources = [*map(resolve, section.models)]
    plain = [one.name for one in sources if one.chat_template is False]
    if any(one.chat_template is None for one in sources):
        plain.append("any other model without a chat template")
    return f"{form}, but a plain one for {' and '.join(plain)}" if plain else form
