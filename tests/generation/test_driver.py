"""What the driver of workers does when they are lost, on a stand-in for Ray.

It runs them here, one step at a time.
"""

import random
import sys
import types
from unittest.mock import Mock

import pytest

from lib.errors import InputError
from lib.generation.requests import Completion, Request, Sampling

REQUESTS = [Request(str(n), [n]) for n in range(30)]
LOADED = types.SimpleNamespace(spec="m", device="cpu", dtype="float32", revision="r")


class RayError(Exception):
    pass


class Refusal(RayError, InputError):
    """An InputError of a worker, as Ray raises it here."""


class Actor:
    """A worker that is lost where `fault(keys of its chunk, completions so far)`."""

    def __init__(self, fault, refuses):
        self.fault = fault
        self.refuses = refuses
        self.prepare = types.SimpleNamespace(remote=self._prepare)
        self.complete = types.SimpleNamespace(remote=self._complete)

    def _prepare(self, *args):
        if self.refuses:
            raise Refusal(self.refuses)
        yield from ()

    def _complete(self, requests):
        keys = [request.key for request in requests]
        for n, key in enumerate(keys):
            if self.fault(keys, n):
                raise RayError("the worker died")
            yield Completion(key, "", "stop", 1, 1)


class Ray:
    """What the driver uses of Ray; the stream that has news is drawn."""

    def __init__(self, fault, refuses, seed):
        self.hired = 0
        self.fault = fault
        self.refuses = refuses
        self.draw = random.Random(seed)
        self.kill = Mock()

    def remote(self, worker):
        return self

    def options(self, **resources):
        return types.SimpleNamespace(remote=self._hire)

    def _hire(self):
        self.hired += 1
        return Actor(self.fault, self.refuses)

    def wait(self, streams, timeout):
        return [self.draw.choice(streams)], []

    def get(self, completion):
        return completion


@pytest.fixture
def complete(monkeypatch):
    """Run `count` workers with this fault; return their driver and Ray."""

    def run(count, fault, refuses=None):
        ray = Ray(fault, refuses, seed=count)
        exceptions = types.SimpleNamespace(RayError=RayError)
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setitem(sys.modules, "ray.exceptions", exceptions)
        monkeypatch.delitem(sys.modules, "lib.generation.workers", raising=False)
        from lib.generation.workers import Workers

        workers = Workers(count, 0, LOADED, "transformers", 2, {})
        done = [
            completion.key for completion in workers.complete(REQUESTS, Sampling(1))
        ]
        assert len(done) == len(set(done))
        assert {*done, *workers.failed} == {request.key for request in REQUESTS}
        return workers, ray

    yield run
    sys.modules.pop("lib.generation.workers", None)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_lost_workers_owed_is_done_by_others(complete, count):
    # Every chunk loses its worker once, after its first completion, but for prompts
    # that are asked for alone.
    workers, ray = complete(count, lambda keys, n: n == 1)
    assert not workers.failed
    assert workers.lost > 1
    assert ray.hired == count + workers.lost
    assert workers.status.endswith(f"of {count} workers, {workers.lost} lost")


@pytest.mark.parametrize("count", [1, 3])
def test_a_prompt_that_loses_its_worker_three_times_is_given_up_alone(complete, count):
    workers, _ = complete(count, lambda keys, n: "17" in keys)
    assert workers.failed == {"17": "the worker died"}
    assert workers.lost == 3


def test_workers_lost_one_after_the_other_end_the_run(complete):
    message = "7 workers were lost one after the other: the worker died"
    with pytest.raises(InputError, match=message):
        complete(2, lambda keys, n: True)


def test_a_worker_that_refuses_ends_the_run(complete):
    with pytest.raises(InputError, match="a worker refuses: another revision"):
        complete(2, lambda keys, n: False, refuses="another revision")
