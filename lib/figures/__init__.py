"""What a notebook shows: pictures, tables and words; no network, no model.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # and keeps what it drew with its numbers

    drawing   axes, curves of a head, intervals, bars and maps; looks by order
    matrix    every claim on every model
    keeping   a figure's one legend, and how it is saved and shown
    compare   whether a saved figure still shows its numbers, to a reader's eye
    tables    tables in few digits, sentences, and an idea's code, folded
    prompt    one prompt from close, as coloured tokens

What a figure shows, and on which claims it bears, is in data/figures.yaml; the look is
in paper.mplstyle.
"""

import lazy_loader

DRAWING = {
    "matrix": ["claims_matrix"],
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
PRINTED = {
    "compare": ["agreement"],
    "tables": ["settings_text", "say", "show", "unfold"],
}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs=DRAWING | PRINTED | {"prompt": ["one_prompt"]}
)
