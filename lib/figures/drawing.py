"""Draw figures as wide as a page: a style for each series, curves of a head, estimates
with intervals; and save and show a figure.

    figure, axes = grid(3)
    for ax, rows in zip(axes, split(table, "model")):
        interval_rows(ax, rows, "lambda", "span", by="condition")
    keep(run, "lambda_by_span", figure, table)

In a table, the two columns after an estimate are the bounds of its interval. The style
is in paper.mplstyle. A figure is saved as a png, a pdf and the csv of its numbers. Only
a change of the csv that a reader would see makes `keep` write the three again, because
processors round differently. To draw a figure in a new style, delete its png; its csv
stays.
"""

import io
import math
from itertools import cycle
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Image, Markdown, display

from lib.figures.tables import csv_of, shows_same
from lib.files.atomic import write_atomically
from lib.paths import relative_path

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
}
# Figures that have other colours in the paper, by condition: a reader who compares the
# two should find the same curve in the same colour.
PAPER_COLOURS = {
    "fig11": {"mless": "#0072B2", "random": "#E69F00"},
    "fig13": {"none": "#D55E00", "mless": "#009E73"},
}
# The colours of all other series, in their order.
COLOURS = ["#332288", "#999933", "#9F86C0", "#882255", "#4B6A88", "#DDAA33", "#117733"]
# One more marker than colours, so that a combination repeats only after 56 names.
MARKERS = "osDpXP*8"
NO_CHANGE = {"color": "0.35", "linestyle": "--", "linewidth": 0.8, "zorder": 1}
INSERTED_HERE = {"color": "0.35", "linestyle": ":", "linewidth": 1, "zorder": 1}
INSERTED_HERE["label"] = "inserted here"
# The curve without an insertion, which stays visible under the others.
WIDE_AND_PALE_LINE = {"linewidth": 2.2, "alpha": 0.5}
LEGEND_COLUMNS = 5


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


def split(table, *by):
    """Split a table into one per distinct value of these columns, in order of
    appearance.
    """
    return [rows for _, rows in table.groupby(list(by), sort=False)]


def tell_apart(names):
    """Return the label, colour and marker of each series, by name.

    A condition looks the same in every figure. Other series receive the next colour and
    marker in the order of their names, so that no two of them look the same.
    """
    further = zip(cycle(COLOURS), cycle(MARKERS))
    looks = {}
    for name in dict.fromkeys(names):
        known = CONDITION_LOOKS.get(name)
        label, colour, marker = known or (name, *next(further))
        looks[name] = {"label": label, "color": colour, "marker": marker}
    return looks


def token_curves(ax, head, names, colours=None):
    """Draw the attention that each token of a complete prompt receives, a curve per
    condition. The axis ends above the other tokens if the first receives more.

    head: the rows of one panel of `head_curves.received_by_token`. names: the legend's
    text by condition. colours: by condition; None: those of `tell_apart`.
    """
    looks = tell_apart(names)
    for condition, label in names.items():
        values = head.received[head.condition == condition]
        wide = WIDE_AND_PALE_LINE if condition == "none" else {}
        colour = colours[condition] if colours else looks[condition]["color"]
        ax.plot(values.to_numpy(), color=colour, label=label, **wide)
    highest = head.received[head.position > 0].max()
    ax.set(xlabel="Position in the complete prompt", ylabel="Received attention")
    ax.set_ylim(0, 1.05 * highest)
    model, layer, number = head[["model", "layer", "head"]].iloc[0]
    ax.set_title(f"{model}\nLayer {layer:.0f} Head {number:.0f}")


def original_curves(ax, head, names, colours=None):
    """Draw the curves of `token_curves` for the original tokens alone. A dotted line
    marks where the insertion was.
    """
    token_curves(ax, head[head.part != "inserted"], names, colours)
    ax.set_xlabel("Position among the original tokens")
    mark_insertion(ax, head)


