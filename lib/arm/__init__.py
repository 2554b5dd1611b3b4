"""The Activation Redistribution Module (Sec. 4) and the activations that it moves.

Settings can be checked without torch: what needs it is imported when it is first asked
for.

    settings      ARM's settings, their ranges, and how a text names them
    activations   where an MLP's activations are, and the measures of them
    moving        ARM itself: what it moves, and the hook that moves it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"moving": ["installed", "redistribute"], "settings": ["Arm"]},
)
