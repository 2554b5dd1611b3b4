"""Every claim that was tested, on every model: the outcomes side by side."""

import textwrap
from collections import Counter
from typing import NamedTuple

from matplotlib import patches

from lib.figures.layout import Layout, in_model_order, page
from lib.figures.looks import OUTCOME_LOOKS, WIDTH

# Of a verdict: what it says of the claim.
OUTCOMES = {
    "supported": "holds",
    "in part": "holds in part",
    "contradicted": "does not hold",
    "small": "does not hold",
    "undecided": "undecided",
}
# Inches: the column of a model, a row, the names above, and a letter of a sentence.
COLUMN = 0.72
ROW = 0.235
NAMES_ABOVE = 0.45
SENTENCE_LETTER = 0.043
OTHER_READINGS = "Other readings, and controls"
MATRIX_NOTE = (
    "A claim holds on a model where the whole interval of what was measured lies in the"
    " claimed range. It does not hold where the interval lies outside, or where all of"
    " it is small. †: this does not stand when corrected for the number of all"
    " verdicts. Empty: not tested. "
)


class Cell(NamedTuple):
    """What became of a claim on a model."""

    outcome: str
    lost: bool  # when corrected for the number of all verdicts


def claims_matrix(run, table):
    """Draw each claim that was tested as a sentence with a mark per model, the claims
    that hold on most models first.

    table: a row per claim and model, as `lib.claims` judges them. Other readings than
    the literal one stand below a line of their own.
    """
    tested = in_model_order(run, table[table.n > 0])
    tested = tested.assign(outcome=tested.verdict.map(OUTCOMES))
    decided = tested.outcome != "undecided"
    tested = tested.assign(lost=tested.survives.eq(False) & decided)
    models = list(dict.fromkeys(tested.model))
    literal = tested.reading == "literal"
    rows = _sorted_claims(tested[literal])
    if not literal.all():
        rows += [(OTHER_READINGS, {}), *_sorted_claims(tested[~literal])]
    layout = Layout(height=NAMES_ABOVE + ROW * len(rows), note=MATRIX_NOTE)
    with page(run, "claims_matrix", [table], None, layout) as (ax,):
        for place, (sentence, cells) in enumerate(rows):
            _draw_claim(ax, place, sentence, [cells.get(name) for name in models])
        _matrix_axes(ax, models, len(rows))
        for outcome, look in OUTCOME_LOOKS.items():
            ax.plot([], [], label=outcome, **_mark(look))


def _sorted_claims(table):
    """Return (sentence, Cell by model) of each claim, what holds most first."""
    claims = []
    for _, rows in table.groupby("id", sort=False):
        cells = map(Cell, rows.outcome, rows.lost)
        by_model = dict(zip(rows.model, cells, strict=True))
        claims.append((rows.claim.iloc[0], by_model))

    def rank(claim):
        counts = Counter(cell.outcome for cell in claim[1].values())
        shares = [counts[outcome] / counts.total() for outcome in OUTCOME_LOOKS]
        return [-share for share in shares]

    return sorted(claims, key=rank)


def _draw_claim(ax, place, sentence, cells):
    """Write a claim in a row, and draw its outcome for each model."""
    room = int((WIDTH - COLUMN * len(cells)) / SENTENCE_LETTER)
    heading = not any(cells)
    ax.text(
        -0.15,
        place + 0.5,
        textwrap.fill(sentence, room),
        ha="right",
        va="center",
        linespacing=1.1,
        weight="bold" if heading else "normal",
    )
    for column, cell in enumerate(cells):
        if cell is None:
            continue
        look = OUTCOME_LOOKS[cell.outcome]
        corner = (column, place)
        area = patches.Rectangle(corner, 1, 1, facecolor=look.tint, linewidth=0)
        ax.add_patch(area)
        ax.plot([column + 0.5], [place + 0.5], **_mark(look))
        if cell.lost:
            ax.text(column + 0.62, place + 0.5, "†", va="center")


def _mark(look):
    return {
        "color": look.colour,
        "marker": look.marker,
        "fillstyle": look.fill,
        "markersize": 6,
        "linestyle": "none",
    }


def _matrix_axes(ax, models, rows):
    """Name the models above their columns, and part the cells by white lines."""
    left = 1 - (WIDTH - 0.1) / COLUMN + len(models) - 1
    names = [textwrap.fill(model, 11) for model in models]
    ax.set(xlim=(left, len(models)), ylim=(rows, 0))
    ax.set_xticks([column + 0.5 for column in range(len(models))], names)
    ax.set_yticks([])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.hlines(range(rows + 1), 0, len(models), color="white", linewidth=1.5)
    ax.vlines(range(len(models) + 1), 0, rows, color="white", linewidth=3)
