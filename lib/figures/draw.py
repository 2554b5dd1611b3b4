"""What stands on the axes: estimates with intervals, curves of received attention, bars, maps, forests and matrices.

Every function takes axes and a table and returns the artists it drew; `catalogue` says which figure is made of what.
"""

import textwrap
from numbers import Number

import numpy as np
from matplotlib import colors, patches

from lib.figures.page import triples
from lib.figures.style import LAMBDA, SERIES, TINTS, VERDICTS, even_line, from_zero, integer_axis, look_of, symlog_axis
from lib.statistics import told

BAND, HATCH = "#D5E8E1", "/////"


def estimates(ax, table, x, y, by, *, gap=0.2, line=False, band=False, even=None, looks=None):
    """Draw estimates with their intervals over the column x, a series per value of `by`, and return the series.

    table: a row per point; the two columns behind y, which end in low and high, are its ends. An x of texts gives
    places in their order. Series stand `gap` apart; a `line` joins their points, a `band` is their interval. looks: of
    what is no condition, a value of `by` -> its Look.
    """
    ((_, low, high),) = [some for some in triples(list(table)) if some[0] == y]
    names = None if all(isinstance(value, Number) for value in table[x]) else list(dict.fromkeys(table[x]))
    groups, series = list(table.groupby(by, sort=False)), []
    if even is not None:
        even_line(ax, even)
    for index, (key, part) in enumerate(groups):
        mine, text = (looks[key], key) if looks else look_of(key)
        at = part[x].map(names.index) if names else part[x].astype(float)
        at = at + (0 if band else gap * (index - (len(groups) - 1) / 2))
        if band:
            ax.fill_between(at, part[low], part[high], color=mine.colour, alpha=0.2, linewidth=0)
        else:
            ends = part[[low, high]].to_numpy(float).T
            ax.plot([at, at], ends, color=mine.colour, marker="_", markersize=4, linewidth=0.9)
        style = {"linestyle": "-" if line or band else "none", "marker": mine.marker, "color": mine.colour}
        series += ax.plot(at, part[y], label=text, **style)
    if names:
        texts = [look_of(name)[1] if x == by else name for name in names]
        width = 12 if len(names) <= 3 else 8 if len(names) <= 5 else 5
        ax.set_xticks(range(len(names)), [textwrap.fill(text, width, break_long_words=False) for text in texts])
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.grid(False, axis="x")
    return series


def received(ax, head, names, *, whole=False, fill=False):
    """Draw what the tokens of one prompt receive, a curve per condition, and return the curves.

    head: a row per condition and token; names: a condition's key -> what the legend calls it. Without `whole` the
    inserted tokens are taken out, so that curves compare the same tokens. The first token, which takes most of the
    mass, is left out.
    """
    curves = []
    for condition, name in names.items():
        tokens = head[head.condition == condition]
        tokens = (tokens if whole else tokens[tokens.part != "inserted"])[1:]
        look, x = look_of(condition)[0], np.arange(1, len(tokens) + 1)
        curves += ax.plot(x, tokens.received, color=look.colour, label=name)
        if fill:
            ax.fill_between(x, tokens.received, color=look.colour, alpha=0.12, linewidth=0)
    from_zero(ax)
    integer_axis(ax.xaxis, "Token position")
    return curves


def span(ax, head, name):
    """Shade the positions of the inserted tokens of one prompt."""
    inserted = head.position[head.part == "inserted"]
    ends = inserted.min() - 0.5, inserted.max() + 0.5
    return ax.axvspan(*ends, color="0.87", linewidth=0, zorder=0, label=name)


def off_the_scale(ax, table):
    """Write the ratios that lie above or below the axis, by layer, at its edge."""
    low, high = ax.get_ylim()
    for row in table[(table.ratio < low) | (table.ratio > high)].itertuples():
        arrow, side, edge = ("↑", "top", high) if row.ratio > high else ("↓", "bottom", low)
        look = {"va": side, "color": look_of(row.condition)[0].colour, "size": "small"}
        ax.annotate(f"{arrow} {row.ratio:.2g}", (row.layer, edge), (5, 0), textcoords="offset points", **look)


def controls(ax, table, heads=None):
    """Draw behind λ what the shape shows without training: a row per layer and control, from `lowest` to `highest`.

    A layer has its place on the x axis, or all `heads` of a panel.
    """
    for row in table.itertuples():
        ends = (0.5, heads + 0.5) if heads else (row.layer - 0.5, row.layer + 0.5)
        if row.control == "uniform":
            style = {"color": "0.45", "linestyle": ":", "linewidth": 1.4, "zorder": 0.9}
            ax.plot(ends, [row.lowest] * 2, label="attention spread evenly", **style)
        else:
            style = {"color": "0.85", "linewidth": 0, "zorder": 0.5}
            ax.fill_between(ends, row.lowest, row.highest, label="untrained networks", **style)


