"""The same engine in many processes: Ray actors on the cluster of RAY_ADDRESS, or else on this machine.

    with Workers(2, loaded, "transformers", 64, {}) as workers:
        for completion in workers.complete(jobs, sampling): ...

A worker holds an engine and streams completions. This process gives out prompts, hands on what comes back, and asks
others for what a lost worker owes, in smaller and smaller chunks, so that a prompt that kills its worker is found.
"""

import collections
import logging
import math
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

from lib.errors import InputError
from lib.generation.engines import Job, complete_all, make_engine
from lib.generation.interface import Completion, Sampling
from lib.generation.reaper import end_with_this_process
from lib.models.loading import Loaded, load

# Read when Ray is imported, and by the processes it starts.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
if (os.environ.get("RAY_ADDRESS") or "local") == "local":
    # A cluster of this machine alone: every process listens on loopback, and answers none but this run's.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
try:
    import ray
    from ray.exceptions import RayError
except ImportError as error:
    raise InputError(f"workers need Ray ({error}): pip install --no-deps -r requirements/ray.txt") from error

BATCHES = 4  # of a chunk at least: at its end a batch is no longer full
DEATHS = 3  # of its worker, after which a prompt is given up
PATIENCE = 600  # seconds without any worker, which an autoscaling cluster may need to start a machine
LOOK = 10  # seconds between looks at the time
OBJECTS = 128 * 2**20  # bytes of shared memory on this machine: completions are short


class Worker:
    """What runs in an actor: an engine, once it is prepared."""

    def prepare(self, loading: Mapping[str, Any], making: tuple, longest: Sequence[Job], sampling: Sampling) -> tuple:
        """Load the model and return its revision and this node's address; raises InputError for what cannot run.

        The engine is shown the longest prompts of the run, so that it starts once with room for all of them.
        """
        loaded = load(**loading)
        name, batch_size, options = making
        self.engine = make_engine(name, loaded, batch_size, options)
        complete_all(self.engine, longest, sampling)
        return loaded.revision, ray.util.get_node_ip_address()

    def complete(self, jobs: Sequence[Job], sampling: Sampling) -> Iterator[Completion]:
        """Yield a completion for each prompt as it finishes."""
        for completion in complete_all(self.engine, jobs, sampling):  # noqa: UP028 (Ray sends; a chain takes nothing)
            yield completion


@dataclass(eq=False)
class _Member:
    actor: Any
    awaited: Any  # a reference to what `prepare` returns, then a stream of completions; None: nothing to do
    ready: bool = False
    proven: bool = False  # it has completed something
    owed: dict[str, Job] = field(default_factory=dict)


