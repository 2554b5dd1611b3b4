"""From a model's name to a tokenizer and a decoder, whole or only its first layers.

    names          what a text such as `demo` or `org/name@main` stands for: a `Source`,
                   with what data/models.yaml and its config.json know of the model
    checkpoint     a folder of safetensors: its shards, what makes it unusable, and a
                   digest that stands for it
    hub            a whole model from the hub, or the byte ranges of its first layers
    conversion     a GGUF model as a checkpoint in the cache
    weights        a model with the weights of a checkpoint, or with fresh ones
    memory         how much memory is free, a job's own limit included
    loading        all of it, with config and tokenizer: `load`, and `Loaded`, which is
                   what it gives

What is known of a model without its weights is known without torch, so that a mistyped
name, a missing wheel or a head that a model lacks is refused at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "loading": ["Loaded", "load"],
        "names": ["arm_for", "known_models", "resolve"],
    },
)
