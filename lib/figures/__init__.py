"""Figures and tables that a notebook shows: tables go in, pictures and csv come out; no
network, no model.

Every figure is a function of a table, by its name in figures/PROFILE. FIGURE_NAMES
below lists them by module:

    attention_figures    attention and λ over all problems, layers and heads
    head_figures         curves of single heads, as the paper draws them
    activation_figures   activations of the first MLP
    answer_figures       right answers, graders and parameters of fillers and ARM
    likelihood_figures   likelihoods of worked solutions and of answers at once
    points_figure        changes of right answers in points
    matrix               every claim in every model

What a notebook's cell draws with, in their place:

    drawing   axes, curves of a head, intervals, bars and maps; looks by order
    keeping   a figure's one legend, and how it is saved and shown

The functions of figures share

    looks     the colour, marker and name of a condition, a model or an outcome
    draw      what several figures draw on one panel
    forest    intervals of differences, one row below the other
    layout    the page of panels, legend and caption, and how it is saved
    compare   whether a saved figure still shows its numbers, to a reader's eye

A notebook prints with `tables`, unfolds an idea's code with `source`, and shows one
prompt from close, as a page of coloured tokens, with `prompt`.
"""

import lazy_loader

FIGURE_NAMES = {
    "activation_figures": ["fig04", "fig07"],
    "answer_figures": ["fig06", "fig08", "fig10", "fig12", "same_answers"],
    "attention_figures": [
        "causes",
        "inserted_span",
        "lambda_by_head",
        "lambda_by_layer",
        "lambda_map",
        "mass_by_layer",
    ],
    "head_figures": ["fig09", "fig10_right", "fig11", "fig13", "fig18"],
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
PRINTED = {"compare": ["agreement"], "source": ["unfold"], "tables": ["say", "show"]}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs=FIGURE_NAMES | DRAWING | PRINTED | {"prompt": ["one_prompt"]}
)
