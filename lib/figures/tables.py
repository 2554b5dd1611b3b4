"""What a notebook shows beside pictures: tables in few digits, sentences, code."""

import ast
import html
import re
import textwrap

import pandas as pd
from IPython.display import HTML, Markdown, display

from lib.figures.compare import P_VALUE
from lib.models.names import resolve
from lib.paths import ROOT
from lib.prompts.problems import describe
from lib.statistics.rounding import format_interval

SMALLEST_SHOWN_P = 1e-3  # a smaller p-value is printed as less than this
SIGNED = ("effect", "against others")  # differences, which are printed with a sign
LOW = re.compile(r"(?<![^\W_])low(?![^\W_])")  # a word of the name of a lower end
QUOTED_LINE = 80  # letters; JupyterLab breaks a longer line within a word
MOST_ROWS = 20  # of a table that is shown whole; a longer one is folded to a line
# Without these the length of a number would decide where a line breaks.
UNFOLDED = {"width": 1000, "max_columns": None, "max_colwidth": None}


class FoldedTable:
    """A long table as a reader may unfold it in a notebook."""

    def __init__(self, table):
        self.table = table

    def __repr__(self):
        return repr(self.table)

    def _repr_html_(self):
        table = self.table.to_html(notebook=True)
        summary = f"A table of {len(self.table)} rows: {', '.join(self.table)}"
        return f"<details><summary>{summary}</summary>{table}</details>"


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame, all for none, rounded to so many digits, or to
    those of each column that is named.

    The first column is the index, printed once where it repeats; gaps are empty. A
    p-value has three digits. An estimate and its ends become one column. A table of
    more than MOST_ROWS is folded, and of one without rows nothing is shown.
    """
    if table.empty:
        return None
    for name, value in UNFOLDED.items():
        pd.set_option(f"display.{name}", value)
    shown = table[list(columns or table)].rename_axis(columns=None)
    shown = shown.reset_index(drop=True)

    # An estimate and the two columns of its ends become one column of texts.
    for name, low, high in triples(list(shown)):
        sign = "+" if name in SIGNED else ""
        ends = zip(shown[name], shown.pop(low), shown.pop(high), strict=True)
        shown[name] = [
            "" if pd.isna(interval[0]) else format_interval(*interval, sign)
            for interval in ends
        ]

    # Every other number is rounded as its column is.
    for name in shown:
        places = digits.get(name, 2) if isinstance(digits, dict) else digits
        values = shown[name]
        if values.isna().any():
            values = values.convert_dtypes()  # counts stay whole beside gaps
        shown[name] = [_cell(name, value, places) for value in values]

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
    """Return a text as a Markdown block that keeps its lines, long ones broken between
    words.
    """
    lines = [
        textwrap.fill(line, QUOTED_LINE, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    ]
    return textwrap.indent("\n".join(lines), "    ")


def settings_text(section):
    """Return which models and problems a section of a profile names, as a caption says
    it.
    """
    models = []
    for source in map(resolve, section.models):
        revision = f" @ {source.revision[:12]}" if source.revision else ""
        weights = f", {source.weights}" if source.weights else ""
        models.append(f"{source.name}{revision}{weights}")
    size = f"a sample of {section.limit}" if section.limit else "all"
    problems = f"{describe(section.problems)}, {size}, in a {section.format} prompt"
    return f"Models: {'; '.join(models)}. Problems: {problems}."


def unfold(*places):
    """Return functions, each named as file:function, folded to a line each.

    The files are read and not imported: a notebook that draws what is stored would else
    load the libraries that run a network, only to show a function.
    """
    folded = ""
    for place in places:
        file, _, name = place.partition(":")
        text = (ROOT / file).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                lines = ast.get_source_segment(text, node, padded=True)
                code = html.escape(textwrap.dedent(lines or ""))
                summary = f"The code: <code>{name}</code> in <code>{file}</code>"
                folded += (
                    f"<details><summary>{summary}</summary><pre>{code}</pre></details>"
                )
    return HTML(folded)