class Workers:
    """`count` workers with `gpus` GPUs each; `failed`: key -> reason of prompts that were given up.

    `loaded` needs no weights; a worker whose checkpoint has another revision is refused.
    """

    def __init__(self, count: int, gpus: int, loaded: Loaded, engine: str, batch_size: int, options: dict[str, int]):
        self.count, self.gpus, self.loaded, self.batch_size = count, gpus, loaded, batch_size
        self.making = engine, batch_size, options
        self.failed: dict[str, str] = {}
        self.lost = 0
        self._members: list[_Member] = []
        self._in_a_row = 0  # losses since the last completion
        self._deaths: collections.Counter[str] = collections.Counter()
        self._fresh: collections.deque[Job] = collections.deque()
        self._suspects: collections.deque[list[Job]] = collections.deque()  # chunks of those whose worker was lost

    def __enter__(self) -> "Workers":
        """Join the cluster of RAY_ADDRESS or start one on this machine; raises InputError when that fails."""
        address = os.environ.get("RAY_ADDRESS") or "local"
        here = {"num_cpus": self.count, "include_dashboard": False, "object_store_memory": OBJECTS}
        before = _children()
        try:
            _reach(address)
            ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **(here if address == "local" else {}))
        except Exception as error:  # of any kind, RuntimeError and bare Exception among them
            busy = "Ray did not start here, for which it gives a busy machine too little time"
            where = busy if address == "local" else f"the Ray cluster at {address} cannot be joined"
            raise InputError(f"{where}: {_one_line(error)}") from error
        if address == "local":
            end_with_this_process(_children() - before)
        return self

    def __exit__(self, *exception: object) -> None:
        for member in self._members:
            ray.kill(member.actor)
        ray.shutdown()

    @property
    def status(self) -> str:
        """How many workers are at work and how many were lost, as the end of a line."""
        lost = f", {self.lost} lost" if self.lost else ""
        return f", {sum(member.ready for member in self._members)} of {self.count} workers{lost}"

    def complete(self, jobs: Sequence[Job], sampling: Sampling) -> Iterator[Completion]:
        """Yield a completion for each prompt that is not in `failed` at the end, as it finishes.

        Raises InputError for a worker that refuses to start or has another revision, and when workers are lost one
        after the other or none comes.
        """
        # A worker's engine takes one setting of ARM after the other: neighbours should share it.
        self._fresh.extend(sorted(jobs, key=lambda job: repr(job.arm)))
        longest = {job.arm: job for job in sorted(jobs, key=lambda job: len(job.request.input_ids))}
        start = list(longest.values()), sampling
        self._members = [self._hire(*start) for _ in range(self.count)]
        heard = time.monotonic()
        while self._fresh or self._suspects or any(member.owed for member in self._members):
            self._give_out(sampling)
            streams = {member.awaited: member for member in self._members if member.awaited is not None}
            found, _ = ray.wait(list(streams), timeout=LOOK)
            if not found and time.monotonic() - heard > PATIENCE and not any(m.ready for m in self._members):
                raise InputError(f"no worker started in {PATIENCE} s: {self._resources()}")
            for member in [streams[one] for one in found]:
                heard = time.monotonic()
                try:
                    completion = self._hear(member)
                except RayError as error:
                    self._lose(member, error)
                    self._members.append(self._hire(*start))
                    continue
                if completion:
                    yield completion

    def _hire(self, longest: Sequence[Job], sampling: Sampling) -> _Member:
        actor = ray.remote(Worker).options(num_cpus=1, num_gpus=self.gpus).remote()
        loading = {name: getattr(self.loaded, name) for name in ("spec", "device", "dtype")}
        return _Member(actor, actor.prepare.remote(loading, self.making, longest, sampling))

    def _give_out(self, sampling: Sampling) -> None:
        for member in self._members:
            if member.ready and member.awaited is None and (chunk := self._chunk(member)):
                member.owed = {job.request.key: job for job in chunk}
                member.awaited = member.actor.complete.options(num_returns="streaming").remote(chunk, sampling)

    def _chunk(self, member: _Member) -> list[Job]:
        """Return what a worker does next: an equal share of what is left, of a long run the half of it.

        Suspects come last, and to a worker that has completed something, since a broken one would be their end.
        """
        if self._fresh:
            free = self.count - sum(bool(other.owed) for other in self._members)
            half = math.ceil(len(self._fresh) / 2 / self.count)
            size = min(math.ceil(len(self._fresh) / max(free, 1)), max(BATCHES * self.batch_size, half))
            return [self._fresh.popleft() for _ in range(size)]
        trusted = member.proven or not any(other.proven for other in self._members)
        return self._suspects.popleft() if self._suspects and trusted else []

    def _hear(self, member: _Member) -> Completion | None:
        """Take in what a worker says: its revision, a completion, or that it is done; raises RayError for its loss."""
        if not member.ready:
            revision, node = ray.get(member.awaited)
            if revision != self.loaded.revision:
                ours = f"{self.loaded.spec} at revision {self.loaded.revision}"
                raise InputError(f"the worker at {node} has revision {revision}, this run {ours}")
            member.ready, member.awaited = True, None
            return None
        try:
            completion = ray.get(next(member.awaited))
        except StopIteration:
            member.awaited, member.owed = None, {}
            return None
        member.owed.pop(completion.key, None)
        member.proven, self._in_a_row = True, 0
        return completion

    def _lose(self, member: _Member, error: RayError) -> None:
        """Dismiss a worker and let others do what it owes: in the end each alone, so that one is to blame."""
        if not member.ready and isinstance(error, InputError):
            raise InputError(f"a worker refuses: {error.args[0]}") from error
        ray.kill(member.actor)
        self._members.remove(member)
        self.lost += 1
        self._in_a_row += 1
        if self._in_a_row > DEATHS * self.count:
            raise InputError(f"{self._in_a_row} workers were lost one after the other: {_one_line(error)}") from error
        owed = list(member.owed.values())
        self._deaths.update(list(member.owed))
        deaths = max((self._deaths[key] for key in member.owed), default=0)
        if deaths == DEATHS:
            self.failed |= dict.fromkeys(member.owed, _one_line(error))
            return
        size = 1 if deaths == DEATHS - 1 else math.isqrt(len(owed)) + 1
        self._suspects.extend(owed[begin : begin + size] for begin in range(0, len(owed), size))

    def _resources(self) -> str:
        total = ray.cluster_resources()
        return f"the cluster has {total.get('CPU', 0):.0f} CPUs and {total.get('GPU', 0):.0f} GPUs in all"


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _reach(address: str) -> None:
    """Raise OSError where nothing listens at host:port, which Ray would try to reach for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK).close()


def _one_line(error: BaseException) -> str:
    """Return the end of an error's text, which names the cause in Ray's many lines."""
    return " ".join(str(error).split())[-300:]
