"""What every token receives from the later ones, for any layer and head of any model of
transformers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["check_attention"],
        "received": ["Observation", "observe", "received_attention"],
    },
)
