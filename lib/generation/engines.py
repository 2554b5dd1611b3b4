"""Prompts in, completions out, through one small interface.

    for completion in engine_class("transformers")(loaded, batch_size=64).complete(requests, sampling): ...

An engine is a module of this folder with a class `Engine(loaded, batch_size, **options)` that has `complete`, with
ARM's settings as a third argument if any. It yields completions as they finish, in any order, exactly one for each
request, and refuses at the call what it cannot do.
"""

import importlib
import inspect
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from lib.arm.settings import Arm
from lib.errors import InputError, unknown
from lib.generation.interface import Completion, Request, Sampling

ENGINES = ("transformers", "vllm")  # each a module of this folder


class Job(NamedTuple):
    """A prompt and how ARM changes the model for it; None: not at all."""

    request: Request
    arm: Arm | None


def check_engine(name: str) -> None:
    """Raise InputError when there is no engine of this name."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)


def engine_class(name: str):
    """Return the class `Engine` of the engine called `name`; raises InputError when there is none."""
    check_engine(name)
    return importlib.import_module(f"lib.generation.{name}").Engine


def make_engine(name: str, loaded, batch_size: int, options: dict[str, int]):
    """Return the engine called `name`, ready for prompts; raises InputError for an option that it does not have."""
    engine = engine_class(name)
    known = list(inspect.signature(engine).parameters)[2:]
    if missing := [option for option in options if option not in known]:
        raise InputError(f"engine {name} has no option {missing[0]!r}: choose from {', '.join(known) or '(none)'}")
    return engine(loaded, batch_size, **options)


def complete_all(engine, jobs: Sequence[Job], sampling: Sampling) -> Iterator[Completion]:
    """Return the completions of all jobs, which are asked for at once: a refusal comes before any of them."""
    requests: dict[Arm | None, list[Request]] = {}
    for job in jobs:
        requests.setdefault(job.arm, []).append(job.request)
    return chain.from_iterable([engine.complete(some, sampling, arm) for arm, some in requests.items()])


def workers_class():
    """Return the class `Workers`; raises InputError when Ray is not installed."""
    return importlib.import_module("lib.generation.workers").Workers


class Here:
    """An engine at work in this process, with the face of `lib.generation.workers.Workers`."""

    status = ""

    def __init__(self, engine):
        self.engine, self.failed = engine, {}

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave everything as it is."""

    def complete(self, jobs: Sequence[Job], sampling: Sampling) -> Iterator[Completion]:
        """Yield a completion for each job as it finishes."""
        return complete_all(self.engine, jobs, sampling)
