"""What a profile measures on its models: received attention and MLP activations, over
all problems, as tables.

    variables       the variables, networks and steps: what there is to measure
    run             all that a profile measures, as far as it is lacking: `measure`
    datasets        a model's measurements as they are kept: a row a step, and as one
    networks        the networks, trained and untrained, one after another
    attention       λ and what else insertions change in what tokens receive
    activations     what insertions and ARM change in the first MLP's activations
    affine          how well Eq. 2's map describes what layer 1 puts out
    network_tables  DataFrames of all of it over all problems, to draw or print
    head_curves     what single heads that figures draw give each token
    page_prompt     one prompt under more and more of a filler, for the page
    try_it          one prompt and any filler, live, for notebook 00
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["head_curves", "network_tables", "try_it"],
    submod_attrs={"run": ["measure"]},
)
