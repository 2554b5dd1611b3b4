"""The figures of single heads on one prompt: what each of its tokens receives.

    figures.fig13(run, curves)  # draws it, saves png, pdf and csv, and shows it

run: a profile; curves and spans: as `lib.measurement.head_curves` makes them.
"""

import numpy as np

from lib.figures import draw
from lib.figures.draw import HeadCurves
from lib.figures.layout import Layout, in_model_order, page
from lib.figures.looks import RECEIVED

# The panels of a head, by figure: those of the same original tokens, which may have
# their ratios below them, then those of whole prompts.
HEAD_CURVES = {
    "fig09": [HeadCurves({"none": "None", "mless": "Mless"})],
    "fig10_right": [
        HeadCurves(
            {"none": "w/o", "mless": "w/ Mless", "mful": "w/ Mful"},
            title="Average attention on Head {head}: original tokens\n"
            "{model}, layer {layer}",
            fill=True,
        ),
        HeadCurves(
            {"mless": "w/ Mless", "mful": "w/ Mful"},
            title="Average attention on Head {head}: whole prompt\n"
            "{model}, layer {layer}",
        ),
    ],
    "fig11": [
        HeadCurves(
            {"random": "Random sentence", "mless": "Meaningless tokens"},
            shade="inserted tokens",
        )
    ],
    "fig13": [
        HeadCurves(
            {"none": "w/o Meaningless tokens", "mless": "w/ Meaningless tokens"}
        ),
        HeadCurves({"mless": "w/ Meaningless tokens"}, shade="Meaningless tokens"),
    ],
}
HEAD_CURVES["fig18"] = HEAD_CURVES["fig13"]  # heads of another model
FIRST_TOKEN = "The first token takes most of the attention and is left out. "
RATIO = "with / without"


def fig09(run, curves, spans):
    """Draw the same head in layers 1, 2 and 3: its original tokens without and with the
    slashes, and below them the ratio.
    """
    curves = with_ratios(curves)
    heads = _draw_heads(run, curves)
    above = list(range(len(heads)))
    below = [place + len(heads) for place in above]
    layout = Layout(
        panels=2 * len(heads),
        mosaic=[above, below],
        height=1.3,
        heights=(1, 0.5),
        note=_note_of(curves),
    )
    (compared,) = HEAD_CURVES["fig09"]
    saved = [curves, spans[spans.figure == "fig09"]]
    with page(run, "fig09", saved, "attention", layout) as axes:
        for top, bottom, head in zip(*axes.reshape(2, -1), heads, strict=True):
            draw_with_ratios(top, bottom, head, compared)
        axes[0].set_ylabel(RECEIVED)
        axes[len(heads)].set_ylabel(RATIO)
        _share_y(axes[len(heads) :])


def fig10_right(run, curves, spans):
    """Draw one head: its original tokens under three conditions with the ratio below,
    and the whole prompt with either insertion.
    """
    layout = Layout(
        panels=3,
        mosaic=[[0, 2], [1, 2]],
        height=1.3,
        heights=(1, 0.5),
        note=_note_of(curves),
    )
    head = with_ratios(curves)
    saved = [head, spans[spans.figure == "fig10"]]
    with page(run, "fig10_right", saved, "attention", layout) as axes:
        draw_fig10_right(axes, head)


def draw_fig10_right(axes, head):
    """Draw what fig10 has at its right: original tokens, their ratios, whole prompt."""
    originals, whole = HEAD_CURVES["fig10_right"]
    top, ratios, bottom = axes
    draw_with_ratios(top, ratios, head, originals)
    draw.received(bottom, head, whole)
    for ax in (top, bottom):
        ax.set_ylabel(RECEIVED)
    ratios.set_ylabel(RATIO)


def fig11(run, curves, spans):
    """Draw whole prompts, with slashes and with a random sentence as long."""
    heads = _draw_heads(run, curves)
    layout = Layout(panels=len(heads), ylabel=RECEIVED, note=_note_of(curves))
    (compared,) = HEAD_CURVES["fig11"]
    saved = [curves, spans[spans.figure == "fig11"]]
    with page(run, "fig11", saved, "attention", layout) as axes:
        for ax, head in zip(axes, heads, strict=True):
            draw.received(ax, head, compared)


def fig13(run, curves, name="fig13"):
    """Draw heads of layer 1, a column each: the original tokens without and with, below
    the whole prompt with it, on the same y axis.
    """
    heads = _draw_heads(run, curves)
    originals, whole = HEAD_CURVES[name]
    layout = Layout(
        panels=2 * len(heads),
        columns=len(heads),
        ylabel=RECEIVED,
        note=_note_of(curves),
    )
    with page(run, name, [curves], "attention", layout) as axes:
        for top, bottom, head in zip(*axes.reshape(2, -1), heads, strict=True):
            draw.received(top, head, originals)
            draw.received(bottom, head, whole)
            top.set_xlabel("")
            _share_y([top, bottom])


def fig18(run, curves):
    """Draw heads of another model as `fig13` does."""
    fig13(run, curves, name="fig18")


def _draw_heads(run, curves):
    """Return the rows of each head, models in the order of every figure."""
    ordered = in_model_order(run, curves)
    groups = ordered.groupby(["model", "layer", "head"], sort=False)
    return [head for _, head in groups]


def _note_of(curves):
    return f"One prompt, of problem {curves.problem.iloc[0]}. {FIRST_TOKEN}"


def with_ratios(curves):
    """Return curves with a column `ratio`: what an original token receives with an
    insertion over what it receives without.
    """
    curves = curves.assign(ratio=np.nan)
    original = curves[curves.part != "inserted"]
    for _, rows in original.groupby(["model", "layer", "head"], sort=False):
        without = rows.received[rows.condition == "none"].to_numpy()
        for condition in set(rows.condition) - {"none"}:
            received = rows.received[rows.condition == condition]
            curves.loc[received.index, "ratio"] = received / without
    return curves


def draw_with_ratios(top, bottom, head, compared):
    """Draw the curves of the same original tokens, and their ratios below."""
    draw.received(top, head, compared)
    top.set_xlabel("")
    insertions = [condition for condition in compared.names if condition != "none"]
    draw.token_ratios(bottom, head, insertions)
    bottom.set_xlim(top.get_xlim())


def _share_y(axes):
    """Give panels the lowest and the highest end of their y axes."""
    ends = [ax.get_ylim() for ax in axes]
    low = min(low for low, _ in ends)
    high = max(high for _, high in ends)
    for ax in axes:
        ax.set_ylim(low, high)
