"""How a figure is kept: a png, a pdf and the csv of its numbers.

The csv alone decides whether the three are written anew. Processors round differently,
and no file should change for a digit that no reader sees. To draw a figure in a new
look, delete its png: its csv stays.
"""

import io

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Image, Markdown, display

from lib.figures.compare import MISSING, RECORD, csv_of, recorded, why_anew
from lib.paths import relative_path, write_json, write_whole

LEGEND_COLUMNS = 5


def keep(run, name, figure, *tables):
    """Give a figure one legend of all panels, save it with its tables in the folder of
    the run's figures unless what is there shows the same numbers, and show it.

    Raises InputError for a folder that cannot be written.
    """
    _add_legend(figure)
    path = run.figures / name
    csv = csv_of(pd.concat(tables, ignore_index=True))
    reason = why_anew(path.with_suffix(".csv"), csv)
    if reason:
        write_whole(path.with_suffix(".csv"), csv.encode())
    for kind in ("png", "pdf"):
        picture = path.with_suffix(f".{kind}")
        if not reason and not picture.is_file():
            reason = MISSING
        if reason:
            write_whole(picture, _drawn(figure, kind))
    plt.close(figure)

    write_json(run.results / RECORD, recorded(run.results) | {name: reason})
    display(Image(path.with_suffix(".png"), retina=True))
    display(Markdown(f"Saved as `{relative_path(path)}.png`, `.pdf` and `.csv`."))


def _add_legend(figure):
    """Name each series once, above the panels."""
    marks = {}
    for ax in figure.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, mark)
    place = {"loc": "outside upper center", "ncols": LEGEND_COLUMNS}
    if marks:
        figure.legend(marks.values(), marks.keys(), **place)


def _drawn(figure, kind):
    """Return a figure as the bytes of a kind of file."""
    undated = {"CreationDate": None} if kind == "pdf" else None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=undated)
    return picture.getvalue()
