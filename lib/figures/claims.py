"""The claims on one axis: how far inside its range each one lies."""

import numpy as np

from lib.figures.style import Look

VERDICT_LOOKS = {
    "supported": Look("#0072B2", "-", "o", ("supported",)),
    "contradicted": Look("#D55E00", "-", "X", ("contradicted",)),
    "undecided": Look("#000000", "-", "d", ("undecided",)),
}


def draw_claims(ax, labels, verdicts, margins, lows, highs, papers):
    """Draw every claim's distance inside what it claims, in standard deviations, with its interval; return the points.

    The arrays are (n,), a row each from the top, NaN where a claim was not tested; `papers` holds the paper's own
    numbers on the same axis, NaN where it gives none. Right of 0 the claim holds. The axis is linear to 1, then log.
    """
    ax.axvline(0, color="0.35", linestyle="--", linewidth=0.8, zorder=1)
    drawn, reach = [], 1.2 * np.nanmax(np.abs([*margins, *lows, *highs, 1.0]))
    for place, (verdict, margin, low, high, paper) in enumerate(
        zip(verdicts, margins, lows, highs, papers, strict=True)
    ):
        look, y = VERDICT_LOOKS[verdict], len(labels) - 1 - place
        ax.hlines([y], [low], [high], color=look.colour, linewidth=1.1)
        drawn += ax.plot([margin], [y], color=look.colour, linestyle="none", marker=look.marker, markersize=5)
        ax.plot([paper], [y], color="0.3", linestyle="none", marker="|", markersize=9, markeredgewidth=1.2)
        if np.isnan(margin):
            ax.text(0.02, y, "not tested", va="center", color="0.3")
    ax.set_yticks(range(len(labels))[::-1], labels)
    ax.set_xscale("symlog", linthresh=1, linscale=2)
    ax.set(xlim=(-reach, reach), ylim=(-0.6, len(labels) - 0.4))
    ax.set_xlabel("contradicts  ←  distance inside the claimed range (standard deviations over problems)  →  supports")
    ticks = [t for t in (-100, -10, -1, -0.5, 0, 0.5, 1, 10, 100) if abs(t) <= reach]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    marks = [(look.marker, look.colour, name) for name, look in VERDICT_LOOKS.items()]
    for marker, colour, name in [*marks, ("|", "0.3", "the paper's number")]:
        ax.plot([], [], color=colour, marker=marker, linestyle="none", label=name)
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, borderaxespad=0.2)
    return drawn
