"""Draw the attention that tokens receive as curves, and estimates with intervals as
rows or lines.

In a table, the two columns after an estimate are the bounds of its interval.
"""

import numpy as np

from lib.figures.figure_style import NO_CHANGE, WIDE_AND_PALE_LINE, tell_apart

INSERTED_HERE = {"color": "0.35", "linestyle": ":", "linewidth": 1, "zorder": 1}
INSERTED_HERE["label"] = "inserted here"
HIGHEST_RATIO = 2  # end of the axis; triangles mark higher ratios
MARGIN = 0.4  # above the first row of intervals and below the last one, in rows
BESIDE = 0.12  # between two series at the same integer


def split(table, *by):
    """Split a table into one per distinct value of these columns, in order of
    appearance.
    """
    return [rows for _, rows in table.groupby(list(by), sort=False)]


def token_curves(ax, head, names, colours=None):
    """Draw the attention that each token of a complete prompt receives, a curve per
    condition. The axis ends above the other tokens if the first receives more.

    head: the rows of one panel of `head_curves.received_by_token`. names: the legend's
    text by condition. colours: by condition; None: those of `tell_apart`.
    """
    looks = tell_apart(names)
    for condition, label in names.items():
        values = head.received[head.condition == condition]
        wide = WIDE_AND_PALE_LINE if condition == "none" else {}
        colour = colours[condition] if colours else looks[condition]["color"]
        ax.plot(values.to_numpy(), color=colour, label=label, **wide)
    highest = head.received[head.position > 0].max()
    ax.set(xlabel="Position in the complete prompt", ylabel="Received attention")
    ax.set_ylim(0, 1.05 * highest)
    model, layer, number = head[["model", "layer", "head"]].iloc[0]
    ax.set_title(f"{model}\nLayer {layer:.0f} Head {number:.0f}")


def original_curves(ax, head, names, colours=None):
    """Draw the curves of `token_curves` for the original tokens alone. A dotted line
    marks where the insertion was.
    """
    token_curves(ax, head[head.part != "inserted"], names, colours)
    ax.set_xlabel("Position among the original tokens")
    mark_insertion(ax, head)


def ratio_curve(ax, head):
    """Draw the attention that each original token receives with the slashes, divided by
    what it receives without.

    head: the rows of one panel of `head_curves.received_by_token`.
    """
    received = head[head.part != "inserted"].set_index("condition").received
    ratios = received["mless"].to_numpy() / received["none"].to_numpy()
    ax.plot(ratios, color="0.35", label="with slashes / without")
    for position in (ratios > HIGHEST_RATIO).nonzero()[0]:
        label = f"ratio above {HIGHEST_RATIO}"
        ax.plot(position, HIGHEST_RATIO, "k^", clip_on=False, label=label)
    mark_insertion(ax, head)
    ax.axhline(1, **NO_CHANGE)
    ax.set(xlabel="Position among the original tokens", ylabel="Ratio")
    ax.set_ylim(0, HIGHEST_RATIO)


def mark_insertion(ax, head):
    """Mark with a dotted line where the insertion was among the original tokens."""
    start = head.position[head.part == "inserted"].min() - 0.5
    ax.axvline(start, **INSERTED_HERE)


def shade_inserted(ax, head, text="slashes", colour="0.9"):
    """Shade the inserted tokens of a complete prompt, and label them with a text."""
    inserted = head.position[(head.part == "inserted") & (head.condition == "mless")]
    ax.axvspan(inserted.min() - 0.5, inserted.max() + 0.5, color=colour, zorder=0)
    top = (inserted.mean(), 0.98)
    data_and_axes = ax.get_xaxis_transform()  # x in data, y as a share of the axis
    ax.text(*top, text, ha="center", va="top", transform=data_and_axes)


def interval_rows(ax, table, value, group, by, order=()):
    """Draw estimates with horizontal intervals: a row for each value of the column
    `group`, from the top, and a series for each value of the column `by`.

    value: the column of the estimates. order: names of series that receive the first
    styles, so that two panels agree in them. If no row has more than one series, all
    estimates lie in the middle of their rows.
    """
    groups = list(dict.fromkeys(table[group]))
    looks = tell_apart([*order, *table[by]])
    count = max(1, table[by].nunique())
    step = 0.7 / count if table.duplicated(group).any() else 0
    series = {rows[by].iloc[0]: rows for rows in split(table, by)}
    for index, name in enumerate(name for name in looks if name in series):
        rows = series[name]
        y = rows[group].map(groups.index) + index * step
        lengths = intervals(rows, value)
        ax.errorbar(rows[value], y, xerr=lengths, linestyle="none", **looks[name])
    height = step * (count - 1)
    ax.set_yticks(height / 2 + np.arange(len(groups)), groups)
    ax.set_ylim(len(groups) - 1 + height + MARGIN, -MARGIN)
    ax.grid(False, axis="y")


def interval_lines(ax, table, x, value, by):
    """Draw estimates with vertical intervals as lines along the column `x`: a series
    for each value of the column `by`, the first one in front.

    x: integers. The series are shifted a little to each side, so that no interval hides
    another.
    """
    looks = tell_apart(table[by])
    series = split(table, by)
    middle = (len(series) - 1) / 2
    for index, rows in reversed([*enumerate(series)]):
        beside = rows[x] + (index - middle) * BESIDE
        lengths = intervals(rows, value)
        ax.errorbar(beside, rows[value], yerr=lengths, **looks[rows[by].iloc[0]])
    ax.locator_params(axis="x", integer=True)


def intervals(rows, value):
    """Return the distances from the estimates in the column `value` to their bounds,
    below and above, (2, N), as error bars need them; NaN without an interval.
    """
    column = rows.columns.get_loc(value)
    bounds = rows.iloc[:, column + 1 : column + 3].to_numpy(float)
    return np.abs(bounds.T - rows[value].to_numpy(float))
