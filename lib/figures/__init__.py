"""Show pictures, tables and sentences in a notebook, without network and model.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # and saves the figure with its numbers

    drawing   axes, styles of series, curves of a head, estimates with intervals; the
              legend of a figure, and how it is saved and shown
    tables    tables in few digits, and files that change only if a reader sees it;
              sentences
    panels    the panels of single figures
    close_up  one prompt close up, as coloured tokens and curves

Captions are in data/figures.yaml; the style is in paper.mplstyle.
"""

import lazy_loader

DRAWING = [
    "NO_CHANGE",
    "PAGE_WIDTH",
    "PAPER_COLOURS",
    "WIDE_AND_PALE_LINE",
    "grid",
    "interval_lines",
    "interval_rows",
    "intervals",
    "keep",
    "mark_insertion",
    "original_curves",
    "shade_inserted",
    "split",
    "tell_apart",
    "token_curves",
]

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "drawing": DRAWING,
        "panels": ["accuracy_bars", "claims_matrix", "lambda_map", "ratio_curve"],
        "tables": ["in_words", "quoted", "settings_text", "say", "show"],
    },
)
