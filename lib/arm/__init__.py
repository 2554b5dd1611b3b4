"""The Activation Redistribution Module (Sec. 4) and the activations that it moves.

Settings can be checked without torch: modules that need it are imported on first use.

    settings         ARM's settings, their ranges, and their textual form
    mlp_activations  the output of an MLP's activation function, and measures of it
    redistribution   ARM itself: how activations are moved, also in a model: `installed`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "redistribution": ["installed", "redistribute"],
        "settings": ["Arm"],
    },
)
