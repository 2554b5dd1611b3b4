"""A figure on disk: png, pdf and the csv behind it, written anew only when a number or the drawing differs."""

import io
import json
import textwrap
from pathlib import Path

import pandas as pd
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from lib.errors import InputError
from lib.figures.comparing import TOLERANCE, drawing, largest_difference, same_drawing
from lib.figures.style import style
from lib.paths import write_json, write_whole

RECORD = "figures.json"  # in a run's results: how each of its figures compared
DPI = 200  # twice what a page shows: sharp on every screen
ABSENT = "no table was there"
CHARACTERS = 22  # of a caption's line in an inch, where none of them is wide
REDRAWN = "the drawing differs"


def caption(figure, text):
    """Write small lines below the axes (model, revision, n, dtype), as wide as the figure, and return the text."""
    usual = figure.dpi
    figure.set_dpi(DPI)  # letters have whole pixels: only so are they as wide as in the file
    label = figure.supxlabel("", x=0.01, ha="left", fontsize=6, color="0.3")
    for characters in range(int(CHARACTERS * figure.get_figwidth()), 0, -1):
        label.set_text(textwrap.fill(text, characters))
        if label.get_window_extent().x1 <= 0.995 * figure.bbox.x1:
            break
    figure.set_dpi(usual)
    figure.set_figheight(figure.get_figheight() + 0.12 * (label.get_text().count("\n") + 1))  # the axes keep theirs
    return label


def save_figure(figure, folder, name, table):
    """Write name.png, name.pdf and name.csv (the DataFrame `table`) unless those in the folder say the same.

    Returns how they compared: the `largest` difference of the numbers, `where` it is, and why files were written
    (`changed`, "" when all stayed): see `comparing`. Raises InputError naming the folder when it cannot be written.
    """
    path, drawn = Path(folder) / name, drawing(figure)
    csv = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    largest, where = _difference(path.with_suffix(".csv"), csv)
    if largest > TOLERANCE:
        found, kinds = {"changed": where}, ("csv", "png", "pdf")
    elif not (path.with_suffix(".pdf").is_file() and same_drawing(_drawn_before(path.with_suffix(".png")), drawn)):
        found, kinds = {"changed": REDRAWN}, ("png", "pdf")
    else:
        found, kinds = {"changed": "", "largest": largest, "where": where}, ()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write figure {name} to {folder}: {error.strerror or error}") from error
    for kind in kinds:
        write_whole(path.with_suffix(f".{kind}"), csv.encode() if kind == "csv" else _picture(figure, kind, drawn))
    return found


def _difference(path, csv):
    try:
        return largest_difference(pd.read_csv(path), pd.read_csv(io.StringIO(csv)))
    except (OSError, ValueError):  # missing or damaged: as good as not there
        return float("inf"), ABSENT


def _drawn_before(path):
    try:
        with Image.open(path) as picture:
            return json.loads(picture.info["Drawing"])
    except (OSError, ValueError, KeyError):
        return {"looks": "", "places": []}


def _picture(figure, kind, drawn):
    """Return the figure as bytes, the same for the same data; a png carries what is drawn."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, dpi=DPI, metadata={"CreationDate": None} if kind == "pdf" else None)
    return buffer.getvalue() if kind == "pdf" else _fewer_colours(buffer, drawn)


def _fewer_colours(buffer, drawn):
    """Return a png with 256 colours, which no eye tells from the original, at a third of its size."""
    small, text = io.BytesIO(), PngInfo()
    text.add_text("Drawing", json.dumps(drawn), zip=True)
    with Image.open(buffer) as picture:
        few = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(small, format="png", pnginfo=text, optimize=True)
    return small.getvalue()


def record(results, name, found):
    """Note in a run's results how a figure compared."""
    results.mkdir(parents=True, exist_ok=True)
    write_json(results / RECORD, recorded(results) | {name: found})


def recorded(results):
    """Return how the figures of a run compared, by name; what a killed run left is no figure."""
    try:
        return json.loads((results / RECORD).read_text())
    except (OSError, ValueError):
        return {}


def agreement(results):
    """Return the last words of a run: how many figures agree, where they differ most, and what was written and why."""
    found = recorded(results)
    same = {name: row for name, row in found.items() if not row["changed"]}
    new = [name for name, row in found.items() if row["changed"] == ABSENT]
    text = f"{len(same)} of {len(found)} figures agree with the files that were there"
    if differing := {row["largest"]: f"{name}: {row['where']}" for name, row in same.items() if row["largest"]}:
        largest = max(differing)
        text += f"; the largest difference is {100 * largest:.1g} % of an interval or a number ({differing[largest]})"
    if new:
        text += f"; {len(new)} new"
    changed = [f"{name} was drawn anew: {row['changed']}" for name, row in found.items() if name not in [*same, *new]]
    return "\n".join([text + ".", *changed])
