"""A figure on a page of its own: panels, one legend above, one caption below, saved as
it is shown.

A figure is a png, a pdf and the csv of its numbers. The csv alone decides whether the
three are written anew (`lib.figures.compare`). To draw a figure in a new look, delete
its png.
"""

import contextlib
import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Image, display
from PIL import Image as Pixels

from lib.errors import InputError
from lib.figures.compare import MISSING, RECORD, difference, recorded
from lib.figures.looks import HEIGHT, STYLE, WIDTH
from lib.models.names import resolve
from lib.paths import relative_path, write_json, write_whole
from lib.prompts.problems import describe

DPI = 200  # twice what a page shows: sharp on every screen
PNG_COLOURS = 256  # of a png: no eye sees fewer, at a third of the size
CAPTION_CHARACTERS = 190  # of a line
LEGEND_CHARACTERS = 145  # of a line
MARK_CHARACTERS = 8  # as wide as which a mark of the legend is
MOST_COLUMNS = 6  # of the legend
THIS_RUN = "this run"  # in a column `source`, beside what the paper reports


@dataclass(frozen=True)
class Layout:
    """Where the panels of a page stand, and what is written beside and below them."""

    panels: int = 1
    each: int = 1  # of `panels`: how many a group of rows has
    columns: int | None = None  # as many as panels up to three, else two
    # Rows of panels' numbers, instead of columns; "." is an empty place.
    mosaic: list[list[Any]] | None = None
    height: float = HEIGHT  # inches, of a row of panels
    heights: Sequence[float] | None = None  # of the rows, to each other
    widths: Sequence[float] | None = None  # of the columns, to each other
    ylabel: str = ""  # of the first column
    note: str = ""  # the end of the caption

    def rows(self) -> list[list[Any]]:
        """Return the rows of the page, as lists of panels' numbers."""
        if self.mosaic:
            return self.mosaic
        columns = self.columns or (self.panels if self.panels <= 3 else 2)
        places: list[Any] = [
            *range(self.panels),
            *["."] * (-self.panels % columns),
        ]
        starts = range(0, self.panels, columns)
        return [places[start : start + columns] for start in starts]


ONE_PANEL = Layout()


@contextlib.contextmanager
def page(run, name, tables, part, layout=ONE_PANEL):
    """Yield axes to draw on, (panels,); then add legend and caption, save the figure
    with its tables, and show it.

    part: the section of the profile whose models and problems the caption names, None
    for the models of all; tables: the one that the caption is about, and others of the
    figure. Files whose csv says the same stay; without panels there is no figure.
    Raises InputError for a folder that cannot be written.
    """
    if not layout.panels:
        yield np.empty(0, dtype=object)
        return
    rows = layout.rows()
    size = (WIDTH, layout.height * len(rows))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplot_mosaic(
            rows,
            figsize=size,
            width_ratios=layout.widths,
            height_ratios=layout.heights,
        )
        try:
            yield np.array([axes[number] for number in range(layout.panels)])
            for ax in axes.values():
                place = ax.get_subplotspec()
                if layout.ylabel and place and place.is_first_col():
                    ax.set_ylabel(layout.ylabel)
            caption = caption_provenance(run, part, tables[0]) + layout.note
            path = _renew(run, name, tables, figure, caption)
        finally:
            plt.close(figure)
    display(Image(path.with_suffix(".png"), retina=True))
    print(f"{relative_path(path)}.png, .pdf and .csv")


def panels(run, name, table, by, part="attention", layout=ONE_PANEL, saved=None):
    """Yield (axes, rows) for each value of the columns `by` of a table; the page is
    saved after the last.

    A value has `layout.each` panels, the first of which is named after it; the values
    of a second column stand beside each other. saved: the tables of the csv, this one
    if None.
    """
    if table.empty:  # where nothing was measured, there may be no columns either
        return
    saved = saved or [table]
    if "model" in table:
        table = in_model_order(run, table)
    groups = list(table.groupby(by, sort=False))
    columns = layout.columns
    if columns is None and len(by) == 2:
        columns = table[by[1]].nunique()
    elif columns is None and layout.each > 1:
        columns = layout.each
    layout = replace(layout, panels=layout.each * len(groups), columns=columns)
    with page(run, name, saved, part, layout) as axes:
        own = axes.reshape(-1, layout.each)
        for group_axes, (key, rows) in zip(own, groups, strict=True):
            group_axes[0].set_title("\n".join(map(str, key)))
            yield group_axes, rows


def in_model_order(run, table):
    """Return a table's rows with the models in the order of the profile's, which every
    figure has; the rows of a model stay in theirs.
    """
    names = _models_in_order(run)
    names += [name for name in dict.fromkeys(table.model) if name not in names]
    return table.sort_values(
        "model", key=lambda own: own.map(names.index), kind="stable"
    )


