"""A figure on disk: png, pdf and the csv behind it, with its caption."""

import io
import os
import textwrap
from pathlib import Path

from lib.errors import InputError
from lib.figures.style import style


def caption(figure, text):
    """Write a small line below the axes (model, revision, n, dtype) and return the text."""
    wrapped = textwrap.fill(text, int(22 * figure.get_figwidth()))
    figure.set_figheight(figure.get_figheight() + 0.12 * (wrapped.count("\n") + 1))  # the axes keep theirs
    return figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=6, color="0.3")


def save_figure(figure, folder, name, table):
    """Write name.png, name.pdf and name.csv (the DataFrame `table`) and return the three paths.

    The same data give the same bytes. Raises InputError naming the folder when it cannot be written.
    """
    folder, contents = Path(folder), {}
    for kind, varying in (("png", "Software"), ("pdf", "CreationDate")):
        buffer = io.BytesIO()
        with style():
            figure.savefig(buffer, format=kind, dpi=160, metadata={varying: None})
        contents[kind] = buffer.getvalue()
    contents["csv"] = table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_replace(folder / f"{name}.{kind}", data) for kind, data in contents.items()]
    except OSError as error:
        raise InputError(f"cannot write figure {name} to {folder}: {error.strerror or error}") from error


def _replace(path, data):
    """Write bytes beside `path` and move them over it, so that a reader never meets half a file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        partial.write_bytes(data)
        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
