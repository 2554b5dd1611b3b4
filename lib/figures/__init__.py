"""Show pictures, tables and sentences in a notebook; no model is needed.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # saves the figure and its numbers

    drawing   axes, styles of series, curves of a head, estimates with intervals;
              `keep` adds the legend, saves the figure and shows it
    tables    tables rounded for readers, sentences, and the comparison that decides
              whether a stored table is written again
    panels    the panels of single figures
    close_up  one prompt in detail, as coloured tokens and curves

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
        "tables": [
            "in_words",
            "quoted",
            "settings_text",
            "say",
            "show",
            "side_by_side",
        ],
    },
)
