"""What a notebook shows: pictures, tables and words; no network, no model.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # and keeps what it drew with its numbers

    drawing   axes, curves of a head, intervals, bars and maps; looks by order
    keeping   a figure's one legend, and how it is saved and shown
    compare   whether a saved figure still shows its numbers, to a reader's eye
    tables    tables in few digits, sentences, and an idea's code, folded
    prompt    one prompt from close, as coloured tokens

What a figure shows, and on which claims it bears, is in data/figures.yaml; the look is
in paper.mplstyle. Still functions of a table of their own, in modules of their own, are
the figures of likelihoods, points and claims.
"""

import lazy_loader

FIGURE_NAMES = {
    "likelihood_figures": [
        "answer_at_once",
        "likelihood",
        "likelihood_courses",
        "overview",
    ],
    "matrix": ["claims_matrix"],
    "points_figure": ["points"],
}
DRAWING = {
    "drawing": [
        "accuracy_bars",
        "NO_CHANGE",
        "PAGE_WIDTH",
        "first_tokens",
        "grid",
        "interval_lines",
        "interval_rows",
        "layer_head_map",
        "shade_inserted",
        "split",
        "tell_apart",
        "token_curves",
    ],
    "keeping": ["keep"],
}
PRINTED = {"compare": ["agreement"], "tables": ["about", "say", "show", "unfold"]}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs=FIGURE_NAMES | DRAWING | PRINTED | {"prompt": ["one_prompt"]}
)
