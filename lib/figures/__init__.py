"""Show pictures, tables and sentences in a notebook; no model is needed.

    figure, axes = figures.grid(2)  # a cell draws on axes,
    figures.keep(run, "fig09", figure, table)  # saves the figure and its numbers

    figure_style          axes as wide as a page; colour and marker of each series
    curves_and_intervals  curves of a head, and estimates with intervals
    bars_and_matrices     accuracies as bars; λ of every head and verdicts as matrices
    saved_figures         `keep` adds the legend, saves the figure and shows it
    single_prompt_figure  one prompt in detail, as coloured tokens and curves
    notebook_tables       tables rounded for readers, and sentences
    table_files           tables as csv, and the comparison that decides whether a
                          stored table is written again

Captions are in data/figures.yaml; the style is in paper.mplstyle.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "bars_and_matrices": ["accuracy_bars", "claims_matrix", "lambda_map"],
        "curves_and_intervals": [
            "interval_lines",
            "interval_rows",
            "intervals",
            "mark_insertion",
            "original_curves",
            "ratio_curve",
            "shade_inserted",
            "split",
            "token_curves",
            "with_counts",
        ],
        "figure_style": [
            "NO_CHANGE",
            "PAGE_WIDTH",
            "PAPER_COLOURS",
            "WIDE_AND_PALE_LINE",
            "grid",
            "tell_apart",
        ],
        "saved_figures": ["keep"],
        "notebook_tables": [
            "in_words",
            "quoted",
            "settings_text",
            "say",
            "show",
            "side_by_side",
        ],
    },
)
