"""Every claim that was tested, on every model: how it stands, mark beside mark."""

from textwrap import fill

# Of how a claim stands: what the legend says, the marker, its colour, and its fill.
MARKS = {
    "supported": ("holds", "o", "#0072B2", "full"),
    "in part": ("holds in part", "o", "#0072B2", "left"),
    "small": ("within the margin: small", r"$\approx$", "#000000", "full"),
    "undecided": ("undecided", "$?$", "0.45", "full"),
    "contradicted": ("does not hold", "X", "#D55E00", "full"),
    "too few": ("too few problems to tell", "_", "0.6", "full"),
}
SENTENCE_LETTERS = 104  # of a line
MODEL_LETTERS = 13


def claims_matrix(ax, table, models):
    """Draw a row per claim from the top and a column per model, with a mark where it
    was tested, and † beside what does not stand when corrected for the number of all;
    return the marks.

    table: columns claim, model, mark and lost of verdicts; models: their order.
    """
    claims = list(dict.fromkeys(table.claim))
    places = table.assign(
        x=table.model.map(models.index), y=table.claim.map(claims.index)
    )
    marks = []
    for name, (label, marker, colour, filled) in MARKS.items():
        rows = places[places.mark == name]
        style = {"marker": marker, "color": colour, "fillstyle": filled}
        style |= {"linestyle": "none", "markersize": 6, "label": label}
        style["markeredgewidth"] = 0 if marker.startswith("$") else 1
        marks += ax.plot(rows.x, rows.y, **style) if len(rows) else []
    for row in places[places.lost].itertuples():
        ax.text(row.x + 0.12, row.y, "†", va="center")

    sentences = [fill(claim, SENTENCE_LETTERS) for claim in claims]
    ax.set_yticks(range(len(claims)), sentences, linespacing=0.95)
    ax.set_xticks(range(len(models)), [fill(name, MODEL_LETTERS) for name in models])
    ax.set(xlim=(-0.5, len(models) - 0.5), ylim=(len(claims) - 0.5, -0.5))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False, axis="x")
    ax.spines[:].set_visible(False)
    return marks
