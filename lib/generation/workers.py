"""The same engine in many processes: Ray actors of a cluster, or of this machine.

The cluster is that of RAY_ADDRESS. A worker holds an engine and streams completions.
This process gives out prompts and hands on what comes back. What a lost worker owed
others are asked for twice: in smaller chunks, then each prompt alone, so that one that
kills its worker is found and given up.
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
from lib.generation.engines import engine_class, make_engine
from lib.generation.requests import Completion, Request, Sampling
from lib.models.loading import Loaded, load_without_weights

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

# Batches of a chunk at least: at its end a batch is no longer full.
CHUNK_BATCHES = 4
# Prompts of a batch, for this purpose, where it is as large as memory allows.
ROOMY_BATCH = 256
# Workers that a prompt may lose before it is given up.
MOST_DEATHS = 3
# Seconds without any worker, which an autoscaling cluster may need to start a machine.
PATIENCE = 600
POLL_SECONDS = 10  # between looks at the time
# Bytes of shared memory on this machine: completions are short.
OBJECT_STORE = 128 * 2**20


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
        """Load the model, for an engine with room for the longest prompts.

        Raises InputError for what the engine cannot run.
        """
        name, *rest = making
        loaded = load_without_weights(**loading)
        if loaded.revision != revision:
            raise InputError(
                f"the worker at {ray.util.get_node_ip_address()} has revision"
                f" {loaded.revision}, this run {loaded.spec} at revision {revision}"
            )
        self.sampling = sampling
        self.engine = make_engine(name, engine_class(name).load(loaded), *rest)
        self.engine.complete(longest, sampling)
        yield from ()  # a stream, like completions

    def complete(self, requests: Sequence[Request]) -> Iterator[Completion]:
        """Yield a completion for each prompt as it finishes."""
        for completion in self.engine.complete(requests, self.sampling):  # noqa: UP028 (Ray sends, not all take it)
            yield completion


class _Chunk(NamedTuple):
    """Prompts that go to one worker, and how many workers were lost over them."""

    requests: list[Request]
    deaths: int


class _Stream(NamedTuple):
    """What a worker is doing: its actor, and the prompts that it still owes."""

    actor: Any
    owed: dict[str, Request]
    deaths: int  # workers that were lost over these prompts before
    ready: bool  # whether it is prepared


class Workers:
    """`count` workers with `gpus` GPUs each.

    Their checkpoints have the revision of `loaded`, which needs no weights. `failed`
    names the reason of each prompt that was given up, by key.
    """

    def __init__(
        self,
        count: int,
        gpus: int,
        loaded: Loaded,
        engine: str,
        batch_size: int | None,
        options: dict[str, int],
    ):
        self.count = count
        self.gpus = gpus
        self.loaded = loaded
        self.batch_size = batch_size
        self.making = (engine, batch_size, options)
        self.failed: dict[str, str] = {}
        self.lost = 0  # workers in all
        self._lost_in_a_row = 0  # since the last completion
        self._streams: dict[Any, _Stream] = {}
        self._idle: list[Any] = []  # actors
        self._waiting: collections.deque[_Chunk] = collections.deque()

    def __enter__(self) -> "Workers":
        """Join the cluster of RAY_ADDRESS or start one on this machine.

        Raises InputError when that fails.
        """
        address = os.environ.get("RAY_ADDRESS") or "local"
        here = {
            "num_cpus": self.count,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
        }
        failure = (
            "Ray did not start here, for which it gives a busy machine too little time"
        )
        if address != "local":
            here = {}
            failure = f"the Ray cluster at {address} cannot be joined"
        try:
            _reach(address)
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **here)
        # Of any kind, RuntimeError and bare Exception among them.
        except Exception as error:
            raise InputError(f"{failure}: {_last_words(error)}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        ray.shutdown()  # with it the actors

    @property
    def ready(self) -> int:
        """How many workers are at work, or could be."""
        at_work = sum(stream.ready for stream in self._streams.values())
        return len(self._idle) + at_work

    @property
    def status(self) -> str:
        """How many workers are at work and how many were lost, as the end of a line."""
        lost = f", {self.lost} lost" if self.lost else ""
        return f", {self.ready} of {self.count} workers{lost}"

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Yield a completion for each prompt as it finishes, but for those in `failed`.

        Raises InputError when a worker refuses to start, when they are lost one after
        the other, and when none comes.
        """
        self._waiting.extend(self._chunks(requests))
        preparation = self._preparation(requests, sampling)
        last_heard = time.monotonic()
        while self._waiting or any(stream.owed for stream in self._streams.values()):
            self._give_out()
            self._hire(preparation)
            streams, _ = ray.wait(list(self._streams), timeout=POLL_SECONDS)
            if streams:
                last_heard = time.monotonic()
            elif not self.ready and time.monotonic() - last_heard > PATIENCE:
                raise InputError(
                    f"no worker started in {PATIENCE} s: {_cluster_size()}"
                )
            for stream in streams:
                completion = self._next(stream)
                if completion:
                    yield completion

    def _chunks(self, requests: Sequence[Request]) -> Iterator[_Chunk]:
        """Divide prompts into chunks: half of what is left, in equal shares.

        So large chunks come first, and no worker waits long for the last one.
        """
        # A worker's engine takes one setting of ARM after the other: neighbours should
        # share it.
        left = sorted(requests, key=lambda request: repr(request.arm))
        share = math.ceil(len(left) / self.count)
        least = min(CHUNK_BATCHES * (self.batch_size or ROOMY_BATCH), share)
        while left:
            size = max(least, len(left) // (2 * self.count))
            yield _Chunk(left[:size], deaths=0)
            left = left[size:]

    def _preparation(self, requests: Sequence[Request], sampling: Sampling) -> tuple:
        """Return what each worker is prepared with: `Worker.prepare`'s arguments."""
        by_length = sorted(requests, key=lambda request: len(request.input_ids))
        longest = {request.arm: request for request in by_length}
        loading = {
            "spec": self.loaded.spec,
            "device": self.loaded.device,
            "dtype": self.loaded.dtype,
        }
        revision = self.loaded.revision
        return loading, revision, self.making, list(longest.values()), sampling

    def _give_out(self) -> None:
        """Let each idle worker begin a chunk, as long as there are any."""
        while self._idle and self._waiting:
            actor = self._idle.pop()
            chunk = self._waiting.popleft()
            owed = {request.key: request for request in chunk.requests}
            stream = actor.complete.remote(chunk.requests)
            self._streams[stream] = _Stream(actor, owed, chunk.deaths, ready=True)

    def _hire(self, preparation: tuple) -> None:
        """Start workers until there are as many as were asked for."""
        while len(self._idle) + len(self._streams) < self.count:
            hiring = ray.remote(Worker).options(num_cpus=1, num_gpus=self.gpus)
            actor = hiring.remote()
            stream = actor.prepare.remote(*preparation)
            self._streams[stream] = _Stream(actor, {}, deaths=0, ready=False)

    def _next(self, stream: Any) -> Completion | None:
        """Return the next completion of a stream that has news.

        None where it has ended: the worker is prepared, or done with its chunk, or
        lost.
        """
        try:
            completion = ray.get(next(stream))
        except StopIteration:
            self._idle.append(self._streams.pop(stream).actor)
        except RayError as error:
            self._lose(self._streams.pop(stream), error)
        else:
            self._streams[stream].owed.pop(completion.key, None)
            self._lost_in_a_row = 0
            return completion
        return None

    def _lose(self, stream: _Stream, error: RayError) -> None:
        """Dismiss a worker and have others do what it owes.

        In the end each prompt is done alone, so that one is to blame.
        """
        if not stream.ready and isinstance(error, InputError):
            raise InputError(f"a worker refuses: {error.args[0]}") from error
        ray.kill(stream.actor)
        self.lost += 1
        self._lost_in_a_row += 1
        if self._lost_in_a_row > MOST_DEATHS * self.count:
            raise InputError(
                f"{self._lost_in_a_row} workers were lost one after the other:"
                f" {_last_words(error)}"
            ) from error

        owed = list(stream.owed.values())
        deaths = stream.deaths + 1
        if deaths == MOST_DEATHS:
            self.failed |= dict.fromkeys(stream.owed, _last_words(error))
            return
        alone = deaths == MOST_DEATHS - 1
        size = 1 if alone else math.isqrt(len(owed)) + 1
        for begin in range(0, len(owed), size):
            self._waiting.append(_Chunk(owed[begin : begin + size], deaths))


def _reach(address: str) -> None:
    """Raise OSError where nothing listens, for which Ray would try many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        place = (host.strip("[]"), int(port))
        socket.create_connection(place, timeout=POLL_SECONDS).close()


def _cluster_size() -> str:
    """Return how many processors the cluster has, for a message."""
    has = ray.cluster_resources()
    return (
        f"the cluster has {has.get('CPU', 0):.0f} CPUs and"
        f" {has.get('GPU', 0):.0f} GPUs in all"
    )


def _last_words(error: BaseException) -> str:
    """Return the end of an error's text, which names the cause in Ray's many lines."""
    return " ".join(str(error).split())[-300:]