def _models_in_order(run):
    """Return the names of a profile's models, each once."""
    sections = [run.attention, run.accuracy, run.likelihood]
    specs = [spec for section in sections if section for spec in section.models]
    return list(dict.fromkeys(resolve(spec).name for spec in specs))


def _renew(run, name, tables, figure, caption):
    """Write the files of a figure where its numbers differ from what is there, record
    why, and return their path without its suffix.
    """
    path = run.figures / name
    numbers = pd.concat(tables, ignore_index=True)
    csv = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    reason = _write_error(path, csv)
    if reason:
        _finish(figure, caption)
        contents = _pictures(figure) | {"csv": csv.encode()}
        _write(path, contents)
    run.results.mkdir(parents=True, exist_ok=True)
    write_json(run.results / RECORD, recorded(run.results) | {name: reason})
    return path


def _write_error(path, csv):
    """Return why a figure's files are to be written, "" to keep them."""
    try:
        old = pd.read_csv(path.with_suffix(".csv"))
        where = difference(old, pd.read_csv(io.StringIO(csv)))
    except (OSError, ValueError):  # missing or damaged: as good as not there
        return MISSING
    if where:
        return where
    pictures = [path.with_suffix(f".{kind}") for kind in ("png", "pdf")]
    return "" if all(picture.is_file() for picture in pictures) else MISSING


def _finish(figure, caption):
    """Put one legend of all panels above them and the caption below; the axes keep
    their height.
    """
    labelled = {}
    for ax in figure.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, mark)
    height = figure.get_figheight()
    if labelled:
        columns = _legend_columns(labelled)
        figure.legend(
            labelled.values(),
            labelled.keys(),
            loc="outside upper center",
            ncols=columns,
        )
        height += 0.13 * math.ceil(len(labelled) / columns) + 0.08

    lines = textwrap.wrap(caption, CAPTION_CHARACTERS, break_on_hyphens=False)
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=5, color="0.45")
    figure.set_figheight(height + 0.09 * len(lines) + 0.05)

    # Where everything stands is worked out once, for the pdf and the png alike.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _legend_columns(labels):
    """Return how many columns, filled one after another, are not wider than a page."""
    widths = [MARK_CHARACTERS + len(label) for label in labels]
    for columns in range(MOST_COLUMNS, 1, -1):
        widest = [max(part, default=0) for part in np.array_split(widths, columns)]
        if sum(widest) <= LEGEND_CHARACTERS:
            return columns
    return 1


def _pictures(figure):
    """Return a figure as the bytes of a png and of a pdf, by kind."""
    pdf, drawn, png = io.BytesIO(), io.BytesIO(), io.BytesIO()
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    figure.savefig(drawn, format="png", dpi=DPI)
    pixels = Pixels.open(drawn).convert("RGB")
    method = Pixels.Quantize.MAXCOVERAGE
    few = pixels.quantize(PNG_COLOURS, method, dither=Pixels.Dither.NONE)
    few.save(png, format="png", optimize=True)
    return {"png": png.getvalue(), "pdf": pdf.getvalue()}


def _write(path, contents):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"cannot write figure {path.name} to {path.parent}: {reason}"
        ) from error
    for kind, content in contents.items():
        write_whole(path.with_suffix(f".{kind}"), content)


def caption_provenance(run, part, table):
    """Return what a caption says of a table's numbers: models with their weights,
    problems, prompt, and n.
    """
    if "source" in table and (table.source == THIS_RUN).any():
        table = table[table.source == THIS_RUN]
    sections = [getattr(run, part)] if part else [run.attention, run.accuracy]
    models = _models_of_caption(run, sections, table)
    text = f"{'; '.join(models)}. " if models else ""
    if part:
        problems = describe(sections[0].problems)
        prompt = f"{sections[0].format} prompt"
        if part == "likelihood" and sections[0].format == "chat":
            prompt += " (plain where a model has no chat template)"
        text += f"Problems: {problems}, {prompt}"
        if "n" in table:
            counts = table.n.agg(["min", "max"]).unique()
            text += f", n = {' to '.join(f'{n:,.0f}' for n in counts)}"
        text += ". "
    return text + ("95 % intervals over problems. " if "low" in table else "")


def _models_of_caption(run, sections, table):
    """Return the models of a table with their revisions and weights, each once, in the
    order of every figure.
    """
    revisions = {}
    if "revision" in table:
        stored = table.dropna(subset="revision")
        revisions = stored.groupby("model").revision.first()
    labels = []
    sources = [resolve(spec) for section in sections for spec in section.models]
    order = _models_in_order(run)
    for source in sorted(sources, key=lambda source: order.index(source.name)):
        if source.name not in set(table.get("model", ())):
            continue
        label = source.name
        revision = revisions.get(source.name, source.revision)
        if revision:
            label += f" @ {revision[:12]}"
        if source.weights:
            label += f", {source.weights}"
        if label not in labels:
            labels.append(label)
    return labels
