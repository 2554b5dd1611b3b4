"""Tokens per second of one core in a step of generation, by the length of the cache.

    python benchmarks/step.py [--models demo ...] [--dtype float32] [--rows 64]
        [--positions 128 850] [--steps 8]

One prompt is prefilled and stands in every row; then so many steps are taken at each
length, the lengths in turns. Times are the processor's. Writes
benchmarks/results/step.csv and prints the table: medians, and the range of the steps.
"""

import argparse
import time

import numpy as np
import pandas as pd
import torch
from measuring import keep, random_ids
from transformers import DynamicCache

from lib.generation.step import DecodeSteps
from lib.models.loading import Loaded, load


@torch.inference_mode()
def filled(loaded: Loaded, rows: int, positions: int, steps: int) -> DecodeSteps:
    """Return steps whose rows all hold the same prompt of so many tokens."""
    prefilled = DynamicCache()
    loaded.model(random_ids(positions), past_key_values=prefilled, use_cache=True)
    filled_steps = DecodeSteps(loaded.model, rows, positions + steps)
    for row in range(rows):
        filled_steps.cache.write(row, prefilled, [positions])
    return filled_steps


def measure(loaded: Loaded, options: argparse.Namespace) -> list[dict]:
    """Return a row for each length, whose steps were taken in turns."""
    positions = options.positions
    taken = {n: filled(loaded, options.rows, n, options.steps + 1) for n in positions}
    times = {n: [] for n in positions}
    for turn in range(options.steps + 1):
        for n, steps in taken.items():
            start = time.process_time()
            steps([100] * options.rows)
            seconds = time.process_time() - start
            # The first turn warms up.
            if turn:
                times[n].append(seconds)
    return [
        {
            "model": loaded.name,
            "dtype": options.dtype,
            "rows": options.rows,
            "positions": n,
            "seconds": np.median(seconds),
            "fastest": min(seconds),
            "slowest": max(seconds),
            "tokens_per_second": options.rows / np.median(seconds),
        }
        for n, seconds in times.items()
    ]


def main() -> None:
    """Measure every model at every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["demo"])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--positions", type=int, nargs="+", default=[128, 850])
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()

    torch.set_num_threads(1)
    rows = []
    for spec in options.models:
        loaded = load(spec, device="cpu", dtype=options.dtype)
        rows += measure(loaded, options)
    table = keep("step", pd.DataFrame(rows), threads=1)
    print(table.iloc[:, :8].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
