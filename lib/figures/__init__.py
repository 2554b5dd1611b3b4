"""Figures and tables that a notebook shows: tables go in, pictures and csv come out; no
network, no model.

Every figure is a function of a table by its name in figures/PROFILE. How things look is
in `looks`, what several figures draw in `draw`, and the page of panels, legend and
caption, which is saved, in `layout`. `compare` tells whether a saved figure still shows
its numbers. Printed tables are in `tables`, the code that a notebook unfolds in
`source`, and one prompt seen from close in `prompt`.
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
PRINTED = {"compare": ["agreement"], "source": ["unfold"], "tables": ["say", "show"]}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs=FIGURE_NAMES | PRINTED | {"prompt": ["one_prompt"]}
)
