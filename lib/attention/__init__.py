"""The attention that every token receives from later tokens, for any layer and head of
any model of transformers.

    function   one attention for every family, which `attending` activates and `hiding`
               restricts to some tokens and layers
    received   the attention that each token receives, without a T x T array: `observe`
    check      whether this attention equals the model's, tested on ten tokens
    steps      attention in a decoding step, in which each row has one query
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["check_attention"],
        "received": ["Observation", "observe", "received_attention"],
    },
)
