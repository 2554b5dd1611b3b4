"""How fast this machine computes: its own last runs, else ten seconds of trying.

A task's work is counted in floating-point operations: those of tokens that are read,
many at a time, and those of tokens that are written, a batch at a time. Matrix products
of both shapes are timed once for each processor and dtype. What a task takes beyond
them, such as loading, grading and drawing, is its overhead: the median of its last runs
here, else what was measured with the demo.
"""

import contextlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from lib import paths
from lib.paths import write_json
from lib.plan.machine import Machine, processor

# The product that is timed is one of a 1.5B's MLP: rows x WIDTH times WIDTH x INNER.
TRIAL_WIDTH = 1536
INNER = 8960
ROWS_READ = 256
ROWS_WRITTEN = 64
SECONDS_PER_PRODUCT = 1.25  # of four products at most: two shapes, two dtypes
# How many seconds a task takes for a second of its products alone: measured on the demo
# with one core of an EPYC, where nothing of this machine is known.
OVERHEADS = {
    "tokens": 2.0,
    "attention": 1.6,
    "activations": 1.5,
    "controls": 1.4,
    "answers": 1.2,
    "likelihood": 1.2,
    "notebook": 1.0,
}
NOTEBOOK_SECONDS = 15.0  # what a notebook draws for, where none was timed
LAST_RUNS = 5  # of a kind, of which the median counts
# Runs with fewer seconds of products, and those of tiny models, say more of what goes
# on around products than of a long run.
SHORTEST = 20.0


@dataclass(frozen=True)
class Workload:
    """What a task computes, in units of 10^9 floating-point operations."""

    read: float = 0.0
    written: float = 0.0


@dataclass(frozen=True)
class Speed:
    """How many 10^9 floating-point operations this machine does in a second."""

    read: float
    written: float

    def seconds(self, work: Workload) -> float:
        """Return how long the products of this work take, and nothing else."""
        return work.read / self.read + work.written / self.written


def speed_of(machine: Machine, dtype: str) -> Speed:
    """Return the speed of products in this dtype, timed once and then remembered."""
    path = paths.CACHE / "speed.json"
    key = f"{processor()}, {dtype}"
    known = _read_json(path)
    if key not in known:
        known[key] = {
            "read": _timed(machine.device, dtype, ROWS_READ),
            "written": _timed(machine.device, dtype, ROWS_WRITTEN),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, known)
    return Speed(**known[key])


def _read_json(path) -> dict:
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads(path.read_text()))
    return {}


def _timed(device: str, dtype: str, rows: int) -> float:
    """Return how many 10^9 operations a second products of so many rows do.

    On a CPU the processor's time counts, so that what else runs meanwhile does not.
    """
    # Not above: what is stored is planned and drawn without torch.
    import torch

    form = {"device": device, "dtype": getattr(torch, dtype)}
    weights = torch.ones(INNER, TRIAL_WIDTH, **form)
    inputs = torch.ones(rows, TRIAL_WIDTH, **form)
    torch.nn.functional.linear(inputs, weights).sum().item()

    clock = time.process_time if device == "cpu" else time.monotonic
    threads = torch.get_num_threads() if device == "cpu" else 1
    products = 0
    begun = clock()
    while clock() < begun + SECONDS_PER_PRODUCT * threads:
        # Reading a number waits for a GPU to be done.
        torch.nn.functional.linear(inputs, weights)[0, 0].item()
        products += 1
    seconds = (clock() - begun) / threads
    return products * 2 * rows * TRIAL_WIDTH * INNER / 1e9 / seconds


def overhead_of(kind: str) -> tuple[float, bool]:
    """Return the overhead of a kind of task, and whether its last runs here say so."""
    ratios = []
    for run in _runs():
        if run["kind"] == kind and run["processor"] == processor():
            ratios.append(run["seconds"] / run["products"])
    if ratios:
        return statistics.median(ratios[-LAST_RUNS:]), True
    return OVERHEADS[kind], False


@contextlib.contextmanager
def remembered(kind: str, products: float, on_processor: bool = True) -> Iterator[None]:
    """Remember how long the block takes whose products alone take so many seconds.

    on_processor: neither a GPU nor workers compute. Then it took no longer than it had
    of the processor: what else ran meanwhile does not count.
    """
    started, used = _clocks()
    yield
    ended, used_then = _clocks()
    seconds = ended - started
    if on_processor:
        seconds = min(seconds, used_then - used)
    if products < SHORTEST:
        return
    run = {
        "kind": kind,
        "processor": processor(),
        "products": products,
        "seconds": seconds,
    }
    path = paths.CACHE / "runs.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        file.write(json.dumps(run) + "\n")


def _clocks() -> tuple[float, float]:
    """Return the seconds of the clock, and those that this process has had of the
    processor, with the processes that it started and that ended, such as kernels.
    """
    return time.monotonic(), sum(os.times()[:4])


def _runs() -> Iterator[dict]:
    """Yield the runs that were remembered, the oldest first."""
    path = paths.CACHE / "runs.jsonl"
    if not path.is_file():
        return
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):  # half a line of a run that was killed
            yield json.loads(line)
