"""Prompts in, completions out, through one small interface.

    for completion in engine_class("transformers")(loaded, batch_size=64).complete(requests, sampling): ...

An engine is a module of this package with a class `Engine(loaded, batch_size, **options)` that has `complete`, with
ARM's settings as a third argument if any. It yields completions as they finish, in any order, exactly one for each
request, and refuses at the call what it cannot do.
"""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass

from lib.errors import InputError


@dataclass(frozen=True)
class Request:
    """One prompt to complete; `seed` alone decides its random draws, whatever it is batched with."""

    key: str
    input_ids: list[int]
    seed: int = 0


@dataclass(frozen=True)
class Sampling:
    """How to continue: greedy at temperature 0; `elicit` is appended to an answer without a box (Kojima 2022)."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    elicit: str | None = None
    elicit_tokens: int = 12


@dataclass(frozen=True)
class Completion:
    """What a model wrote: `finish_reason` is stop, length (token limit) or context (no room left for it)."""

    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    elicited: bool = False


def engines() -> list[str]:
    """Return the names of the engines: the modules of this package."""
    return [module.name for module in pkgutil.iter_modules(__path__)]


def engine_class(name: str):
    """Return the class `Engine` of the engine called `name`; raises InputError when there is none."""
    if name not in engines():
        raise InputError(f"unknown engine {name!r}: choose from {', '.join(engines())}")
    return importlib.import_module(f"lib.generation.{name}").Engine


def make_engine(name: str, loaded, batch_size: int, options: dict[str, int]):
    """Return the engine called `name`, ready for prompts; raises InputError for an option that it does not have."""
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)[2:]
    if unknown := [option for option in options if option not in known]:
        raise InputError(f"engine {name} has no option {unknown[0]!r}: choose from {', '.join(known) or '(none)'}")
    return engine(loaded, batch_size, **options)
