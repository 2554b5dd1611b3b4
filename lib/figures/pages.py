"""What a notebook shows: a figure on a page of its own, saved as it is shown, and a table that is rounded."""

import contextlib

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Image, display

from lib.figures.saving import caption, record, save_figure
from lib.figures.style import ROW_HEIGHT, figure_with_rows, name_models, style
from lib.statistics import told

SMALLEST = 0.001  # p-value that is told
SIGNED = ("effect", "against others")  # differences
UNFOLDED = {"width": 1000, "max_columns": None, "max_colwidth": None}  # else the length of a number moves lines


@contextlib.contextmanager
def page(run, name, table, *, rows=1, columns=1, height=ROW_HEIGHT, layout=None, note="", models=()):
    """Yield axes (rows, columns) to draw on, then write the caption, save the figure with its table and show it.

    `models` names the model of each panel, or of each column: in the caption when all are one, else under the panels.
    `layout` makes other axes than a grid. Files that say the same stay as they are: see `saving`.
    """
    with style():
        figure, axes = layout() if layout else figure_with_rows(rows, columns, height)
        try:
            yield axes
            caption(figure, name_models(axes, models) + note)
            record(run.results, name, save_figure(figure, run.figures, name, table))
        finally:
            plt.close(figure)
    display(Image(run.figures / f"{name}.png", retina=True))


def curves_of(table, by, estimate):
    """Return what several curves are drawn from: each value of the column `by` -> (estimates, lows, highs)."""
    groups = table.groupby(by, sort=False)
    return {name: (part[estimate].to_numpy(), part.low.to_numpy(), part.high.to_numpy()) for name, part in groups}


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame, all for none, rounded to so many digits, or to those of each column that is named.

    The first column is the index, gaps are empty. A p-value has three. Two columns that end with low and high hold the
    ends of the one before them, and become one column with it. Of a table without rows nothing is shown.
    """
    if table.empty:
        return None
    for name, value in UNFOLDED.items():
        pd.set_option(f"display.{name}", value)
    shown = _with_ends(table[list(columns or table)].rename_axis(columns=None))
    told = {name: shown[name].map(_p_value) for name in ("p", "p_value", "p_holm") if name in shown}
    shown = shown.assign(**told).round(digits)
    for name in shown.columns[shown.isna().any()]:
        places = digits.get(name, 2) if isinstance(digits, dict) else digits
        shown[name] = [_or_empty(value, places) for value in shown[name].convert_dtypes()]
    return shown.set_index(shown.columns[0])


def _with_ends(table):
    """Return the table with a column of texts for each estimate that is followed by its ends."""
    names = list(table)
    for name, low, high in zip(names, names[1:], names[2:], strict=False):
        if low.endswith("low") and high.endswith("high"):
            signed = "+" if name in SIGNED else ""
            rows = zip(table[name], table[low], table[high], strict=True)
            texts = ["" if pd.isna(row[0]) else told(*row, signed) for row in rows]
            table = table.assign(**{name: texts}).drop(columns=[low, high])
    return table


def _p_value(p):
    return f"< {SMALLEST}" if p < SMALLEST else _or_empty(p, 3)


def _or_empty(value, places):
    """Return a gap as nothing, and a fraction with as many places as the others of its column."""
    if pd.isna(value):
        return ""
    return f"{value:.{places}f}" if isinstance(value, float) else value


def say(*sentences):
    """Print sentences, each on a line of its own, which its length does not fold."""
    print(*sentences, sep="\n")
