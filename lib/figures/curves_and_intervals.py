"""Draw the attention that tokens receive as curves, and estimates with intervals as
rows or lines.

In a table, the two columns after an estimate are the bounds of its interval.
"""

import numpy as np

from lib.figures.figure_style import NO_CHANGE, WIDE_AND_PALE_LINE, tell_apart

INSERTED_HERE = {"color": "0.35", "linestyle": ":", "linewidth": 1, "zorder": 1}
INSERTED_HERE["label"] = "inserted here"
# Parts whose tokens are not the same in all conditions.
NOT_COMPARED = ("inserted", "merged")
HIGHEST_RATIO = 2  # end of the axis; triangles mark higher ratios
ROW_HEIGHT = 0.7  # of all series of a row together, in rows
BAND = {"color": "0.95", "linewidth": 0, "zorder": 0}  # behind every second row
BESIDE = 0.12  # between two series at the same integer


def split(table, *by):
    """Split a table into one per distinct value of these columns, in order of
    appearance.
    """
    return [rows for _, rows in table.groupby(list(by), sort=False)]


def token_curves(ax, head, names, colours=None, behind="none"):
    """Draw the attention that each token of a complete prompt receives, a curve per
    condition. The axis ends above the other tokens if the first receives more.

    head: the rows of one panel of `head_curves.received_by_token`. names: the legend's
    text by condition. colours: by condition; None: those of `tell_apart`. behind: the
    condition with a wide and pale curve, on which the others stay visible.
    """
    looks = tell_apart(names)
    for condition, label in names.items():
        values = head.received[head.condition == condition]
        wide = WIDE_AND_PALE_LINE if condition == behind else {}
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
    token_curves(ax, head[~head.part.isin(NOT_COMPARED)], names, colours)
    ax.set_xlabel("Position among the original tokens")
    mark_insertion(ax, head)


def ratio_curve(ax, head):
    """Draw the attention that each original token receives with the slashes, divided by
    what it receives without.

    head: the rows of one panel of `head_curves.received_by_token`.
    """
    compared = head[~head.part.isin(NOT_COMPARED)]
    received = compared.set_index("condition").received
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


def interval_rows(ax, table, value, group, by, order=(), hollow=None):
    """Draw estimates with horizontal intervals: a row for each value of the column
    `group`, from the top, and a series for each value of the column `by`.

    value: the column of the estimates, which the columns of their lower and upper
    bounds follow. order: names of series that receive the first
    styles, so that two panels agree in them. hollow: a column of booleans, whose name
    the legend gives; estimates for which it is true have a hollow mark. If no row has
    more than one series, all estimates lie in the middle of their rows; otherwise bands
    show where rows end.
    """
    groups = list(dict.fromkeys(table[group]))
    looks = tell_apart([*order, *table[by]], models=by == "model")
    series = {rows[by].iloc[0]: rows for rows in split(table, by)}
    shares_rows = table.duplicated(group).any()
    step = ROW_HEIGHT / len(series) if shares_rows else 0
    middle = (len(series) - 1) / 2
    for index, name in enumerate(name for name in looks if name in series):
        rows = series[name]
        y = rows[group].map(groups.index) + (index - middle) * step
        lengths = intervals(rows, value)
        ax.errorbar(rows[value], y, xerr=lengths, linestyle="none", **looks[name])
        if hollow is not None and rows[hollow].any():
            _empty_marks(ax, rows[value], y, rows[hollow], looks[name])
    for row in range(0, len(groups) if shares_rows else 0, 2):
        ax.axhspan(row - 0.5, row + 0.5, **BAND)
    ax.set_yticks(np.arange(len(groups)), groups)
    ax.set_ylim(max(1, len(groups)) - 0.5, -0.5)
    ax.grid(False, axis="y")


def with_counts(table):
    """Return a table whose models have their number of problems in their names, as a
    legend shows it: "m, n = 24", or "m, n = 20 to 24" if it differs between rows.
    """
    of_model = table.groupby("model").n
    fewest, most = (of_model.transform(end).astype(str) for end in ("min", "max"))
    counts = most.where(fewest == most, fewest + " to " + most)
    return table.assign(model=table.model + ", n = " + counts)


def _empty_marks(ax, x, y, is_hollow, looks):
    """Draw hollow marks over those of a series for which the column `is_hollow` is
    true; the legend has the name of the column.
    """
    style = looks | {"label": f"hollow: {is_hollow.name}", "markerfacecolor": "white"}
    ax.plot(x[is_hollow], y[is_hollow], linestyle="none", zorder=3, **style)


def interval_lines(ax, table, x, value, by):
    """Draw estimates with vertical intervals as lines along the column `x`: a series
    for each value of the column `by`, the first one in front.

    x: integers. The columns of the lower and upper bounds follow the column `value`.
    The series are shifted a little to each side, so that no interval hides another. A
    line joins estimates from the same number `n` of problems; those from fewer are
    hollow and not joined.
    """
    looks = tell_apart(table[by])
    series = split(table, by)
    middle = (len(series) - 1) / 2
    for index, rows in reversed([*enumerate(series)]):
        look = looks[rows[by].iloc[0]]
        rows = rows.assign(shifted=rows[x] + (index - middle) * BESIDE)
        fewer = rows.n < rows.n.max()
        _vertical_intervals(ax, rows[~fewer], value, look)
        if fewer.any():
            alone = {"linestyle": "none", "fillstyle": "none"}
            alone["label"] = "hollow: fewer problems"
            _vertical_intervals(ax, rows[fewer], value, look | alone)
    ax.locator_params(axis="x", integer=True)


def _vertical_intervals(ax, rows, value, look):
    """Draw the estimates of a series at the positions in the column `shifted`."""
    lengths = intervals(rows, value)
    ax.errorbar(rows.shifted, rows[value], yerr=lengths, **look)


def intervals(rows, value):
    """Return the distances from the estimates in the column `value` to their bounds,
    below and above, (2, N), as error bars need them; NaN without an interval.
    """
    column = rows.columns.get_loc(value)
    bounds = rows.iloc[:, column + 1 : column + 3].to_numpy(float)
    return np.abs(bounds.T - rows[value].to_numpy(float))
