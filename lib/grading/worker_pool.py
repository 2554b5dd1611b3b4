"""Grade answers in worker processes with limited time and memory.

The kernel kills a worker that exceeds the time limit for a pair, and does not give it
memory beyond the limit; pebble then starts another worker. Workers are spawned rather
than forked, so that grading works in any thread and after CUDA is initialised.
"""

import contextlib
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.util import Finalize
from types import ModuleType

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from lib.errors import InputError
from lib.grading.extraction import UNDECIDED, Grade, settle

# Limits for one pair: seconds of processor time, and bytes.
SECONDS = 8
MEMORY = 2 << 30
_starting = threading.Lock()  # one worker starts at a time
_making = threading.Lock()  # one pool is created, by the first thread


def grade(gold: str, response: str) -> Grade:
    """Return the grade of one response, usually within milliseconds; a comparison ends
    after SECONDS of processor time.
    """
    return grade_many([(gold, response)])[0]


def grade_many(pairs: Iterable[tuple[str, str]]) -> list[Grade]:
    """Return the grades of (gold, response) pairs, in their order.

    Raises InputError if no worker can start.
    """
    pairs = list(pairs)
    grades = [settle(*pair) for pair in pairs]
    undecided = [n for n, one in enumerate(grades) if one.method == UNDECIDED]
    tasks = [(SECONDS, pairs[n][0], grades[n].extracted) for n in undecided]
    for n, (correct, method) in zip(undecided, _results(tasks), strict=True):
        grades[n] = replace(grades[n], correct=correct, method=method)
    return grades


def _results(tasks: list[tuple], tries: int = 2) -> list[tuple[bool, str]]:
    """Return the workers' results (correct, method) for pairs, in their order.

    tasks: the arguments of `_compare`. If the pool is broken, because its idle workers
    were killed, a new pool repeats the tasks. Raises InputError if that fails, too.
    """
    futures: list[ProcessFuture] = []
    try:
        with _making:
            pool = _pool()
        futures = [pool.schedule(_compare, task) for task in tasks]
        return [_result(future) for future in futures]
    except RuntimeError as error:
        _pool.cache_clear()
        if tries > 1:
            return _results(tasks, tries - 1)
        raise InputError(f"no grading worker starts: {error}") from error
    finally:
        for future in futures:
            future.cancel()


class _Worker(SpawnProcess):
    """A process that does not import the calling script, as multiprocessing would.

    A script without the guard `if __name__ == "__main__":` would otherwise run again in
    the worker, and wait for itself.
    """

    @staticmethod
    def _Popen(process_obj):
        with _starting:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                sys.modules["__main__"] = script


class _Workers(SpawnContext):
    """The multiprocessing context whose processes are `_Worker`."""

    Process = _Worker


@cache
def _pool() -> ProcessPool:
    """Return the pool of this process, which is created on first use."""
    pool = ProcessPool(
        min(os.cpu_count() or 1, 8), initializer=_limit, context=_Workers()
    )
    # A process that multiprocessing started waits at its end for the workers.
    Finalize(pool, _end, (pool,), exitpriority=0)
    return pool


def _end(pool: ProcessPool) -> None:
    pool.stop()
    pool.join()


# A forked child has the pool's memory but not its threads, so it needs a new pool.
os.register_at_fork(after_in_child=_pool.cache_clear)


def _result(future: ProcessFuture) -> tuple[bool, str]:
    """Return a worker's result for a pair; False and "timeout" or "crash" if the worker
    ended.
    """
    try:
        return future.result()
    except ProcessExpired as error:
        is_late = error.exitcode == -signal.SIGPROF
        return False, "timeout" if is_late else "crash"


def _limit() -> None:
    """Limit a worker's memory, and make its algebra the same on every machine."""
    for kind, limit in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        # Errors mean that a lower limit is in force, or that the system does not allow
        # limits, as macOS. Then only the time of a pair is limited.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # gmpy2 is switched off, because it aborts the process for some answers.
    os.environ |= {"SYMPY_GROUND_TYPES": "python", "MPMATH_NOGMPY": "1"}


def _compare(seconds: float, gold: str, answer: str) -> tuple[bool, str]:
    """Return the result of `compare` for a pair, or False and the status of a failure.

    seconds: of processor time, so that no grade depends on the load of the machine. The
    kernel kills a worker that exceeds it.
    """
    # Imported in the worker, under its memory limit, and before the time starts.
    from lib.grading.algebra import UnreadableGold
    from lib.grading.equality import compare

    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return compare(gold, answer)
    except MemoryError:
        # An interrupted comparison may leave an inconsistent state: use a new process.
        os._exit(1)
    except UnreadableGold:
        return False, "unreadable-gold"
    except Exception:
        return False, "crash"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
