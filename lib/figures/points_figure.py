"""The figure of points: how many more answers in a hundred are right with slashes, and
how much of it goes through layer 1.

run: a profile; table: as `lib.claims.points.points_table` makes it.
"""

import numpy as np

from lib.figures.forest import pair_by_pair, placed_rows, write_beside
from lib.figures.layout import Layout, panels
from lib.figures.looks import EVEN, NO_EFFECT, look_of_model

# How full the marks of a way are, and what the legend calls such marks.
FILLS = {
    "sampled answers, weighted": "full",
    "sampled answers, counted": "none",
    "single answers, counted": "none",
}
NAMES_OF_FILLS = {"full": "weighted", "none": "counted"}
FEWER_OR_MORE = (
    "fewer right  \N{LEFTWARDS ARROW}  points  \N{RIGHTWARDS ARROW}  more right"
)
MARGIN = "margin that was written down beforehand"
RING = {"marker": "o", "fillstyle": "none", "linestyle": "none", "color": "black"}
RING |= {"markersize": 9, "markeredgewidth": 0.8}


def points(run, table):
    """Draw the change in points with its interval, pairs of conditions from the top, a
    row per model and way to find it.
    """
    layout = Layout(
        height=0.8 + 0.16 * (len(table) + table.x.nunique()),
        note=(
            "Sampled answers: several to a problem, of both conditions together; they"
            " are weighted by their probability under each condition, or those of each"
            " condition are counted. Single answers: the likeliest to each problem."
            " Effective: as many answers without weights would say as much."
        ),
    )
    for (ax,), rows in panels(run, "points", table, ["unit"], "accuracy", layout):
        points_in_rows(ax, pair_by_pair(rows))
        ax.set_title("")


def points_in_rows(ax, table):
    """Draw a row per line of a table, pairs one below the other; and return the marks.

    The paper's number is a ring, the margin a band.
    """
    table = placed_rows(ax, table)
    ax.axvline(0, **EVEN)

    marks = []
    for row in table.itertuples():
        look = look_of_model(row.model)
        ax.hlines(row.y, row.low, row.high, color=look.colour, linewidth=1.1)
        style = {"color": look.colour, "marker": look.marker, "markersize": 5}
        marks += ax.plot(row.effect, row.y, fillstyle=FILLS[row.way], **style)
        _write_trust(ax, row)

    reported = table.drop_duplicates(["x", "model"]).dropna(subset="reported")
    ax.plot(reported.reported, reported.y, **RING)

    ax.set_xlabel(FEWER_OR_MORE)
    _legend_of_points(ax, table)
    return marks


def _write_trust(ax, row):
    """Write a row's interval, n and effective number of answers beside it."""
    details = f"{row.way}, n = {row.n}"
    if np.isfinite(row.effective):
        details += f" ({row.effective:.0f} of {row.scored:.0f} effective)"
    write_beside(ax, row, details)


def _legend_of_points(ax, table):
    """Name the models, the ways, the margin and the paper's ring in the legend."""
    nowhere = ([np.nan], [np.nan])
    for model in dict.fromkeys(table.model):
        look = look_of_model(model)
        style = {"color": look.colour, "marker": look.marker}
        ax.plot(*nowhere, linestyle="none", markersize=5, label=model, **style)
    for fill in dict.fromkeys(FILLS[way] for way in table.way):
        style = {"color": "0.3", "marker": "o", "fillstyle": fill}
        name = NAMES_OF_FILLS[fill]
        ax.plot(*nowhere, linestyle="none", markersize=5, label=name, **style)
    if table.band.notna().any():
        ax.barh(*nowhere, color=NO_EFFECT, label=MARGIN)
    if table.reported.notna().any():
        ax.plot(*nowhere, label="the paper's gain", **RING)
