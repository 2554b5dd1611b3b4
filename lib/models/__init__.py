"""From a model's name to a tokenizer and a decoder, whole or only its first layers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "loading": ["Loaded", "load"],
        "names": ["arm_for", "known_models", "resolve"],
    },
)
