"""Functions that all benchmarks share: timing in turns, and tables with their
machine.
"""

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"
ROOT = RESULTS.parent.parent.resolve()
sys.path.append(str(ROOT))  # lib need not be installed
VERSIONED = ("torch", "transformers")


def in_turns(
    ways: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Return the seconds of each way in each turn, after a turn to warm up.

    Every other turn is in reverse order, so that no way always follows the same one.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        order = list(ways) if turn % 2 else list(reversed(ways))
        for name in order:
            start = clock()
            ways[name]()
            seconds = clock() - start
            if turn:
                times[name].append(seconds)
    return times


def machine() -> dict[str, object]:
    """Return the processor, the number of cores and the versions of packages."""
    processor = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip() or processor
                break
    description = {
        "cpu": f"{processor} ({platform.machine()})",
        "cores": os.cpu_count(),
    }
    for package in VERSIONED:
        description[package] = importlib.metadata.version(package)
    return description


def keep(name: str, table: pd.DataFrame, **settings: object) -> None:
    """Print a table, and write it as results/<name>.csv with columns for its settings
    and its machine.
    """
    print(table.round(3).to_string(index=False))
    described = table.assign(**settings, **machine())
    described.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.4g")
