"""What the driver of workers does when they are lost, on a stand-in for Ray that runs
them here, one step at a time.
"""

import random
import sys
import types
from unittest.mock import Mock

import pytest

from lib.errors import InputError
from lib.generation import Completion, Request, Sampling


class RayError(Exception):
    pass


class Actor:
    """A worker that loses itself where `fault(keys of its chunk, completions so far)`
    says so.
    """

    def __init__(self, fault, refuses):
        self.fault, self.refuses = fault, refuses
        self.prepare, self.complete = (
            types.SimpleNamespace(remote=stream)
            for stream in (self._load, self._stream)
        )

    def _load(self, *given):
        if self.refuses:
            raise type("Refusal", (RayError, InputError), {})(self.refuses)
        yield from ()

    def _stream(self, requests):
        keys = [request.key for request in requests]
        for n, key in enumerate(keys):
            if self.fault(keys, n):
                raise RayError("the worker died")
            yield Completion(key, "", "stop", 1, 1)


@pytest.fixture
def complete(monkeypatch):
    def run(count, fault, refuses=None):
        ray, draw = Mock(get=lambda given: given), random.Random(count)
        hire = ray.remote.return_value.options.return_value.remote
        hire.side_effect = lambda: Actor(fault, refuses)
        ray.wait = lambda awaited, timeout: ([draw.choice(awaited)], [])
        monkeypatch.setitem(sys.modules, "ray", ray)
        monkeypatch.setitem(
            sys.modules, "ray.exceptions", types.SimpleNamespace(RayError=RayError)
        )
        monkeypatch.delitem(sys.modules, "lib.generation.workers", raising=False)
        from lib.generation.workers import Workers

        loaded = types.SimpleNamespace(
            spec="m", device="cpu", dtype="float32", revision="r"
        )
        workers = Workers(count, 0, loaded, "transformers", 2, {})
        asked = [Request(str(n), [n]) for n in range(30)]
        found = [completion.key for completion in workers.complete(asked, Sampling(1))]
        assert len(found) == len(set(found)) and {*found, *workers.failed} == {
            request.key for request in asked
        }
        return workers, hire.call_count

    yield run
    sys.modules.pop("lib.generation.workers", None)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_lost_workers_owed_is_done_by_others(complete, count):
    # Every chunk loses its worker once, after its first completion, but for prompts
    # that are asked for alone.
    workers, hired = complete(count, lambda keys, n: n == 1)
    assert not workers.failed and workers.lost > 1 and hired == count + workers.lost
    assert workers.status.endswith(f"of {count} workers, {workers.lost} lost")


@pytest.mark.parametrize("count", [1, 3])
def test_a_prompt_that_loses_its_worker_three_times_is_given_up_alone(complete, count):
    workers, _ = complete(count, lambda keys, n: "17" in keys)
    assert workers.failed == {"17": "the worker died"} and workers.lost == 3


def test_workers_lost_one_after_the_other_and_one_that_refuses_end_the_run(complete):
    with pytest.raises(
        InputError, match="7 workers were lost one after the other: the worker died"
    ):
        complete(2, lambda keys, n: True)
    with pytest.raises(InputError, match="a worker refuses: another revision"):
        complete(2, lambda keys, n: False, refuses="another revision")