def bars(ax, table, names):
    """Draw accuracies in % with their intervals, a group per source and model, and return the bars: Fig. 10 left.

    table: columns source, model, condition, accuracy, low, high; a source that is "the paper" is hatched and has no
    interval. names: a condition's key -> what the legend calls it.
    """
    groups, drawn = list(table.groupby(["source", "model"], sort=False)), []
    width = 0.84 / max(len(part) for _, part in groups)
    rotation = 90 * (len(table) > 9)  # level numbers would touch
    for place, ((source, _), part) in enumerate(groups):
        for index, row in enumerate(part.itertuples()):
            x, colour = place + width * (index - (len(part) - 1) / 2), look_of(row.condition)[0].colour
            reported = source == "the paper"
            look = {"facecolor": "white", "edgecolor": colour, "hatch": HATCH} if reported else {"color": colour}
            drawn += ax.bar(x, row.accuracy, 0.9 * width, **look)
            top = row.accuracy
            if not reported:
                ax.plot([x, x], [row.low, row.high], color="black", marker="_", markersize=4, linewidth=0.9)
                top = np.nanmax([row.high, row.accuracy, 0])
            text = f"{row.accuracy:.1f}" if np.isfinite(row.accuracy) else "n/a"
            style = {"textcoords": "offset points", "ha": "center", "va": "bottom", "rotation": rotation}
            ax.annotate(text, (x, np.nan_to_num(top)), (0, 2), size="small", **style)
    wrap = max(9, 40 // len(groups))
    labels = [textwrap.fill(model, wrap) + f"\n({source})" for (source, model), _ in groups]
    ax.set_xticks(range(len(groups)), labels)
    ax.set(ylabel="Accuracy (%)", ylim=(0, 100))
    ax.grid(False, axis="x")
    for condition in dict.fromkeys(table.condition):
        ax.bar([np.nan], [np.nan], color=look_of(condition)[0].colour, label=names.get(condition, condition))
    if "the paper" in set(table.source):
        ax.bar([np.nan], [np.nan], facecolor="white", edgecolor="0.3", hatch=HATCH, label="reported in the paper")
    return drawn


def lambda_map(ax, values):
    """Draw λ (layer, head), a DataFrame, on one log scale for all models, NaN hatched; return the image.

    What lies beyond 0.5 to 2 has the colour of the end. A dot marks λ above 1.
    """
    extent = (0.5, values.shape[1] + 0.5, values.shape[0] + 0.5, 0.5)  # layers and heads count from 1
    ax.patch.set(hatch="xxxx", edgecolor="0.8")
    look = {"cmap": "PuOr_r", "norm": colors.LogNorm(0.5, 2), "aspect": "auto", "interpolation": "none"}
    image = ax.imshow(np.ma.masked_invalid(values.to_numpy(float)), extent=extent, **look)
    above = np.argwhere(values.to_numpy(float) > 1) + 1
    ax.scatter(above[:, 1], above[:, 0], s=3, color="black", linewidths=0, label="λ > 1")
    ax.grid(False)
    integer_axis(ax.xaxis, "Head")
    integer_axis(ax.yaxis, "Layer")
    return image


def colour_bar(image, axes):
    """Name the colours of maps of λ once, beside all of them."""
    look = {"ticks": [0.5, 0.7, 1, 1.4, 2], "extend": "both", "format": "%g"}
    image.figure.colorbar(image, ax=list(axes), label=LAMBDA, **look).minorticks_off()


def arm_map(ax, table):
    """Draw the effect of ARM in points (c, p1) with intervals as text, framed where 0 is outside."""
    effects, lows, highs = (
        table.pivot(index="c", columns="p1", values=f"effect{end}") for end in ("", "_low", "_high")
    )
    reach = max(1.0, float(np.abs(effects.to_numpy()).max()))
    image = ax.imshow(effects, cmap="PuOr_r", norm=colors.Normalize(-reach, reach), aspect="auto")
    for (row, column), effect in np.ndenumerate(effects.to_numpy()):
        low, high = lows.iloc[row, column], highs.iloc[row, column]
        colour = "white" if abs(effect) > 0.6 * reach else "black"
        text = told(effect, low, high, "+").replace(" [", "\n[")
        ax.text(column, row, text, ha="center", va="center", color=colour, size="small")
        if low > 0 or high < 0:
            place = (column - 0.47, row - 0.47)
            ax.add_patch(patches.Rectangle(place, 0.94, 0.94, fill=False, edgecolor="black", linewidth=1.5))
    ax.set_xticks(range(effects.shape[1]), [f"{value:g}" for value in effects.columns])
    ax.set_yticks(range(effects.shape[0]), [f"{value:g}" for value in effects.index])
    ax.set(xlabel="p1 (percentile)", ylabel="c")
    ax.grid(False)
    return image


def forest(ax, table):
    """Draw differences in nats with their intervals and what counts as none, pairs of conditions from the top.

    table: columns model, curve (what is asked), x (the pair), effect, low, high, n, band. Returns the points. The axis
    is linear to 1 nat, then logarithmic.
    """
    looks = dict(zip(dict.fromkeys(table.model), SERIES * len(table), strict=False))
    places, drawn = -(np.arange(len(table)) + (table.x != table.x.shift()).to_numpy().cumsum()), []
    for y, row in zip(places, table.itertuples(), strict=True):
        look, band = looks[row.model], np.nan_to_num(row.band)
        ax.barh([y], [2 * band], 1.0, [-band], color=BAND, linewidth=0, zorder=0.5)
        text = told(row.effect, row.low, row.high, "+").replace("-", "\N{MINUS SIGN}")
        drawn += _row(ax, y, (row.effect, row.low, row.high), look, row.model, f"{text}, n = {row.n}")
    middles = table.assign(y=places).groupby(["curve", "x"], sort=False).y.mean()
    ax.set_yticks(middles.to_numpy(), [f"{asks}\n({pair})" for asks, pair in middles.index])
    ax.set(
        ylim=(places.min() - 0.8, -0.2), xlabel="less likely  \N{LEFTWARDS ARROW}  nats  \N{RIGHTWARDS ARROW}  likelier"
    )
    symlog_axis(ax, np.ravel(table[["low", "high", "band"]].to_numpy(float)), (0.5, 1, 3, 10, 30, 100))
    _rows_only(ax)
    if table.band.notna().any():
        ax.barh([np.nan], [np.nan], color=BAND, label="a tenth of what a worked example gives: within it, no effect")
    return drawn


def _row(ax, y, ends, look, label, text):
    """Draw an estimate with its interval from left to right, and write a text beside it; return the point in a list."""
    ax.hlines([y], [ends[1]], [ends[2]], color=look.colour, linewidth=1.1)
    ax.text(1.01, y, text, transform=ax.get_yaxis_transform(), va="center", size="small")
    return ax.plot([ends[0]], [y], color=look.colour, marker=look.marker, linestyle="none", markersize=4, label=label)


def _rows_only(ax):
    even_line(ax, 0, across=False)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)


