"""The measurements of a profile on its models: received attention and MLP activations,
over all problems, as tables.

    variables       the variables, networks and steps that can be measured
    run             measure what a profile still lacks: `measure`
    measurements    the measurements of one model: what is stored, what is missing
    dataset_files   measurements as a row per step, or all in one file
    networks        the trained and untrained networks, one after another
    attention       λ and the other changes that insertions cause in received attention
    activations     the changes that insertions and ARM cause in the first MLP
    affine          how well Eq. 2's map describes layer 1's outputs
    network_tables  DataFrames over all problems, to draw or print
    head_curves     the attention that each token receives in the heads of a figure
    page_prompt     one prompt with ever more inserted tokens, for the page
    try_it          one prompt and any filler, interactively, for notebook 00
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["head_curves", "network_tables", "try_it"],
    submod_attrs={"run": ["measure"]},
)
