"""From a model's name to a tokenizer and a decoder, complete or only its first layers.

    names          resolve a name such as `demo` or `org/name@main` to a `Source`, with
                   the entries of data/models.yaml and of its config.json
    checkpoint     a folder of safetensors: its shards, the checks that make it usable,
                   and a digest of it
    hub            download a complete model from the hub, or the byte ranges of its
                   first layers
    conversion     convert a GGUF model into a checkpoint in the cache
    weights        build a model with the weights of a checkpoint, or with random ones
    memory         the free memory, including a job's limit
    loading        all of this with config and tokenizer: `load` returns a `Loaded`

Properties that do not depend on weights are known without torch. So a mistyped name, a
missing wheel or a head that the model lacks is refused at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "loading": ["Loaded", "load"],
        "names": ["arm_for", "known_models", "resolve"],
    },
)
