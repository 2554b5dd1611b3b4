"""What a notebook shows: a figure on a page of its own, saved as it is shown, and a table that is rounded."""

import contextlib

import matplotlib.pyplot as plt
from IPython.display import Image, display

from lib.figures.saving import caption, record, save_figure
from lib.figures.style import ROW_HEIGHT, figure_with_rows, name_models, style


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
    """Return columns of a DataFrame, all for none, rounded for reading; the first is the index, gaps are empty.

    `digits` is a number of decimals, or one for each column that it names.
    """
    shown = table[list(columns or table)].round(digits)
    gaps = shown.loc[:, shown.isna().any()].convert_dtypes().astype(object)
    return shown.assign(**gaps.where(gaps.notna(), "")).set_index(shown.columns[0])
