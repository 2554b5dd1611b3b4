"""What notebooks draw with: curves of a head, estimates with their intervals, bars and
maps.

    figure, axes = grid(3)
    for ax, rows in zip(axes, split(table, "model")):
        interval_lines(ax, rows, "layer", "mass", by="inserted")

Functions take axes and a table, and return what they drew. The two columns behind an
estimate's are the ends of its interval. The look is in paper.mplstyle.
"""

import math
from itertools import cycle
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

# Nothing of a reader's own configuration stays.
plt.style.use(["default", Path(__file__).with_name("paper.mplstyle")])

PAGE_WIDTH = 7.2  # inches
# Name, colour and marker of a condition: Okabe and Ito's palette, but for a lighter
# green, so that the grey values differ, too. No marker points in a direction.
CONDITION_LOOKS = {
    "none": ("None", "#0072B2", "o"),
    "mless": ("Mless", "#D55E00", "s"),
    "mful": ("Mful", "#5FBF9B", "p"),
    "random": ("Random sentence", "#000000", "D"),
    "arm": ("ARM", "#CC79A7", "H"),
}
# Of whatever else is told apart, in its order.
COLOURS = ["#332288", "#999933", "#9F86C0", "#882255", "#4B6A88", "#DDAA33", "#117733"]
# There is one more than colours, so that a pair of both comes back after 56 names.
MARKERS = "osDXpP*8"
VALUES = {"received": "Average attention weight", "ratio": "with / without"}
NO_CHANGE = {"color": "0.35", "linestyle": "--", "linewidth": 0.8, "zorder": 1}
WIDE_AND_PALE_LINE = {"linewidth": 2.2, "alpha": 0.5}
# A first token that receives so many times what any other does flattens their curves.
LARGE = 1.5


def grid(count=1, columns=None, height=1.9, **options):
    """Return a figure as wide as a page and its axes (count,), in rows of up to three,
    or of two where there are more.

    height: inches, of a row; options: of `matplotlib.pyplot.subplots`.
    """
    columns = columns or (count if count <= 3 else 2)
    rows = math.ceil(count / columns)
    size = (PAGE_WIDTH, height * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, **options)
    for ax in axes.flat[count:]:
        ax.remove()
    return figure, axes.flat[:count]


def split(table, *by):
    """Return the rows of each value of these columns, as the values first come."""
    return [rows for _, rows in table.groupby(list(by), sort=False)]


def tell_apart(names):
    """Return by name the colour, the marker and the legend's text of each series.

    A condition looks the same in every figure. Whatever else there is takes the next
    look in its order, so that no two of these names look alike.
    """
    looks = {}
    further = zip(cycle(COLOURS), cycle(MARKERS))
    for name in dict.fromkeys(names):
        if name in CONDITION_LOOKS:
            label, colour, marker = CONDITION_LOOKS[name]
        else:
            label = name
            colour, marker = next(further)
        looks[name] = {"label": label, "color": colour, "marker": marker}
    return looks


def token_curves(ax, head, names, value="received"):
    """Draw a number of each token of one prompt, one of VALUES, a curve per condition,
    and return the lines. A first token that is large is left out.

    head: the rows of a head, of `head_curves.curves`; names: what the legend calls each
    condition.
    """
    start = int(first_is_large(head))
    looks = tell_apart(names)
    lines = []
    for condition, label in names.items():
        values = head[value][head.condition == condition][start:]
        places = np.arange(start, start + len(values))
        # The curve without an insertion is seen where another lies on it.
        style = WIDE_AND_PALE_LINE if condition == "none" else {}
        colour = looks[condition]["color"]
        lines += ax.plot(places, values, color=colour, label=label, **style)
    ax.set(xlabel="Token position", ylim=(0, None))
    if value == "received":
        ax.set_title(head_name(head, "\n"))
    else:
        ax.axhline(1, **NO_CHANGE)
        ax.set_ylim(0, 2)
    if ax.get_subplotspec().is_first_col():
        ax.set_ylabel(VALUES[value])
    return lines


def shade_inserted(ax, head, text):
    """Shade the slashes among the tokens of a whole prompt, and write what they are."""
    places = head.position[(head.part == "inserted") & (head.condition == "mless")]
    ax.axvspan(places.min() - 0.5, places.max() + 0.5, color="0.9", zorder=0)
    place = (places.mean(), 0.98)
    return ax.text(
        *place, text, ha="center", va="top", transform=ax.get_xaxis_transform()
    )


def first_is_large(head):
    """Return whether the first token would flatten the curves of a head."""
    is_first = head.position == 0
    return head.received[is_first].max() > LARGE * head.received[~is_first].max()


