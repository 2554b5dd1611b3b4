"""Save a figure with its numbers, and show it in a notebook.

    figure, axes = grid(3)
    for ax, rows in zip(axes, split(table, "model")):
        interval_rows(ax, rows, "lambda", "span", by="condition")
    keep(run, "lambda_by_span", figure, table)

A figure is saved as a png, a pdf and the csv of its numbers. Only a change of the csv
that a reader would see makes `keep` write the three again, because processors round
differently. To draw a figure in a new style, delete its png; its csv stays.
"""

import io
import math

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Image, Markdown, display

from lib.figures.table_files import csv_of, shows_same
from lib.files.atomic import write_atomically
from lib.paths import relative_path

LEGEND_COLUMNS = 5


def keep(run, name, figure, *tables):
    """Add one legend for all panels, save the figure and its tables, and show it.

    The files are run.figures/NAME.png, .pdf and .csv. They are not written again if the
    stored csv shows the same numbers to a reader. Raises InputError for a folder that
    cannot be written.
    """
    _drop_labels_without_numbers(figure)
    _add_legend(figure)
    path = run.figures / name
    csv = csv_of(pd.concat(tables, ignore_index=True))
    pictures = [path.with_suffix(".png"), path.with_suffix(".pdf")]
    has_changed = not shows_same(path.with_suffix(".csv"), csv)
    if has_changed or not all(picture.is_file() for picture in pictures):
        for picture in pictures:
            write_atomically(picture, bytes_of(figure, picture.suffix[1:]))
    if has_changed:
        # Last, so that a run that stopped before draws the pictures again.
        write_atomically(path.with_suffix(".csv"), csv.encode())
    plt.close(figure)
    display(Image(path.with_suffix(".png"), retina=True))
    display(Markdown(f"Saved as `{relative_path(path)}.png`, `.pdf` and `.csv`."))


def _drop_labels_without_numbers(figure):
    """Remove the labels of axes whose numbers are those of another panel."""
    for ax in figure.axes:
        if not ax.xaxis.get_tick_params().get("labelbottom", True):
            ax.set_xlabel("")
        beside = ax.yaxis.get_tick_params()
        # A bar of colours has its numbers at the right.
        if not beside.get("labelleft", True) and not beside.get("labelright", False):
            ax.set_ylabel("")


def _add_legend(figure):
    """Add a legend above the panels, with each series once."""
    marks = {}
    for ax in figure.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, mark)
    if marks:
        rows = math.ceil(len(marks) / LEGEND_COLUMNS)
        columns = math.ceil(len(marks) / rows)  # no row with a single series
        place = {"loc": "outside upper center", "ncols": columns}
        figure.legend(marks.values(), marks.keys(), **place)


def bytes_of(figure, kind):
    """Return a figure as the bytes of a png or pdf file, without a date."""
    undated = {"CreationDate": None} if kind == "pdf" else None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=undated)
    return picture.getvalue()
