"""Show pictures, tables and sentences in a notebook; no model is needed.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # saves the figure and its numbers

    saved_figures         axes as wide as a page, the colour and marker of each series,
                          and `keep`, which adds the legend, saves the figure and shows
                          it
    drawings              how each kind of figure is drawn: curves of a head, estimates
                          with intervals as rows or lines, bars, matrices
    single_prompt_figure  one prompt in detail, as coloured tokens and curves
    notebook_tables       tables rounded for readers, and sentences; tables as csv, and
                          the comparison that decides whether one is written again

A notebook's cell decides what its figure shows, such as those of
notebooks/08_why.ipynb: the table, the columns and the titles. `drawings` serves all
notebooks. Captions are in data/figures.yaml, the sizes of marks, lines and letters in
paper.mplstyle.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "drawings": [
            "accuracy_bars",
            "claims_matrix",
            "crossed_intervals",
            "interval_lines",
            "interval_rows",
            "lambda_map",
            "original_curves",
            "ratio_curve",
            "shade_inserted",
            "split",
            "token_curves",
            "with_counts",
        ],
        "saved_figures": [
            "NO_CHANGE",
            "PAGE_WIDTH",
            "PAPER_COLOURS",
            "WIDE_AND_PALE_LINE",
            "grid",
            "keep",
            "tell_apart",
        ],
        "notebook_tables": [
            "in_words",
            "quoted",
            "prompt_form",
            "settings_text",
            "short",
            "say",
            "show",
            "side_by_side",
            "text_describes",
        ],
    },
)