def matrix(ax, table, told_of):
    """Draw a row per claim from the top and a column per model: the verdict as colour and mark, and what was measured.

    table: a row per claim and model, as `lib.claims` judges them; told_of: a row -> what is written in its cell. A
    mark is hollow where the claim stands so without training too. Returns the marks.
    """
    names, models, drawn = list(dict.fromkeys(table.id)), list(dict.fromkeys(table.model)), []
    for row in table.to_dict("records"):
        x, y, look = models.index(row["model"]), len(names) - 1 - names.index(row["id"]), VERDICTS[row["verdict"]]
        ax.add_patch(patches.Rectangle((x, y), 1, 1, facecolor=TINTS[row["verdict"]], linewidth=0))
        shared = row["training"] == "also"
        mark = {"color": look.colour, "marker": look.marker, "linestyle": "none", "markersize": 6}
        drawn += ax.plot([x + 0.09], [y + 0.5], markerfacecolor="white" if shared else look.colour, **mark)
        ax.plot([], [], label=row["verdict"], **mark)
        ax.text(x + 0.16, y + 0.5, told_of(row), va="center", size=4.7, linespacing=1.3)
    ax.set(xlim=(0, len(models)), ylim=(0, len(names)))
    ax.set_xticks(np.arange(len(models)) + 0.5, models, size="small")
    ax.set_yticks(np.arange(len(names)) + 0.5, names[::-1])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.hlines(range(len(names) + 1), 0, len(models), color="white", linewidth=1.5)
    ax.vlines(range(len(models) + 1), 0, len(names), color="white", linewidth=3)
    hollow = {"marker": "o", "markerfacecolor": "white", "color": "0.2", "linestyle": "none"}
    ax.plot([], [], label="hollow: also without training", **hollow)
    return drawn