def mark_insertion(ax, head):
    """Mark with a dotted line where the insertion was among the original tokens."""
    start = head.position[head.part == "inserted"].min() - 0.5
    ax.axvline(start, **INSERTED_HERE)


def shade_inserted(ax, head, text="slashes", colour="0.9"):
    """Shade the inserted tokens of a complete prompt, and label them with a text."""
    inserted = head.position[(head.part == "inserted") & (head.condition == "mless")]
    ax.axvspan(inserted.min() - 0.5, inserted.max() + 0.5, color=colour, zorder=0)
    top = (inserted.mean(), 0.98)
    data_and_axes = ax.get_xaxis_transform()  # x in data, y as a share of the axis
    ax.text(*top, text, ha="center", va="top", transform=data_and_axes)


def interval_rows(ax, table, value, group, by, order=()):
    """Draw estimates with horizontal intervals: a row for each value of the column
    `group`, from the top, and a series for each value of the column `by`.

    value: the column of the estimates. order: names of series that receive the first
    styles, so that two panels agree in them.
    """
    groups = list(dict.fromkeys(table[group]))
    looks = tell_apart([*order, *table[by]])
    step = 0.7 / max(1, table[by].nunique())
    series = {rows[by].iloc[0]: rows for rows in split(table, by)}
    for index, name in enumerate(name for name in looks if name in series):
        rows = series[name]
        y = rows[group].map(groups.index) + index * step
        lengths = intervals(rows, value)
        ax.errorbar(rows[value], y, xerr=lengths, linestyle="none", **looks[name])
    middle = (0.7 - step) / 2
    ax.set_yticks(middle + np.arange(len(groups)), groups)
    ax.set_ylim(len(groups) - 0.1, -0.4)
    ax.grid(False, axis="y")


def interval_lines(ax, table, x, value, by):
    """Draw estimates with vertical intervals as lines along the column `x`: a series
    for each value of the column `by`, the first one in front.
    """
    looks = tell_apart(table[by])
    for rows in split(table, by)[::-1]:
        lengths = intervals(rows, value)
        ax.errorbar(rows[x], rows[value], yerr=lengths, **looks[rows[by].iloc[0]])
    ax.locator_params(axis="x", integer=True)


def intervals(rows, value):
    """Return the distances from the estimates in the column `value` to their bounds,
    below and above, (2, N), as error bars need them; NaN without an interval.
    """
    column = rows.columns.get_loc(value)
    bounds = rows.iloc[:, column + 1 : column + 3].to_numpy(float)
    return np.abs(bounds.T - rows[value].to_numpy(float))


def keep(run, name, figure, *tables):
    """Add one legend for all panels, save the figure and its tables, and show it.

    The files are run.figures/NAME.png, .pdf and .csv. They are not written again if the
    stored csv shows the same numbers to a reader. Raises InputError for a folder that
    cannot be written.
    """
    _add_legend(figure)
    path = run.figures / name
    csv = csv_of(pd.concat(tables, ignore_index=True))
    pictures = [path.with_suffix(".png"), path.with_suffix(".pdf")]
    has_changed = not shows_same(path.with_suffix(".csv"), csv)
    if has_changed:
        write_atomically(path.with_suffix(".csv"), csv.encode())
    if has_changed or not all(picture.is_file() for picture in pictures):
        for picture in pictures:
            write_atomically(picture, bytes_of(figure, picture.suffix[1:]))
    plt.close(figure)
    display(Image(path.with_suffix(".png"), retina=True))
    display(Markdown(f"Saved as `{relative_path(path)}.png`, `.pdf` and `.csv`."))


def _add_legend(figure):
    """Add a legend above the panels, with each series once."""
    marks = {}
    for ax in figure.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, mark)
    if marks:
        figure.legend(
            marks.values(),
            marks.keys(),
            loc="outside upper center",
            ncols=LEGEND_COLUMNS,
        )


def bytes_of(figure, kind):
    """Return a figure as the bytes of a png or pdf file, without a date."""
    undated = {"CreationDate": None} if kind == "pdf" else None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=undated)
    return picture.getvalue()
