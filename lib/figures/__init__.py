"""Figures and tables that a notebook shows: tables go in, pictures and csv come out; no
network, no model.
"""

import lazy_loader

FIGURES = [
    "fig04",
    "fig06",
    "fig07",
    "fig08",
    "fig09",
    "fig10",
    "fig10_right",
    "fig11",
    "fig12",
    "fig13",
    "fig18",
]
FIGURES += [
    "activations_by_layer",
    "answer_at_once",
    "causes",
    "inserted_span",
    "lambda_by_head",
    "lambda_by_layer",
]
FIGURES += [
    "claims_matrix",
    "lambda_map",
    "likelihood",
    "likelihood_courses",
    "overview",
]

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "catalogue": FIGURES,
        "page": ["agreement", "say", "show"],
        "prompt": ["one_prompt"],
    },
)
