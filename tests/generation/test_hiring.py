"""The calls that workers receive, on a stand-in for Ray that runs them in this process;
test_workers.py starts the real Ray.
"""

import importlib
import itertools
import os
import sys
from types import SimpleNamespace

import pytest

from lib.generation.engine_interface import Request, Sampling


class Pool:
    """An ActorPool whose actors answer immediately, one after the other."""

    def __init__(self, actors):
        self.actors = itertools.cycle(actors)
        self.answers = []

    def submit(self, call, chunk):
        self.answers.append(call(next(self.actors), chunk))

    def has_next(self):
        return bool(self.answers)

    def get_next_unordered(self, timeout):
        return self.answers.pop()


def remote(kind):
    """Return a stand-in for ray.remote(kind)."""

    def start(make):
        return SimpleNamespace(complete=SimpleNamespace(remote=kind(make).complete))

    return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start))


@pytest.fixture
def workers(monkeypatch):
    """The module lib.generation.workers, with the stand-in for Ray."""
    monkeypatch.setattr(os, "environ", {**os.environ})
    parts = {
        "ray.exceptions": SimpleNamespace(RayError=OSError),
        "ray.util": SimpleNamespace(ActorPool=Pool),
    }
    ray = {name.partition(".")[2]: part for name, part in parts.items()}
    parts["ray"] = SimpleNamespace(remote=remote, **ray)
    for name, part in parts.items():
        monkeypatch.setitem(sys.modules, name, part)
    monkeypatch.delitem(sys.modules, "lib.generation.workers", raising=False)
    yield importlib.import_module("lib.generation.workers")
    sys.modules.pop("lib.generation.workers", None)


def test_the_environment_changes_when_ray_is_needed_and_not_before(workers):
    before = dict(os.environ)
    importlib.reload(workers)
    assert os.environ == before
    workers.imported_ray()
    token = os.environ["RAY_AUTH_TOKEN"]
    workers.imported_ray()  # for a second cluster, whose processes know the first token
    assert os.environ["RAY_AUTH_TOKEN"] == token


def test_each_worker_makes_one_engine_for_one_device_even_without_a_gpu(
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
    requests = [Request(str(number), [number]) for number in range(10)]
    pool = workers.Workers(2, 0, loaded, "transformers", 1)
    completed = pool.complete(requests, Sampling(1))
    assert {one.key for one in completed} == {one.key for one in requests}
    assert made == [(1, 1)] * 2  # two workers answer three chunks
