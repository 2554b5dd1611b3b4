"""Measure the attention that every token receives from later tokens, in any layer and
head of a model of transformers.

    custom_attention   one attention function for all architectures, which `attending`
                       activates, and in which `hiding` hides tokens in some layers
    query_blocks       attention scores in blocks of queries, with windows, soft caps
                       and sinks, and their softmax; steps of generation, with one query
                       per row
    received           the attention that each token receives, without a T x T array:
                       `observe`
    equivalence_check  the check on ten tokens that this attention equals the model's
    model_properties   a model's device, and its longest context

Models that do not use transformers' attention interface, or have other kinds of
attention, are refused when they are loaded (see `equivalence_check`). Whether a new
family has a soft cap is read in `lib.models.loading`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "equivalence_check": ["check_attention"],
        "received": ["Observation", "observe", "received_attention"],
    },
)
