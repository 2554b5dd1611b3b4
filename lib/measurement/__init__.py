"""Measure received attention and MLP activations of a profile's models, over all of its
problems, and tabulate them.

    variables       the variables, networks and steps that can be measured
    run             `measure`: the measurements of a profile, stored or computed now
    measurements    which measurements of one model are stored, and where
    dataset_files   the files: a row for each step, or one file with all steps
    networks        load the trained and untrained networks, and run a step on one
    attention       λ and the other changes that insertions cause in received attention
    activations     the changes that insertions and ARM cause in MLP activations
    affine          how well the affine map of Eq. 2 describes layer 1's outputs
    network_tables  DataFrames over all problems, to draw or print
    head_curves     the attention that each token receives in the heads of a figure
    page_prompt     one prompt with fillers of increasing length, for the web page
    try_it          one prompt with any filler, interactively, for notebook 00
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["head_curves", "network_tables", "try_it"],
    submod_attrs={"run": ["measure"]},
)
