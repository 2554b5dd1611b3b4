"""Worker processes for algebra that can be killed, and the pool that feeds them.

Each thread of the pool owns one process and talks to it through a socket; nothing is forked, so it works from any
thread and with CUDA loaded. A process that is late is killed and a fresh one started.
"""

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

from lib.grading.operations import evaluated
from lib.grading.rules import Verdict
from lib.grading.stages import Grade, settle
from lib.paths import ROOT

SECONDS = 8.0  # for the algebra: with two for a process to start a case ends within ten
START_SECONDS = 60.0
MAX_FAILED_STARTS = 3  # a process that cannot start will not start at the next case either


class Worker:
    """One process that compares pairs of answers; not for two threads at once."""

    _line: socket.socket  # to the process, while there is one
    _replies: io.BufferedReader  # of the process

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._ready = False
        self._failed_starts = 0

    def compare(self, gold: str, answer: str) -> Verdict:
        """Return the verdict, or (False, "timeout") or (False, "crash"); never raises for a bad answer."""
        if not self._ensure_ready():
            return False, "crash"
        try:
            self._line.sendall(json.dumps([gold, answer]).encode() + b"\n")
            correct, method = json.loads(self._read_line(SECONDS))
        except OSError as error:
            self.close()
            with contextlib.suppress(OSError):
                self._start()  # now, so that it is ready when the next case comes
            correct, method = False, "timeout" if isinstance(error, TimeoutError) else "crash"
        return correct, method

    def close(self) -> None:
        """Kill the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._replies.close()
            self._line.close()
            self._process, self._ready = None, False

    def _start(self) -> None:
        self._ready = False
        # One arithmetic on every machine; with gmpy2 some answers abort the process.
        arithmetic = {"SYMPY_GROUND_TYPES": "python", "MPMATH_NOGMPY": "1"}
        self._line, theirs = socket.socketpair()
        self._replies = self._line.makefile("rb")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lib.grading.worker"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                env=os.environ | arithmetic | {"PYTHONPATH": str(ROOT)},
                # An interrupt of the notebook must not reach the workers: the parent ends them.
                start_new_session=True,
            )

    def _ensure_ready(self) -> bool:
        """Wait for the imports of a fresh process; give up after several that never got there."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        while not self._ready and self._failed_starts < MAX_FAILED_STARTS:
            try:
                if self._process is None:
                    self._start()
                self._ready = self._read_line(START_SECONDS) == b"ready\n"
            except OSError:
                self._failed_starts += 1
                self.close()
        if self._failed_starts == MAX_FAILED_STARTS:
            warnings.warn("no grading worker starts: `python -m lib.grading.worker` says why", stacklevel=2)
            self._failed_starts += 1
        return self._ready

    def _read_line(self, seconds: float) -> bytes:
        """Read one line; raises TimeoutError when it is late and ConnectionError when the process is gone."""
        self._line.settimeout(seconds)
        if not (line := self._replies.readline()).endswith(b"\n"):
            raise ConnectionError
        return line


class GradingPool(contextlib.AbstractContextManager):
    """Grades pairs as they arrive, in a `with` statement; a process a core, 8 at most, each started when needed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(min(os.cpu_count() or 1, 8), thread_name_prefix="grading")
        self._local = threading.local()
        self._workers: list[Worker] = []

    def submit(self, gold: str, response: str) -> "Future[Grade]":
        """Return a future of the grade: done at once without algebra, else within ten seconds of its turn."""
        settled = settle(gold, response)
        if isinstance(settled, str):
            return self._threads.submit(self._compare, gold, settled)
        future: Future[Grade] = Future()
        future.set_result(settled)
        return future

    def map(self, pairs: Iterable[tuple[str, str]]) -> list[Grade]:
        """Return the grades of (gold, response) pairs in their order."""
        futures = [self.submit(gold, response) for gold, response in pairs]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def __exit__(self, *exception: object) -> None:
        """Drop what has not begun, wait for what has, and end the processes."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def _compare(self, gold: str, extracted: str) -> Grade:
        if not hasattr(self._local, "worker"):
            self._local.worker = Worker()
            self._workers.append(self._local.worker)
        correct, method = self._local.worker.compare(gold, extracted)
        return Grade(correct, extracted, method, evaluated(gold, extracted))


def grade(gold: str, response: str) -> Grade:
    """Grade the completion of one problem, in 0.1 ms, by algebra within 11 s; raises for no text whatever."""
    return _shared_pool().submit(gold, response).result()


def grade_many(pairs: Iterable[tuple[str, str]]) -> list[Grade]:
    """Grade (gold, response) pairs and return the grades in their order."""
    return _shared_pool().map(pairs)


@cache
def _shared_pool() -> GradingPool:
    return GradingPool()


# A forked child has the pool's memory but not its threads: it needs a pool of its own.
os.register_at_fork(after_in_child=_shared_pool.cache_clear)
