"""Run an engine in many processes: Ray actors on a cluster, or on this machine.

RAY_ADDRESS names the cluster. Each worker has an engine and answers chunk by chunk;
this process yields the completions that it receives. If a worker is lost, Ray starts it
again and repeats its chunk. A chunk whose worker is lost twice is skipped. Another run
completes the missing prompts, in smaller chunks.
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
from lib.generation.engine_interface import (
    Completion,
    Request,
    Sampling,
    Writer,
    chunk_size,
    engine_class,
)
from lib.models.loading import Loaded, load_without_weights

# Seconds that a cluster that is too small for all workers has to start more machines.
SECONDS_FOR_WORKERS = 600
SECONDS_TO_CONNECT = 10  # for the first connection to a cluster
# Bytes of Ray's shared memory on this machine, which are enough for completions.
OBJECT_STORE = 128 * 2**20


def imported_ray() -> Any:
    """Return the package ray, imported with the environment that it needs; raise
    InputError if it is not installed.

    Ray reads these variables when it is imported, and its processes inherit them.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if (os.environ.get("RAY_ADDRESS") or "local") == "local":
        # On a cluster of only this machine, every process listens on loopback, and
        # answers only the processes of this run, which know the token.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise InputError(
            f"workers need Ray ({error}): pip install --no-deps -r requirements/ray.txt"
        ) from error
    return ray


class Worker:
    """The object in a Ray actor, whose engine `make` creates for the first chunk.

    If Ray restarts the actor, the engine is created again.
    """

    def __init__(self, make: Callable[[], Writer]):
        self.make = functools.cache(make)

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> list[Completion]:
        """Return a completion for each request of a chunk.

        Raises InputError for weights of another revision, and as `Writer.complete`
        does.
        """
        return list(self.make().complete(requests, sampling))


def _engine(
    spec: str, device: str, dtype: str, revision: str, name: str, *options: int | None
) -> Writer:
    """Return the engine called `name` with a model.

    options: the engine's batch size and number of GPUs. Raises InputError if the
    weights on this machine have another revision.
    """
    loaded = load_without_weights(spec, device, dtype)
    if loaded.revision != revision:
        ray = imported_ray()
        raise InputError(
            f"the worker at {ray.util.get_node_ip_address()} has revision"
            f" {loaded.revision}, this run {spec} at revision {revision}"
        )
    engine = engine_class(name)
    return engine(engine.load(loaded), *options)


@dataclass(frozen=True)
class Workers:
    """A pool of workers with the interface of a `Writer`, for use in a `with` block.

    The workers' checkpoints must have the revision of `loaded`, which may be without
    weights.
    """

    count: int  # of workers
    gpus: int  # per worker
    loaded: Loaded
    engine: str  # its name
    batch_size: int | None  # per worker

    def __enter__(self) -> "Workers":
        """Connect to the cluster of RAY_ADDRESS, or start one on this machine.

        Raises InputError if that fails.
        """
        ray = imported_ray()
        address = os.environ.get("RAY_ADDRESS") or "local"
        settings: dict[str, Any] = {"logging_level": logging.ERROR}
        failure = f"the Ray cluster at {address} cannot be joined"
        if address == "local":
            settings["num_cpus"] = self.count
            settings["include_dashboard"] = False
            settings["object_store_memory"] = OBJECT_STORE
            failure = "Ray did not start in time on this machine, which may be too busy"
        try:
            _require_reachable(address)
            ray.init(address, log_to_driver=False, **settings)
        # Ray raises exceptions of many types, even bare ones.
        except Exception as error:
            raise InputError(f"{failure}: {_end_of_message(error)}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        imported_ray().shutdown()  # ends the actors, too

    def complete(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[Completion]:
        """Yield a completion for each request, chunk by chunk, in any order.

        Chunks whose worker is lost twice are skipped, and the reason is printed. Raises
        InputError if a worker raises it, and if the cluster stays too small for all
        workers.
        """
        ray = imported_ray()
        loaded = self.loaded
        weights = (loaded.spec, loaded.device, loaded.dtype, loaded.revision)
        engine = (self.engine, self.batch_size, max(1, self.gpus))
        make = functools.partial(_engine, *weights, *engine)
        # Ray starts an actor as soon as the cluster has a free CPU and enough GPUs.
        actor = ray.remote(Worker).options(
            num_cpus=1, num_gpus=self.gpus, max_restarts=-1, max_task_retries=1
        )
        pool = ray.util.ActorPool([actor.remote(make) for _ in range(self.count)])
        # Sorted by the settings of ARM, because a batch has only one setting.
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
            except ray.exceptions.RayError as error:
                reason = _end_of_message(error)
                message = f"prompts are skipped, which another run completes: {reason}"
                print(message, file=sys.stderr, flush=True)

    def _require_room(self) -> None:
        """Raise InputError if the cluster is too small for all workers."""
        resources = imported_ray().cluster_resources()
        cpus, gpus = (int(resources.get(kind, 0)) for kind in ("CPU", "GPU"))
        if cpus < self.count or gpus < self.count * self.gpus:
            raise InputError(
                f"{self.count} workers need a CPU and {self.gpus} GPUs each, and after"
                f" {SECONDS_FOR_WORKERS} s the cluster has {cpus} and {gpus}"
            )


def _require_reachable(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT, because Ray would try for many
    minutes; other forms of an address are left to Ray.
    """
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        endpoint = (host.strip("[]"), int(port))
        socket.create_connection(endpoint, timeout=SECONDS_TO_CONNECT).close()


def _end_of_message(error: BaseException) -> str:
    """Return the last 300 characters of an error's message in one line: Ray's messages
    have many lines, and the cause is at the end.
    """
    return " ".join(str(error).split())[-300:]
