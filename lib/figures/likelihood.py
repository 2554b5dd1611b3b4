"""Differences of log p between conditions: as rows of a forest with what counts as none, and over lengths or places."""

import matplotlib.pyplot as plt
import numpy as np

from lib.figures.style import FULL_WIDTH, ROW_HEIGHT, Look, intervals
from lib.statistics import told

# In the order of the models; their grey values differ, and so do their marks.
LOOKS = [Look("#0072B2", "-", "o", ()), Look("#D55E00", "-", "s", ()), Look("#000000", "-", "D", ())]
LOOKS += [Look("#56B4E9", "-", "^", ()), Look("#CC79A7", "-", "v", ())]
LINE, GAP, FRAME = 0.14, 1.0, 0.85  # inches of a row of the forest; rows between two pairs; inches of axis and legend
BAND = "#D5E8E1"
TICKS = (0.5, 1, 3, 10, 30, 100)
COURSES = {  # title and x axis
    "length": ("How many", "inserted slashes"),
    "place": ("Where", "place of the slashes"),
    "depth": ("In which layers", "k"),
}


def likelihood_layout(table):
    """Return a function that makes (figure, axes by panel) for such a table: pairs above a row of the other panels."""
    forest, others = table[table.panel == "pairs"], [name for name in COURSES if name in set(table.panel)]

    def layout():
        heights = [FRAME + LINE * (len(forest) + GAP * forest.x.nunique())] + [ROW_HEIGHT] * bool(others)
        figure = plt.figure(figsize=(FULL_WIDTH, sum(heights)), layout="constrained")
        top, *below = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).flat
        return figure, {"pairs": top.subplots(), **(below[0].subplot_mosaic([others]) if others else {})}

    return layout


def draw_likelihood(axes, table):
    """Draw each panel of the table, whose columns `lib.claims.contrasts.solutions` names, on its axes; return marks."""
    models = dict.fromkeys(table.model)
    looks = {model: LOOKS[i % len(LOOKS)] for i, model in enumerate(models)}
    marks = draw_forest(axes["pairs"], table[table.panel == "pairs"], looks)
    for panel in (name for name in COURSES if name in axes):
        marks += draw_course(axes[panel], table[table.panel == panel], looks)
    return marks


def draw_forest(ax, table, looks):
    """Draw each row's effect with its interval and its band, the pairs of conditions from the top; return the points.

    The axis is linear to 1 nat, then logarithmic. `looks`: by model.
    """
    if table.empty:
        ax.text(0.5, 0.5, "nothing was scored on enough problems", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return []
    points, first = [], (table.x != table.x.shift()).to_numpy()
    places = -(np.arange(len(table)) + GAP * first.cumsum())
    for y, row in zip(places, table.itertuples(), strict=True):
        look, band = looks[row.model], np.nan_to_num(row.band)
        ax.barh([y], [2 * band], 1.0, [-band], color=BAND, linewidth=0, zorder=0.5)
        ax.hlines([y], [row.low], [row.high], color=look.colour, linewidth=1.1)
        points += ax.plot([row.effect], [y], color=look.colour, marker=look.marker, linestyle="none")
        text = told(row.effect, row.low, row.high, "+").replace("-", "\N{MINUS SIGN}")
        ax.text(1.01, y, f"{text}, n = {row.n}", transform=ax.get_yaxis_transform(), va="center", fontsize="small")
    pairs = table[["x", "curve"]].drop_duplicates()
    ax.set_yticks(
        [places[(table.x == pair).to_numpy()].mean() for pair in pairs.x],
        [f"{asks}\n({pair})" for pair, asks in pairs.itertuples(index=False)],
    )
    _even(ax.axvline)
    reach = 1.15 * np.nanmax(np.abs([[1.0] * 3, *table[["low", "high", "band"]].to_numpy(dtype=float)]))
    ticks = [t for t in (*(-t for t in TICKS[::-1]), 0, *TICKS) if abs(t) <= reach]
    ax.set_xscale("symlog", linthresh=1, linscale=1)
    ax.set_xticks(ticks, [f"{t:g}".replace("-", "\N{MINUS SIGN}") for t in ticks])
    ax.minorticks_off()
    ax.set(xlim=(-reach, reach), ylim=(places.min() - 0.8, places.max() + 0.8))
    ax.set_xlabel("less likely  \N{LEFTWARDS ARROW}  nats per problem  \N{RIGHTWARDS ARROW}  likelier")
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    for model, look in looks.items():
        ax.plot([], [], color=look.colour, marker=look.marker, label=model)
    if table.band.notna().any():
        ax.barh([np.nan], [np.nan], color=BAND, label="a tenth of what a worked example gives: within it, no effect")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, borderaxespad=0.2)
    return points


def _even(line):
    """Draw the line at 0, where nothing changes."""
    line(0, color="0.35", linestyle="--", linewidth=0.8, zorder=1)


def draw_course(ax, table, looks):
    """Draw effects with intervals over one panel's lengths, places or layers, a line per curve and model."""
    title, axis = COURSES[table.panel.iloc[0]]
    named = list(dict.fromkeys(table.x)) if axis == COURSES["place"][1] else None  # no numbers, so no line
    curves, lines = list(dict.fromkeys(table.curve)), []
    for (curve, model), part in table.groupby(["curve", "model"], sort=False):
        look, part = looks[model], part if named else part.sort_values("x")
        x = [named.index(place) for place in part.x] if named else part.x.astype(float)
        intervals(ax, x, part.low, part.high, look.colour)
        label = f"{model}, {curve}" if len(curves) > 1 else model
        style = {"color": look.colour, "marker": look.marker, "label": label}
        lines += ax.plot(x, part.effect, linestyle="none" if named else ("-", "--")[curves.index(curve) % 2], **style)
    _even(ax.axhline)
    if named:
        ax.set_xticks(range(len(named)), named)
    ax.set(title=title, xlabel=axis, ylabel="nats per problem, to none", xmargin=0.1)
    ax.legend(fontsize="x-small")
    return lines
