"""The Activation Redistribution Module (the paper's Sec. 4) and the activations that it moves.

    with installed(model, layer=1, c=0.13, p1=99.5): ...

What needs torch is imported when it is first asked for, so that settings can be checked without it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"moving": ["installed", "redistribute"], "settings": ["Arm"]}
)
