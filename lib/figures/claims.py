"""The claims on one axis, how far inside its range each one lies, and those of several models as a matrix."""

import numpy as np
from matplotlib.patches import Rectangle

from lib.figures.style import Look

NO_EFFECT = "no effect of that size"
VERDICT_LOOKS = {
    "supported": Look("#0072B2", "-", "o", ("supported",)),
    "contradicted": Look("#D55E00", "-", "X", ("contradicted",)),
    NO_EFFECT: Look("#009E73", "-", "s", (NO_EFFECT,)),
    "undecided": Look("#000000", "-", "d", ("undecided",)),
}
UNTRAINED = {"marker": "o", "linestyle": "none", "markerfacecolor": "none"}
# Of a cell: what is contradicted is the darkest in grey, what is undecided nearly white.
TINTS = {"supported": "#BFDDEE", "contradicted": "#EFAE7F", NO_EFFECT: "#D5E8E1", "undecided": "#F4F4F4"}
PAPER = {"marker": "|", "linestyle": "none", "markeredgewidth": 1.4}


def draw_claims(ax, labels, told, verdicts, margins, lows, highs, papers, controls):
    """Draw every claim's distance inside what it claims, in standard deviations, with its interval; return the points.

    The arrays are (n,), a row each from the top, NaN where a claim was not tested; `papers` and `controls` are the
    paper's and the untrained networks' numbers, NaN where there is none. `told` is written at the right. Right of 0,
    shaded, is what the paper claims. The axis is linear to 1, then logarithmic.
    """
    reach = 1.2 * np.nanmax(np.abs([*margins, *lows, *highs, 1.0]))
    ax.axvspan(0, reach, color="0.93", zorder=0)
    ax.axvline(0, color="0.35", linestyle="--", linewidth=0.8, zorder=1)
    drawn, places = [], range(len(labels))[::-1]
    for y, text, verdict, margin, low, high in zip(places, told, verdicts, margins, lows, highs, strict=True):
        look = VERDICT_LOOKS[verdict]
        ax.hlines([y], [low], [high], color=look.colour, linewidth=1.1)
        drawn += ax.plot([margin], [y], color=look.colour, linestyle="none", marker=look.marker, markersize=5)
        ax.text(1.01, y, text, transform=ax.get_yaxis_transform(), va="center", fontsize="small")
    below = [place - 0.28 for place in places]
    ax.plot(controls, below, label="untrained networks", markersize=4, markeredgecolor="0.35", **UNTRAINED)
    ax.plot(papers, places, label="the paper's number", markersize=9, markeredgecolor="0.3", **PAPER)
    ax.set_yticks(places, labels)
    ax.set_xscale("symlog", linthresh=1, linscale=2)
    ax.set(xlim=(-reach, reach), ylim=(-0.6, len(labels) - 0.4))
    ax.set_xlabel(
        "not as claimed  \N{LEFTWARDS ARROW}  0: the edge of the claim  \N{RIGHTWARDS ARROW}  as claimed\n"
        "(distance in standard deviations over problems)"
    )
    ticks = [t for t in (-100, -10, -1, -0.5, 0, 0.5, 1, 10, 100) if abs(t) <= reach]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    _name_verdicts(ax)
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, borderaxespad=0.2)
    return drawn


def draw_matrix(ax, claims, models, cells):
    """Draw a row per claim from the top and a column per model; return the marks, hollow where a verdict is shared.

    `cells`: (claim, model) -> (verdict, whether untrained networks share it, text).
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
            mark = {"color": look.colour, "markerfacecolor": "white" if shared else look.colour, "markersize": 6}
            marks += ax.plot([column + 0.09], [row + 0.5], marker=look.marker, **mark)
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
    _name_verdicts(ax)
    hollow = {"marker": "o", "markerfacecolor": "white", "color": "0.2", "linestyle": "none"}
    ax.plot([], [], **hollow, label="hollow: untrained networks get the same verdict")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0), ncols=4, borderaxespad=0.3)
    return marks


def _name_verdicts(ax):
    for name, look in VERDICT_LOOKS.items():
        ax.plot([], [], color=look.colour, marker=look.marker, linestyle="none", label=name)
