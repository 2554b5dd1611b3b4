"""The same engine in many processes: Ray actors of a cluster, or of this machine.

The cluster is that of RAY_ADDRESS. A worker holds an engine and answers chunk by chunk;
this process hands on what comes back. Ray starts a lost worker again, and asks it again
for the chunk that it owed. A chunk that loses its worker twice is given up; run again,
the prompts that are missing make smaller chunks.
"""

import functools
import logging
import math
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lib.errors import InputError
from lib.generation.writer import (
    Completion,
    Request,
    Sampling,
    Writer,
    chunk_size,
    engine_class,
)
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
    from ray.util import ActorPool
except ImportError as error:
    raise InputError(
        f"workers need Ray ({error}): pip install --no-deps -r requirements/ray.txt"
    ) from error

# Seconds that a cluster without room for all workers may need to start a machine.
SECONDS_FOR_WORKERS = 600
SECONDS_TO_CONNECT = 10  # of a cluster's address
# Bytes of shared memory on this machine: completions are short.
OBJECT_STORE = 128 * 2**20


class Worker:
    """The object in a Ray actor: an engine, created with the first chunk, and again if
    the actor is restarted.
    """

    def __init__(self, make: Callable[[], Writer]):
        self.make = functools.cache(make)

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> list[Completion]:
        """Return a completion for each prompt of a chunk.

        Raises InputError for weights of another revision.
        """
        return list(self.make().complete(requests, sampling))


def _engine(
    spec: str, device: str, dtype: str, revision: str, name: str, *how: int | None
) -> Writer:
    """Return an engine of a model, whose weights must have this revision."""
    loaded = load_without_weights(spec, device, dtype)
    if loaded.revision != revision:
        raise InputError(
            f"the worker at {ray.util.get_node_ip_address()} has revision"
            f" {loaded.revision}, this run {spec} at revision {revision}"
        )
    engine = engine_class(name)
    return engine(engine.load(loaded), *how)


@dataclass(frozen=True)
class Workers:
    """`count` workers with `gpus` GPUs each, while it is a context.

    Their checkpoints have the revision of `loaded`, which needs no weights.
    """

    count: int
    gpus: int
    loaded: Loaded
    engine: str
    batch_size: int | None

    def __enter__(self) -> "Workers":
        """Join the cluster of RAY_ADDRESS or start one on this machine.

        Raises InputError when that fails.
        """
        address = os.environ.get("RAY_ADDRESS") or "local"
        settings: dict[str, Any] = {"logging_level": logging.ERROR}
        failure = f"the Ray cluster at {address} cannot be joined"
        if address == "local":
            settings["num_cpus"] = self.count
            settings["include_dashboard"] = False
            settings["object_store_memory"] = OBJECT_STORE
            failure = (
                "Ray did not start here, for which it gives a busy machine too little"
                " time"
            )
        try:
            _require_reachable(address)
            ray.init(address, log_to_driver=False, **settings)
        # Of any kind, RuntimeError and bare Exception among them.
        except Exception as error:
            raise InputError(f"{failure}: {_end_of_message(error)}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        ray.shutdown()  # with it the actors

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Yield a completion for each prompt, chunk by chunk, but those that are given
        up: why is said at once.

        Raises InputError where a worker refuses and where the cluster stays too small.
        """
        loaded = self.loaded
        weights = (loaded.spec, loaded.device, loaded.dtype, loaded.revision)
        how = (self.engine, self.batch_size, max(1, self.gpus))
        make = functools.partial(_engine, *weights, *how)
        # Which start as soon as there is room.
        hiring = ray.remote(Worker).options(
            num_cpus=1, num_gpus=self.gpus, max_restarts=-1, max_task_retries=1
        )
        pool = ActorPool([hiring.remote(make) for _ in range(self.count)])
        # A worker's engine takes one setting of ARM after the other: neighbours should
        # share it.
        waiting = sorted(requests, key=lambda request: repr(request.arm))
        share = math.ceil(len(waiting) / self.count)
        size = min(chunk_size(self.batch_size), share)
        for begin in range(0, len(waiting), size):
            pool.submit(
                lambda worker, chunk: worker.complete.remote(chunk, sampling),
                waiting[begin : begin + size],
            )

        while pool.has_next():
            try:
                yield from pool.get_next_unordered(SECONDS_FOR_WORKERS)
            except TimeoutError:
                self._require_room()
            except InputError as error:
                raise InputError(f"a worker refuses: {error.args[0]}") from error
            except RayError as error:
                reason = _end_of_message(error)
                print(f"prompts are given up: {reason}", file=sys.stderr, flush=True)

    def _require_room(self) -> None:
        """Raise InputError where the cluster is too small for all workers."""
        has = ray.cluster_resources()
        cpus, gpus = (int(has.get(kind, 0)) for kind in ("CPU", "GPU"))
        if cpus < self.count or gpus < self.count * self.gpus:
            raise InputError(
                f"{self.count} workers need a CPU and {self.gpus} GPUs each, and after"
                f" {SECONDS_FOR_WORKERS} s the cluster has {cpus} and {gpus}"
            )


def _require_reachable(address: str) -> None:
    """Raise OSError where nothing listens, for which Ray would try many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        place = (host.strip("[]"), int(port))
        socket.create_connection(place, timeout=SECONDS_TO_CONNECT).close()


def _end_of_message(error: BaseException) -> str:
    """Return the end of an error's text, which names the cause in Ray's many lines."""
    return " ".join(str(error).split())[-300:]
