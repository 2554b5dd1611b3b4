"""Differences between two conditions with their intervals, one row below the other,
pair of conditions by pair: on a forest of nats, and where else rows stand so.

table: columns model, curve (what is asked), x (the pair), effect, low, high, n and
band, within which an effect counts as none.
"""

import numpy as np

from lib.figures.looks import EVEN, NO_EFFECT, look_of_model
from lib.statistics import format_interval

NAT_TICKS = (0.5, 1, 3, 10, 30, 100)  # on either side of 0
MINUS = "\N{MINUS SIGN}"
LIKELIER = "less likely  \N{LEFTWARDS ARROW}  nats  \N{RIGHTWARDS ARROW}  likelier"
TENTH = "small: a tenth of what a worked example gives"


def pair_by_pair(table):
    """Return the rows sorted by pair, the pairs as they first come."""
    pairs = list(dict.fromkeys(table.x))
    return table.sort_values("x", key=lambda own: own.map(pairs.index), kind="stable")


def placed_rows(ax, table):
    """Return the rows with their height `y`, and draw the band of each.

    They stand one below the other, with a gap of a row above each new pair, whose name
    stands at the left.
    """
    pairs_so_far = (table.x != table.x.shift()).cumsum()
    table = table.assign(y=-(np.arange(len(table)) + pairs_so_far))
    bands = table.band.fillna(0)
    ax.barh(table.y, 2 * bands, 1.0, -bands, color=NO_EFFECT, linewidth=0, zorder=0.5)

    middles = table.groupby(["curve", "x"], sort=False).y.mean()
    labels = [f"{question}\n({pair})" for question, pair in middles.index]
    ax.set_yticks(middles.to_numpy(), labels)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(table.y.min() - 0.8, -0.2)
    ax.grid(False, axis="y")
    return table


def write_beside(ax, row, details):
    """Write a row's interval and these details at the right of the panel."""
    interval = format_interval(row.effect, row.low, row.high, "+")
    text = f"{interval.replace('-', MINUS)}, {details}"
    transform = ax.get_yaxis_transform()
    ax.text(1.03, row.y, text, transform=transform, va="center", size="small")


def forest(ax, table):
    """Draw differences in nats with their intervals and what counts as none, pairs of
    conditions from the top.

    The axis is linear to 1 nat, then logarithmic. Returns the points of each model.
    """
    table = placed_rows(ax, table)
    points = []
    for model, rows in table.groupby("model", sort=False):
        look = look_of_model(model)
        ax.hlines(rows.y, rows.low, rows.high, color=look.colour, linewidth=1.1)
        points += ax.plot(
            rows.effect,
            rows.y,
            label=model,
            color=look.colour,
            marker=look.marker,
            linestyle="none",
            markersize=5,
        )
    for row in table.itertuples():
        write_beside(ax, row, f"n = {row.n}")

    farthest = table[["low", "high", "band"]].abs().max(axis=None)
    _nat_axis(ax, farthest)
    if table.band.notna().any():
        ax.barh([np.nan], [np.nan], color=NO_EFFECT, label=TENTH)
    return points


def _nat_axis(ax, largest):
    """Make the x axis one of nats, as far to the left as to the right."""
    reach = 1.15 * max(1.0, largest)
    positive = [tick for tick in NAT_TICKS if tick <= reach]
    ticks = [*(-tick for tick in reversed(positive)), 0, *positive]
    names = [f"{tick:g}".replace("-", MINUS) for tick in ticks]
    ax.set_xlabel(LIKELIER)
    ax.set_xscale("symlog", linthresh=1, linscale=1)
    ax.set_xticks(ticks, names)
    ax.minorticks_off()
    ax.set_xlim(-reach, reach)
    ax.axvline(0, **EVEN)
