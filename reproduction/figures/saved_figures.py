"""The style of all figures, and how they are saved with their numbers.

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
from itertools import cycle
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Image, Markdown, display

from lib.files.atomic import write_atomically
from lib.paths import relative_path
from reproduction.figures.notebook_tables import csv_of, say_caveat, shows_same

# A reader's matplotlib configuration has no effect.
plt.style.use(["default", Path(__file__).with_name("paper.mplstyle")])

PAGE_WIDTH = 7.2  # inches
# Name, colour and marker of a condition: Okabe and Ito's palette with a lighter green,
# so that the grey values differ, too. No marker looks like an arrow.
CONDITION_LOOKS = {
    "none": ("none", "#0072B2", "o"),
    "mless": ("slashes", "#D55E00", "s"),
    "mful": ("he", "#5FBF9B", "p"),
    "random": ("sentence", "#000000", "D"),
    "arm": ("ARM", "#CC79A7", "H"),
    "letters": ("letters", "#56B4E9", "P"),
    "gap": ("gap", "#7F7F7F", "X"),
}
# Figures that have other colours in the paper, by condition: a reader who compares the
# two should find the same curve in the same colour.
PAPER_COLOURS = {
    "fig11": {"mless": "#0072B2", "random": "#E69F00"},
    "fig13": {"none": "#D55E00", "mless": "#009E73"},
}
# The colours and markers of models, in their order. There is one more marker than
# colours, so that a combination repeats only after 56 names.
COLOURS = ["#332288", "#999933", "#9F86C0", "#882255", "#4B6A88", "#661100", "#117733"]
MARKERS = "osDpXP*8"
# Those of series that are neither models nor conditions: a colour that means a model in
# one figure means nothing else in another.
OTHER_COLOURS = ["#E69F00", "#009E73", "#7A4A00", "#C51B7D", "#003C30"]
OTHER_MARKERS = "dh*8"
NO_CHANGE = {"color": "0.35", "linestyle": "--", "linewidth": 0.8, "zorder": 1}
# A curve under the others, such as that without an insertion, which stays visible.
WIDE_AND_PALE_LINE = {"linewidth": 2.2, "alpha": 0.5, "zorder": 1.5}


def grid(count=1, columns=None, height=1.9, **options):
    """Return a figure as wide as a page and its axes (count,), in one row if there are
    at most three, else in rows of two.

    columns: axes per row, if others are wanted. height: of a row, in inches. options:
    of `matplotlib.pyplot.subplots`.
    """
    columns = columns or (count if count <= 3 else 2)
    rows = math.ceil(count / columns)
    size = (PAGE_WIDTH, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, **options)
    for ax in axes.flat[count:]:
        ax.remove()
    return figure, axes.flat[:count]


def tell_apart(names, models=False):
    """Return the label, colour and marker of each series, by name.

    A condition looks the same in every figure. Other series receive the next colour and
    marker in the order of their names, so that no two of them look the same. models:
    whether these are models, whose colours no other series has.
    """
    colours = COLOURS if models else OTHER_COLOURS
    markers = MARKERS if models else OTHER_MARKERS
    further = zip(cycle(colours), cycle(markers))
    looks = {}
    for name in dict.fromkeys(names):
        known = CONDITION_LOOKS.get(name)
        label, colour, marker = known or (name, *next(further))
        looks[name] = {"label": label, "color": colour, "marker": marker}
    return looks


LEGEND_COLUMNS = 5


def keep(run, name, figure, *tables, prompts=None):
    """Add one legend for all panels, save the figure and its tables, and show it.

    prompts: what form the prompts have, which is the title of the legend.

    The files are run.figures/NAME.png, .pdf and .csv. They are not written again if the
    stored csv shows the same numbers to a reader. Raises InputError for a folder that
    cannot be written.
    """
    _drop_labels_without_numbers(figure)
    _add_legend(figure, prompts)
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
    say_caveat()
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


def _add_legend(figure, title):
    """Add a legend with a title above the panels, with each series once."""
    marks = {}
    for ax in figure.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, mark)
    if marks:
        rows = math.ceil(len(marks) / LEGEND_COLUMNS)
        columns = math.ceil(len(marks) / rows)  # no row with a single series
        place = {"loc": "outside upper center", "ncols": columns, "title": title}
        figure.legend(marks.values(), marks.keys(), **place)


def bytes_of(figure, kind):
    """Return a figure as the bytes of a png or pdf file, without a date."""
    undated = {"CreationDate": None} if kind == "pdf" else None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=undated)
    return picture.getvalue()
