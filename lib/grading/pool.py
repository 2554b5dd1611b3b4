"""Grade in bounded time and memory: algebra runs in processes that the kernel ends.

A worker process answers pairs one at a time. It asks the kernel to end it when a pair
takes too long and to refuse it more memory than it may have, so nobody has to watch it,
and it does not outlive a parent that is killed. Nothing is forked: it works from any
thread or script, and with CUDA loaded.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any, cast

from lib.errors import InputError
from lib.grading.algebra import equal_by_algebra
from lib.grading.equal import Grade, Pair, settle
from lib.paths import ROOT

# What one pair may take: seconds of processor time, and bytes.
SECONDS = 8
MEMORY = 2 << 30
_local = threading.local()  # .worker: a process for each thread of the pool


def grade(gold: str, response: str) -> Grade:
    """Grade the completion of one problem, in 0.2 ms, or by algebra within SECONDS.

    No text whatever makes it raise.
    """
    return submit(gold, response).result()


def grade_many(pairs: Iterable[tuple[str, str]]) -> list[Grade]:
    """Grade (gold, response) pairs and return the grades in their order."""
    futures = [submit(gold, response) for gold, response in pairs]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def submit(gold: str, response: str) -> "Future[Grade]":
    """Return a future of the grade.

    It is done at once without algebra, else within SECONDS of its turn.
    """
    settled, undecided = settle(gold, response)
    if undecided:
        return _threads().submit(_finished, settled, undecided)
    future: Future[Grade] = Future()
    future.set_result(settled)
    return future


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(os.cpu_count() or 1, 8), thread_name_prefix="grading")


# A forked child has the pool's memory but not its threads: it needs a pool of its own.
os.register_at_fork(after_in_child=_threads.cache_clear)


def _finished(settled: Grade, undecided: Pair) -> Grade:
    """Return the grade with the verdict of algebra.

    It is "timeout" or "crash" where the worker ended over it.
    """
    worker = getattr(_local, "worker", None)
    if worker is None or worker.poll() is not None:
        worker = _local.worker = _started_worker()
    try:
        print(json.dumps([SECONDS, *undecided]), file=worker.stdin, flush=True)
        correct, method = json.loads(worker.stdout.readline())
    except (OSError, ValueError):
        # The worker is gone, maybe in the middle of a line.
        correct = False
        method = "timeout" if worker.wait() == -signal.SIGPROF else "crash"
    return replace(settled, correct=correct, method=method)


def _started_worker() -> Any:
    # One arithmetic on every machine; with gmpy2 some answers abort the process.
    environment = {
        "SYMPY_GROUND_TYPES": "python",
        "MPMATH_NOGMPY": "1",
        "PYTHONPATH": str(ROOT),
    }
    start = cast(Any, subprocess.Popen)
    worker = start(
        [sys.executable, "-m", "lib.grading.pool"],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # An interrupt of the notebook must not reach it.
        start_new_session=True,
    )
    if not worker.stdout.readline():
        advice = "`python -m lib.grading.pool` says why"
        raise InputError(f"no grading worker starts: {advice}")
    return worker


def main() -> None:
    """Compare answers until the input ends, a JSON line of seconds, gold and answer
    each.
    """
    with contextlib.suppress(ValueError):  # where a lower limit is in force
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The kernel ends what is late, whatever code it is in. Seconds are the processor's:
    # no grade depends on its load.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)

    # The LaTeX parser complains on stdout, which is for replies alone.
    replies = sys.stdout
    sys.stdout = sys.stderr
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        seconds, gold, answer = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            verdict = equal_by_algebra(gold, answer), "math-verify"
        except MemoryError:
            # What was cut short may be half done: a fresh process takes over.
            os._exit(1)
        except Exception:
            verdict = False, "crash"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(verdict), file=replies, flush=True)


if __name__ == "__main__":
    main()
