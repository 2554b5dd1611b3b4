"""Draw bars of accuracies with the paper's, and matrices: λ of every layer and head,
and the verdict on every claim for every model.
"""

from textwrap import fill

from matplotlib.colors import LogNorm

from lib.figures.curves_and_intervals import intervals
from lib.figures.figure_style import tell_apart

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
