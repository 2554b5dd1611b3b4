"""Measure received attention and MLP activations of a profile's models, over all of its
problems, and tabulate them.

    measurement_run      `measure`: a profile's measurements, stored or computed now
    networks             load trained and untrained networks, and run a step on one
    dataset              the variables that are measured, their steps and files

Measures:

    attention_changes    λ and the other changes that insertions cause in received
                         attention, and the tokens that count for them
                         (`averaged_tokens`)
    activation_changes   the changes that insertions and ARM cause in MLP activations
    affine_map           how well the affine map of Eq. 2 describes layer 1's outputs

Tables:

    network_tables       DataFrames over all problems, to draw or print
    head_curves          the attention that each token receives in the heads of a figure

One prompt instead of all problems:

    single_prompt        the attention that its tokens receive, and λ of an insertion
    interactive_prompt   a prompt and filler that the user types, for notebook 00
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["head_curves", "interactive_prompt", "network_tables"],
    submod_attrs={"measurement_run": ["measure"]},
)
