"""Prompts in, completions out, through one small interface.

    for completion in engine_class("transformers")(loaded, batch_size=64).complete(requests, sampling): ...

An engine is a module of this folder with a class `Engine(loaded, batch_size, **options)` that has `complete`, with
ARM's settings as a third argument if any. It yields completions as they finish, in any order, exactly one for each
request, and refuses at the call what it cannot do.
"""

import importlib
import inspect

from lib.errors import InputError

ENGINES = ("transformers", "vllm")  # each a module of this folder


def check_engine(name: str) -> None:
    """Raise InputError when there is no engine of this name."""
    if name not in ENGINES:
        raise InputError(f"unknown engine {name!r}: choose from {', '.join(ENGINES)}")


def engine_class(name: str):
    """Return the class `Engine` of the engine called `name`; raises InputError when there is none."""
    check_engine(name)
    return importlib.import_module(f"lib.generation.{name}").Engine


def make_engine(name: str, loaded, batch_size: int, options: dict[str, int]):
    """Return the engine called `name`, ready for prompts; raises InputError for an option that it does not have."""
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)[2:]
    if unknown := [option for option in options if option not in known]:
        raise InputError(f"engine {name} has no option {unknown[0]!r}: choose from {', '.join(known) or '(none)'}")
    return engine(loaded, batch_size, **options)
