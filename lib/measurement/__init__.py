"""What a profile measures on its models: received attention and MLP activations, over
all problems, as tables.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["activation_tables", "head_curves", "measured_tables"],
    submod_attrs={"run": ["measure"], "try_it": ["TryIt"]},
)
