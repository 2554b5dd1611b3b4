"""How a figure is kept: a png, a pdf and the csv of its numbers.

The csv alone decides whether the three are written anew. Processors round differently,
and no file should change for a digit that no reader sees. To draw a figure in a new
look, delete its png: its csv stays.
"""

import io

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import Image, Markdown, display

from lib.errors import InputError
from lib.figures.compare import MISSING, RECORD, difference, recorded
from lib.paths import relative_path, write_json, write_whole

LEGEND_COLUMNS = 5


def keep(run, name, figure, *tables):
    """Give a figure one legend of all panels, save it with its tables in the folder of
    the run's figures unless what is there shows the same numbers, and show it.

    Raises InputError for a folder that cannot be written.
    """
    _add_legend(figure)
    path = run.figures / name
    numbers = pd.concat(tables, ignore_index=True)
    csv = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    reason = _why_anew(path.with_suffix(".csv"), csv)
    pictures = [path.with_suffix(f".{kind}") for kind in ("pdf", "png")]
    if reason:
        _write(path.with_suffix(".csv"), csv.encode())
    if reason or not all(picture.is_file() for picture in pictures):
        reason = reason or MISSING
        for picture in pictures:
            _write(picture, _drawn(figure, picture))
    plt.close(figure)

    run.results.mkdir(parents=True, exist_ok=True)
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


def _why_anew(path, csv):
    """Return why the table of a figure is to be written, "" to keep it."""
    try:
        old = pd.read_csv(path)
    except (OSError, ValueError):  # not there, or damaged
        return MISSING
    return difference(old, pd.read_csv(io.StringIO(csv)))


def _drawn(figure, path):
    """Return a figure as the bytes of the kind of file that a path names."""
    kind = path.suffix.removeprefix(".")
    undated = {"CreationDate": None} if kind == "pdf" else None
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=undated)
    return picture.getvalue()


def _write(path, content):
    """Write a file of a figure, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"cannot write figure {path.stem} to {path.parent}: {reason}"
        ) from error
    write_whole(path, content)
