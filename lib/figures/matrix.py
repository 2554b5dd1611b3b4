"""Every claim that was tested, on every model: the verdicts side by side."""

import numpy as np
from matplotlib import patches

from lib.figures.looks import VERDICT_LOOKS
from lib.figures.page import Layout, page

MATRIX_NOTE = (
    "The part that decides; effect [interval]; untrained networks; n problems, and"
    " in how many parts it holds. \N{DAGGER}: lost when corrected for all rows. Empty:"
    " not tested. "
)


def claims_matrix(run, table, texts):
    """Draw each claim that was tested in a row, a column per model: the verdict as
    colour and mark, and what was found.

    table: a row per claim and model, as `lib.claims` judges them; texts: what is
    written in the cell of each. Other readings than the literal one stand in brackets.
    A mark is hollow where the claim stands so without training too.
    """
    tested = table.assign(text=texts)[table.n > 0]
    in_brackets = "(" + tested.id + ", " + tested.reading + ")"
    tested = tested.assign(id=tested.id.where(tested.reading == "literal", in_brackets))
    names = list(dict.fromkeys(tested.id))[::-1]
    models = list(dict.fromkeys(tested.model))
    layout = Layout(height=0.2 + 0.42 * len(names), note=MATRIX_NOTE)
    with page(run, "claims_matrix", [table], None, layout) as (ax,):
        for row in tested.to_dict("records"):
            corner = (models.index(row["model"]), names.index(row["id"]))
            _draw_cell(ax, corner, row)
        _matrix_axes(ax, names, models)
        hollow = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
        ax.plot([], [], label="hollow: also without training", color="0.2", **hollow)


def _draw_cell(ax, corner, row):
    """Draw a verdict as the colour of a cell and a mark, and write beside it."""
    x, y = corner
    look = VERDICT_LOOKS[row["verdict"]]
    ax.add_patch(patches.Rectangle(corner, 1, 1, facecolor=look.tint, linewidth=0))
    mark = {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": "none",
        "markersize": 6,
    }
    inner = "white" if row["training"] == "also" else look.colour
    ax.plot([x + 0.09], [y + 0.5], markerfacecolor=inner, **mark)
    ax.plot([], [], label=row["verdict"], **mark)
    ax.text(x + 0.16, y + 0.5, row["text"], va="center", size=4.7, linespacing=1.3)


def _matrix_axes(ax, names, models):
    """Name the rows at the left and the columns above, and part the cells by white
    lines.
    """
    ax.set(xlim=(0, len(models)), ylim=(0, len(names)))
    ax.set_xticks(np.arange(len(models)) + 0.5, models, size="small")
    ax.set_yticks(np.arange(len(names)) + 0.5, names)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.hlines(range(len(names) + 1), 0, len(models), color="white", linewidth=1.5)
    ax.vlines(range(len(models) + 1), 0, len(names), color="white", linewidth=3)
