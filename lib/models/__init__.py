"""Load a model by its name: tokenizer and weights, of all layers or of the first ones.

    sources           resolve a name such as `demo` or `org/name@main` to a `Source`,
                      with the entries of data/models.yaml or of its config.json, and
                      whether its weights can be had
    checkpoint        a folder of safetensors: its shards, checks that it can be used,
                      and a digest of it
    hub               download a complete model from the hub, or the byte ranges of its
                      first layers
    conversion        convert a GGUF model into a checkpoint in the cache
    loading           `load`, which uses all of these and returns a `Loaded`, with the
                      weights of a checkpoint or random ones; `read_config` names the
                      config's field of a soft cap, for a new family that has one
    available_memory  the memory that this machine or job leaves

Names and configs are read without torch, so that a mistyped name, a missing wheel or a
head that the model lacks is reported at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "loading": ["Loaded", "load"],
        "sources": ["known_models", "resolve"],
    },
)
