"""The same engine in many processes: Ray actors on the cluster of RAY_ADDRESS, or else
on this machine.

A worker holds an engine and streams completions. This process gives out prompts and
hands on what comes back. What a lost worker owed others are asked for twice: in smaller
chunks, then each prompt alone, so that one that kills its worker is found and given up.
"""

import collections
import logging
import math
import os
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lib.errors import InputError
from lib.generation import Completion, Request, Sampling, engine_class, make_engine
from lib.models.loading import Loaded

# Read when Ray is imported, and by the processes it starts.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
if (os.environ.get("RAY_ADDRESS") or "local") == "local":
    # A cluster of this machine alone: every process listens on loopback, and answers
    # none but this run's.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
try:
    import ray
    from ray.exceptions import RayError
except ImportError as error:
    raise InputError(
        f"workers need Ray ({error}): pip install --no-deps -r requirements/ray.txt"
    ) from error

BATCHES = 4  # of a chunk at least: at its end a batch is no longer full
DEATHS = 3  # of its worker, after which a prompt is given up
# seconds without any worker, which an autoscaling cluster may need to start a machine
PATIENCE = 600
LOOK = 10  # seconds between looks at the time
OBJECTS = 128 * 2**20  # bytes of shared memory on this machine: completions are short


class Worker:
    """What runs in an actor: an engine, once it is prepared."""

    def prepare(
        self,
        loading: dict,
        revision: str,
        making: tuple,
        longest: list[Request],
        sampling: Sampling,
    ) -> Iterator[Completion]:
        """Load the model, for an engine with room for the longest prompts; InputError
        for what it cannot run.
        """
        name, *rest = making
        loaded, self.sampling = engine_class(name).load(**loading), sampling
        if loaded.revision != revision:
            here = (
                f"the worker at {ray.util.get_node_ip_address()} has revision"
                f" {loaded.revision}"
            )
            raise InputError(f"{here}, this run {loaded.spec} at revision {revision}")
        self.engine = make_engine(name, loaded, *rest)
        self.engine.complete(longest, sampling)
        yield from ()  # a stream, like completions

    def complete(self, requests: Sequence[Request]) -> Iterator[Completion]:
        """Yield a completion for each prompt as it finishes."""
        for completion in self.engine.complete(requests, self.sampling):  # noqa: UP028 (Ray sends, not all take it)
            yield completion


class _At(NamedTuple):
    """Whose stream it is, what that worker still owes, how many were lost over this,
    and whether it is prepared.
    """

    actor: Any
    owed: dict[str, Request]
    deaths: int
    ready: bool


