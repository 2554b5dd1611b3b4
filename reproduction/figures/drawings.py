"""Draw the attention that tokens receive as curves, estimates with intervals as rows,
lines or bars, and matrices: λ of every layer and head, and the verdict on every claim
for every model.

In a table, the two columns after an estimate are the bounds of its interval.
"""

from textwrap import fill

import numpy as np
from matplotlib.colors import LogNorm

from reproduction.figures.saved_figures import NO_CHANGE, WIDE_AND_PALE_LINE, tell_apart

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


def crossed_intervals(ax, table, x, y, series):
    """Draw estimates of two quantities as marks with intervals in both directions: a
    series, joined by a line, for each list of conditions.

    x, y: columns, which the columns of their lower and upper bounds follow. series: the
    conditions of each series, by its name.
    """
    rows = table.set_index("condition")
    for name, look in tell_apart(series).items():
        some = rows.loc[series[name]]
        lengths = {"xerr": intervals(some, x), "yerr": intervals(some, y)}
        ax.errorbar(some[x], some[y], **lengths, **look)


LAMBDAS = [0.5, 0.7, 1, 1.4, 2]  # ticks of the colour scale
GROUP_WIDTH = 0.87  # of a model's bars together, in units of the distance of models
LABEL_WIDTH = 9  # characters per line of the label below a group of bars
BELOW, NUMBER_SIZE = 3, 5.5  # points: from the axis to a bar's number, and its size
CLAIM_WIDTH, MODEL_WIDTH = 84, 14  # characters per line of a claim, of a model's name
LOST = ("†", "not significant (Holm)")  # the sign next to a verdict, and its meaning
NOT_LEARNT = ("=", "same verdict if untrained")


def lambda_map(axes, models):
    """Draw λ of every layer and head, a panel per model with one colour scale. A dot
    marks an interval above 1.

    models: for each panel, a model's rows of `network_tables.heads_table`.
    """
    for ax, rows in zip(axes, models, strict=True):
        wide = rows.pivot(index="layer", columns="head", values="lambda").astype(float)
        scale = LogNorm(LAMBDAS[0], LAMBDAS[-1])
        cells = (wide.columns, wide.index, wide)
        image = ax.pcolormesh(*cells, cmap="PuOr_r", norm=scale)
        above = rows[rows.low > 1]
        label = "95 % interval above 1"
        ax.plot(above["head"], above.layer, "k.", markersize=4, label=label)
        ax.set(title=rows.model.iloc[0], xlabel="Head", ylabel="Layer", facecolor="0.8")
        ax.set_ylim(ax.get_ylim()[::-1])
        ax.locator_params(integer=True)

    legend = {"label": "λ = received with / without slashes", "format": "{x:g}"}
    figure = axes[0].figure
    bar = figure.colorbar(image, ax=list(axes), ticks=LAMBDAS, extend="both", **legend)
    bar.minorticks_off()


def accuracy_bars(ax, both):
    """Draw a bar per condition with its interval, in a group per source and model. The
    paper's bars are hatched.

    both: the rows of `answer_tables.beside_the_paper`.
    """
    groups = both.groupby(["source", "model"], sort=False)
    step = GROUP_WIDTH / groups.size().max()
    centres = groups.ngroup() + step * groups.cumcount()
    looks = tell_apart(both.condition)
    for condition, rows in both.groupby("condition", sort=False):
        look = {name: looks[condition][name] for name in ("color", "label")}
        lengths = intervals(rows, "accuracy")
        ax.bar(centres[rows.index], rows.accuracy, step - 0.02, yerr=lengths, **look)

    paper = both[both.source == "the paper"]
    hatched = {"fill": False, "hatch": "/////", "label": "the paper's numbers"}
    ax.bar(centres[paper.index], paper.accuracy, step - 0.02, **hatched)
    # Below the axis, a number lies on no hatching and on no interval.
    below = {"xytext": (0, -BELOW), "textcoords": "offset points", "size": NUMBER_SIZE}
    below |= {"ha": "center", "va": "top"}
    for centre, accuracy in zip(centres, both.accuracy.round(1), strict=True):
        ax.annotate(f"{accuracy:g}", (centre, 0), **below)

    middles = centres.groupby([both.source, both.model], sort=False).mean()
    names = [
        f"{fill(model, LABEL_WIDTH)}\n({source})" for source, model in middles.index
    ]
    ax.set_xticks(middles, names)
    ax.tick_params("x", length=0, pad=2 * BELOW + NUMBER_SIZE)
    ax.set(ylabel="Accuracy (%)", ylim=(0, 100))
    ax.grid(False, axis="x")


def claims_matrix(ax, rows, models, marks):
    """Draw a mark for each claim and model. Next to it, † means that a decided verdict
    is not significant after Holm's correction, = that untrained networks get it, too.

    rows: a table of verdicts with the columns model, claim, word, lost and, if any
    network was untrained, specific. marks: the style of the mark for each word.
    """
    sentences = list(dict.fromkeys(rows.claim))
    for row in rows.itertuples():
        point = (models.index(row.model), sentences.index(row.claim))
        look = marks[row.word]
        ax.plot(*point, linestyle="none", markersize=6, label=row.word, **look)
        signs = _signs(row)
        ax.annotate(signs, point, (5, 0), textcoords="offset points", va="center")
    for sign, meaning in (LOST, NOT_LEARNT):
        look = {"marker": f"${sign}$", "color": "k", "markeredgewidth": 0}
        ax.plot([], [], linestyle="none", markersize=5, label=meaning, **look)
    ax.set_yticks(
        range(len(sentences)), [fill(text, CLAIM_WIDTH) for text in sentences]
    )
    ax.set_xticks(range(len(models)), [fill(name, MODEL_WIDTH) for name in models])
    ax.set(xlim=(-0.5, len(models) - 0.5), ylim=(len(sentences) - 0.5, -0.5))
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.spines[:].set_visible(False)


def _signs(row):
    """Return the signs next to the verdict of a row."""
    lost = LOST[0] if row.lost else ""
    same = getattr(row, "specific", None) is False
    return lost + NOT_LEARNT[0] if same else lost
