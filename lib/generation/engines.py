"""The engines by name, and workers: each is imported when it is asked for.

writer = make_engine("transformers", loaded, batch_size=8, options={})
"""

import importlib
import inspect

from lib.errors import InputError


def engine_class(name: str):
    """Return the class of an engine.

    Raises InputError when what it needs is not installed.
    """
    return importlib.import_module(f"lib.generation.{name}").Engine


def workers_class():
    """Return the class `Workers`; raises InputError when Ray is not installed."""
    return importlib.import_module("lib.generation.workers").Workers


def make_engine(name: str, loaded, batch_size: int | None, options: dict[str, int]):
    """Return the engine called `name`, ready for prompts.

    Raises InputError for an option that it does not have.
    """
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)[2:]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise InputError(
            f"engine {name} has no option {unknown[0]!r}: choose from"
            f" {', '.join(known) or '(none)'}"
        )
    return engine(loaded, batch_size, **options)
