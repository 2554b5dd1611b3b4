"""The claims of several models as a matrix: a verdict's colour and mark in each cell, and the numbers behind it."""

from matplotlib.patches import Rectangle

from lib.figures.claims import VERDICT_LOOKS

# Of the tints of the cells: what is contradicted is the darkest in grey, what is undecided nearly white.
TINTS = {"supported": "#BFDDEE", "contradicted": "#EFAE7F", "undecided": "#F4F4F4"}


def draw_matrix(ax, claims, models, cells):
    """Draw a row per claim from the top and a column per model; return the marks of the cells.

    `cells`: (claim, model) -> (verdict, whether untrained networks share it, text). A filled mark is the trained
    model's own verdict, a hollow one also that of untrained networks. What was not tested stays empty.
    """
    marks = []
    for row, claim in zip(range(len(claims))[::-1], claims, strict=True):
        for column, model in enumerate(models):
            if (claim, model) not in cells:
                ax.text(column + 0.5, row + 0.5, "not tested", ha="center", va="center", color="0.45", size=5.5)
                continue
            verdict, shared, text = cells[claim, model]
            look = VERDICT_LOOKS[verdict]
            ax.add_patch(Rectangle((column, row), 1, 1, facecolor=TINTS[verdict], linewidth=0))
            face = "white" if shared else look.colour
            marks += ax.plot(
                [column + 0.09], [row + 0.5], marker=look.marker, color=look.colour, markerfacecolor=face, markersize=6
            )
            ax.text(column + 0.18, row + 0.5, text, va="center", size=5.5, linespacing=1.25)
    ax.set(xlim=(0, len(models)), ylim=(0, len(claims)))
    ax.set_xticks([column + 0.5 for column in range(len(models))], models)
    ax.set_yticks([row + 0.5 for row in range(len(claims))], list(reversed(claims)))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.hlines(range(len(claims) + 1), 0, len(models), color="white", linewidth=1.5)
    ax.vlines(range(len(models) + 1), 0, len(claims), color="white", linewidth=3)
    for name, look in VERDICT_LOOKS.items():
        ax.plot([], [], marker=look.marker, color=look.colour, linestyle="none", label=name)
    hollow = {"marker": "o", "markerfacecolor": "white", "color": "0.2", "linestyle": "none"}
    ax.plot([], [], **hollow, label="hollow: untrained networks get the same verdict")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0), ncols=4, borderaxespad=0.3)
    return marks