class Workers:
    """`count` workers with `gpus` GPUs each, whose checkpoints have the revision of
    `loaded`, which needs no weights.

    `failed`: key -> reason of prompts that were given up.
    """

    def __init__(
        self,
        count: int,
        gpus: int,
        loaded: Loaded,
        engine: str,
        batch_size: int,
        options: dict[str, int],
    ):
        self.count, self.gpus, self.loaded, self.making = (
            count,
            gpus,
            loaded,
            (engine, batch_size, options),
        )
        self.failed: dict[str, str] = {}
        self.lost = self._in_a_row = 0  # workers in all, and since the last completion
        self._streams: dict[Any, _At] = {}
        self._idle: list[Any] = []  # actors
        self._todo: collections.deque[tuple[list[Request], int]] = (
            collections.deque()
        )  # chunks, and their deaths

    def __enter__(self) -> "Workers":
        """Join the cluster of RAY_ADDRESS or start one on this machine; raises
        InputError when that fails.
        """
        address = os.environ.get("RAY_ADDRESS") or "local"
        here = {
            "num_cpus": self.count,
            "include_dashboard": False,
            "object_store_memory": OBJECTS,
        }
        host, _, port = address.rpartition(":")
        try:
            if (
                port.isdigit() and "/" not in host
            ):  # where nothing listens Ray would try for many minutes
                socket.create_connection(
                    (host.strip("[]"), int(port)), timeout=LOOK
                ).close()
            ray.init(
                address,
                logging_level=logging.ERROR,
                log_to_driver=False,
                **(here if address == "local" else {}),
            )
        except (
            Exception
        ) as error:  # of any kind, RuntimeError and bare Exception among them
            busy = (
                "Ray did not start here, for which it gives a busy machine too little"
                " time"
            )
            where = (
                busy
                if address == "local"
                else f"the Ray cluster at {address} cannot be joined"
            )
            raise InputError(f"{where}: {_one_line(error)}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        ray.shutdown()  # with it the actors

    @property
    def ready(self) -> int:
        """How many workers are at work, or could be."""
        return len(self._idle) + sum(at.ready for at in self._streams.values())

    @property
    def status(self) -> str:
        """How many workers are at work and how many were lost, as the end of a line."""
        return f", {self.ready} of {self.count} workers" + (
            f", {self.lost} lost" if self.lost else ""
        )

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Yield a completion for each prompt that is not in `failed` at the end, as it
        finishes.

        Raises InputError when a worker refuses to start, when they are lost one after
        the other, and when none comes.
        """
        # A worker's engine takes one setting of ARM after the other: neighbours should
        # share it.
        fresh = sorted(requests, key=lambda request: repr(request.arm))
        least = min(BATCHES * self.making[1], math.ceil(len(fresh) / self.count))
        # half of what is left in equal shares: large chunks first, and no worker waits
        # long for the last
        while fresh:
            size = max(least, len(fresh) // (2 * self.count))
            self._todo.append((fresh[:size], 0))
            fresh = fresh[size:]
        longest = {
            request.arm: request
            for request in sorted(requests, key=lambda r: len(r.input_ids))
        }
        loading = {
            name: getattr(self.loaded, name) for name in ("spec", "device", "dtype")
        }
        given = (
            loading,
            self.loaded.revision,
            self.making,
            list(longest.values()),
            sampling,
        )
        heard = time.monotonic()
        while self._todo or any(at.owed for at in self._streams.values()):
            while self._idle and self._todo:
                actor, (chunk, deaths) = self._idle.pop(), self._todo.popleft()
                owed = {request.key: request for request in chunk}
                self._streams[actor.complete.remote(chunk)] = _At(
                    actor, owed, deaths, True
                )
            while len(self._idle) + len(self._streams) < self.count:
                actor = (
                    ray.remote(Worker).options(num_cpus=1, num_gpus=self.gpus).remote()
                )
                self._streams[actor.prepare.remote(*given)] = _At(actor, {}, 0, False)
            found, _ = ray.wait(list(self._streams), timeout=LOOK)
            if not found and not self.ready and time.monotonic() - heard > PATIENCE:
                has = ray.cluster_resources()
                has = (
                    f"the cluster has {has.get('CPU', 0):.0f} CPUs and"
                    f" {has.get('GPU', 0):.0f} GPUs in all"
                )
                raise InputError(f"no worker started in {PATIENCE} s: {has}")
            for stream in found:
                heard, at = time.monotonic(), self._streams[stream]
                try:
                    completion = ray.get(next(stream))
                except StopIteration:  # the worker is prepared, or done with its chunk
                    self._idle.append(self._streams.pop(stream).actor)
                except RayError as error:
                    self._lose(self._streams.pop(stream), error)
                else:
                    at.owed.pop(completion.key, None)
                    self._in_a_row = 0
                    yield completion

    def _lose(self, at: _At, error: RayError) -> None:
        """Dismiss a worker and have others do what it owes: in the end each alone, so
        that one is to blame.
        """
        if not at.ready and isinstance(error, InputError):
            raise InputError(f"a worker refuses: {error.args[0]}") from error
        ray.kill(at.actor)
        self.lost, self._in_a_row = self.lost + 1, self._in_a_row + 1
        if self._in_a_row > DEATHS * self.count:
            raise InputError(
                f"{self._in_a_row} workers were lost one after the other:"
                f" {_one_line(error)}"
            ) from error
        owed, deaths = list(at.owed.values()), at.deaths + 1
        if deaths == DEATHS:
            self.failed |= dict.fromkeys(at.owed, _one_line(error))
            return
        size = 1 if deaths == DEATHS - 1 else math.isqrt(len(owed)) + 1
        self._todo.extend(
            (owed[begin : begin + size], deaths) for begin in range(0, len(owed), size)
        )


def _one_line(error: BaseException) -> str:
    """Return the end of an error's text, which names the cause in Ray's many lines."""
    return " ".join(str(error).split())[-300:]