def first_tokens(table):
    """Return what a caption says of the first tokens: in which heads of a table of
    curves they are left out.
    """
    heads = split(table, "model", "layer", "head")
    large = [head_name(head, ", ") for head in heads if first_is_large(head)]
    if not large:
        return "Every curve begins with the first token."
    return (
        f"Left out of {'; '.join(large)}: the first token, which receives more than"
        f" {LARGE} times as much as any other. Every other curve begins with it."
    )


def head_name(head, comma):
    """Return which head of which model a table of curves is about."""
    model, layer, number = head[["model", "layer", "head"]].iloc[0]
    return f"{model}{comma}Layer {layer:.0f} Head {number:.0f}"


def interval_lines(ax, table, x, y, by):
    """Draw estimates with their intervals over the column x, a line per value of `by`,
    and return the lines.
    """
    looks = tell_apart(table[by])
    lines = []
    for name, rows in table.groupby(by, sort=False):
        ends = intervals(rows, y)
        lines.append(ax.errorbar(rows[x], rows[y], ends, **looks[name]))
    ax.set(title=table.model.iloc[0], xlabel=x, ylim=(0, None))
    _whole_numbers(ax.xaxis)
    return lines


def interval_rows(ax, table, value, group, by, order=()):
    """Draw estimates with their intervals from the left to the right, a row per value
    of `group` from the top and a series per value of `by`; return the series.

    order: names whose looks come first, as those of the panel beside it.
    """
    groups = list(dict.fromkeys(table[group]))
    looks = tell_apart([*order, *table[by]])
    step = 0.7 / max(1, table[by].nunique())
    series = []
    for index, rows in enumerate(split(table, by)):
        name = rows[by].iloc[0]
        places = rows[group].map(groups.index) + index * step
        ends = intervals(rows, value)
        style = {"linestyle": "none", **looks[name]}
        series.append(ax.errorbar(rows[value], places, xerr=ends, **style))
    middle = (0.7 - step) / 2
    ax.set_yticks(middle + np.arange(len(groups)), groups)
    ax.set_ylim(len(groups) - 0.1, -0.4)
    ax.grid(False, axis="y")
    return series


def intervals(rows, value):
    """Return how far the ends of intervals lie below and above the estimates, (2, N);
    NaN where an estimate has none.
    """
    place = rows.columns.get_loc(value)
    ends = rows.iloc[:, place + 1 : place + 3].to_numpy(float)
    return np.abs(ends.T - rows[value].to_numpy(float))


def accuracy_bars(ax, table):
    """Draw accuracies in % with their intervals, a group per source and model and a bar
    per condition; return the bars.

    table: columns source, model, condition, accuracy, low, high. Bars of "the paper"
    are hatched.
    """
    groups = table.groupby(["source", "model"], sort=False)
    table = table.assign(x=groups.ngroup() + 0.27 * groups.cumcount())
    looks = tell_apart(table.condition)
    bars = []
    for place in range(len(table)):
        row = table.iloc[[place]]
        look = looks[row.condition.item()]
        style = {"color": look["color"], "label": look["label"]}
        if row.source.item() == "the paper":
            style = {"fill": False, "edgecolor": look["color"], "hatch": "/////"}
        ends = intervals(row, "accuracy")
        bar = ax.bar(row.x, row.accuracy, 0.25, yerr=ends, **style)
        ax.bar_label(bar, fmt="{:.0f}", padding=1)
        bars.append(bar)
    middles = table.groupby(["source", "model"], sort=False).x.mean()
    room = max(9, 40 // len(middles))
    names = [f"{fill(model, room)}\n({source})" for source, model in middles.index]
    ax.set_xticks(middles, names)
    ax.set(ylabel="Accuracy (%)", ylim=(0, 100))
    ax.grid(False, axis="x")
    return bars


def layer_head_map(ax, table):
    """Draw λ of every layer and head of a model as a map from half to twice, with a dot
    where it lies above 1, and return the map. NaN is grey.

    table: a row per layer and head, with the column `lambda`.
    """
    ratios = table.pivot(index="layer", columns="head", values="lambda")
    ratios = ratios.astype(float)
    places = (ratios.columns, ratios.index)
    image = ax.pcolormesh(*places, ratios, cmap="PuOr_r", norm=LogNorm(0.5, 2))
    above = table[table["lambda"] > 1]
    ax.plot(above["head"], above.layer, "k.", markersize=2, label="λ > 1")
    ax.set(title=table.model.iloc[0], xlabel="Head", ylabel="Layer", facecolor="0.8")
    _whole_numbers(ax.xaxis)
    _whole_numbers(ax.yaxis)
    ax.invert_yaxis()
    ax.grid(False)
    return image


def _whole_numbers(axis):
    """Let an axis count tokens, layers or heads."""
    axis.get_major_locator().set_params(integer=True)
