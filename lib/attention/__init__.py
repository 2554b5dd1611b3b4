"""What every token receives from the later ones, for any layer and head of any model of
transformers.

    function   one attention for every family, switched on by `attending`, that can
               hide tokens from layers: `hiding`
    received   what each token receives, without a T x T array: `observe`
    check      whether this attention is the model's own, tried on ten tokens
    steps      attention in a step of generation, where each row has one query
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["check_attention"],
        "received": ["Observation", "observe", "received_attention"],
    },
)
