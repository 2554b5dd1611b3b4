"""What a notebook shows: pictures, tables and words; no network, no model.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # and keeps what it drew with its numbers

    drawing   axes, looks by order, curves of a head, estimates with intervals; a
              figure's one legend, and how it is saved and shown
    tables    tables in few digits, and in files that change when a reader sees it;
              sentences
    close_up  one prompt from close, as coloured tokens

What a figure shows is in data/figures.yaml; the look is in paper.mplstyle.
"""

import lazy_loader

DRAWING = [
    "NO_CHANGE",
    "PAGE_WIDTH",
    "PAPER_COLOURS",
    "WIDE_AND_PALE_LINE",
    "grid",
    "interval_rows",
    "intervals",
    "keep",
    "shade_inserted",
    "split",
    "tell_apart",
    "token_curves",
]

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "drawing": DRAWING,
        "tables": ["quoted", "settings_text", "say", "show"],
    },
)
