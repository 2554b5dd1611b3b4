"""The attention that every token receives from later tokens, for any layer and head of
any model of transformers.

    function       one attention for every family, which `attending` activates and
                   `hiding` restricts to some tokens and layers
    blocks         its scores in blocks of queries, and their softmax
    recording      what a forward pass records of it, and what it hides
    received       the attention that each token receives, without a T x T array:
                   `observe`
    check          whether this attention equals the model's, tested on ten tokens
    decoding_step  attention in a step of generation, with one query per row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["check_attention"],
        "received": ["Observation", "observe", "received_attention"],
    },
)
