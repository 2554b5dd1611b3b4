"""How a figure is kept: a png, a pdf and the csv of its numbers.

The csv alone decides whether the three are written anew. Processors round differently,
and no file should change for a digit that no reader sees. To draw a figure in a new
look, delete its png: its csv stays.
"""

import io

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Image, Markdown, display

from lib.figures.tables import csv_of, still_says
from lib.files import write_whole
from lib.paths import relative_path

LEGEND_COLUMNS = 5


def keep(run, name, figure, *tables):
    """Give a figure one legend of all panels, save it with its tables in the folder of
    the run's figures unless what is there shows the same numbers, and show it.

    Raises InputError for a folder that cannot be written.
    """
    _add_legend(figure)
    path = run.figures / name
    csv = csv_of(pd.concat(tables, ignore_index=True))
    pictures = [path.with_suffix(".png"), path.with_suffix(".pdf")]
    is_news = not still_says(path.with_suffix(".csv"), csv)
    if is_news:
        write_whole(path.with_suffix(".csv"), csv.encode())
    if is_news or not all(picture.is_file() for picture in pictures):
        for picture in pictures:
            write_whole(picture, bytes_of(figure, picture.suffix[1:]))
    plt.close(figure)
    display(Image(path.with_suffix(".png"), retina=True))
    display(Markdown(f"Saved as `{relative_path(path)}.png`, `.pdf` and `.csv`."))


def _add_legend(figure):
    """Name each series once, above the panels."""
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
    """Return a figure as the bytes of a kind of file."""
    undated = {"CreationDate": None} if kind == "pdf" else None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=undated)
    return picture.getvalue()
