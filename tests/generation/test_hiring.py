"""What workers are asked for, on a stand-in for Ray that runs them in this process; the
real one is in test_workers.
"""

import importlib
import itertools
import os
import sys
from types import SimpleNamespace

import pytest

from lib.generation.writer import Request, Sampling


class Pool:
    """An ActorPool whose actors answer at once, one after the other."""

    def __init__(self, actors):
        self.actors = itertools.cycle(actors)
        self.answers = []

    def submit(self, ask, chunk):
        self.answers.append(ask(next(self.actors), chunk))

    def has_next(self):
        return bool(self.answers)

    def get_next_unordered(self, timeout):
        return self.answers.pop()


def remote(kind):
    """Return what hires actors of a class."""

    def hire(make):
        return SimpleNamespace(complete=SimpleNamespace(remote=kind(make).complete))

    return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=hire))


@pytest.fixture
def workers(monkeypatch):
    """The module, with the stand-in."""
    monkeypatch.setattr(os, "environ", {**os.environ})
    for name, content in {
        "ray": {"remote": remote},
        "ray.exceptions": {"RayError": OSError},
        "ray.util": {"ActorPool": Pool},
    }.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    monkeypatch.delitem(sys.modules, "lib.generation.workers", raising=False)
    yield importlib.import_module("lib.generation.workers")
    sys.modules.pop("lib.generation.workers", None)


def test_each_worker_makes_one_engine_for_one_device_though_it_has_no_gpu(
    workers, monkeypatch
):
    made = []

    class Engine:
        def __init__(self, loaded, batch_size, devices):
            made.append((batch_size, devices))

        load = staticmethod(lambda loaded: loaded)
        complete = staticmethod(lambda requests, sampling: requests)

    loaded = SimpleNamespace(spec="m", device="cpu", dtype="float32", revision="r")
    monkeypatch.setattr(workers, "engine_class", lambda name: Engine)
    monkeypatch.setattr(workers, "load_without_weights", lambda *_: loaded)
    asked = [Request(str(number), [number]) for number in range(10)]
    hired = workers.Workers(2, 0, loaded, "transformers", 1)
    answered = hired.complete(asked, Sampling(1))
    assert {request.key for request in answered} == {request.key for request in asked}
    assert made == [(1, 1)] * 2  # for three chunks
