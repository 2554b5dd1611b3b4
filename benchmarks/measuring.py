"""What the benchmarks share: options, ids, ways timed in turns, and where a table is
kept with its machine.
"""

import argparse
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

RESULTS = Path(__file__).parent / "results"
ROOT = RESULTS.parent.parent.resolve()
PACKAGES = (
    ROOT / "packages"
)  # of the folder that gpu_folder.py fills: what a node's own Python lacks
sys.path += [str(ROOT), str(PACKAGES)]  # lib need not be installed


def lengths_and_repeats(
    about: str, tokens: list[int], repeats: int
) -> argparse.Namespace:
    """Return the command line's `tokens` and `repeats`, else these; `about` is the
    program's docstring.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=tokens)
    parser.add_argument("--repeats", type=int, default=repeats)
    return parser.parse_args()


def random_ids(tokens: int) -> torch.Tensor:
    """Return the one prompt of a length, (1, T)."""
    return torch.randint(
        100, 40_000, (1, tokens), generator=torch.Generator().manual_seed(0)
    )


def in_turns(
    ways: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Return the seconds of each way in each turn, after one to warm up.

    Every other turn goes backwards, so that no way always follows the same one.
    """
    times = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, call in list(ways.items())[:: 1 if turn % 2 else -1]:
            start = clock()
            call()
            times[name] += [clock() - start] if turn else []
    return times


def machine() -> dict[str, str]:
    """Describe what the numbers belong to."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in lines
            if line.startswith("model name")
        ),
        "",
    )
    versions = {}
    for package in ("torch", "transformers", "transformer-lens"):
        try:
            versions[package.replace("-", "_")] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package.replace("-", "_")] = ""
    return {
        "cpu": f"{model or platform.processor()} ({platform.machine()})",
        "cores": os.cpu_count(),
        **versions,
    }


def keep(name: str, table: pd.DataFrame, **settings: object) -> pd.DataFrame:
    """Write a table as results/<name>.csv with the settings and the machine that its
    numbers belong to; return it.
    """
    table = table.assign(**settings, **machine())
    RESULTS.mkdir(exist_ok=True)
    table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.4g")
    return table
