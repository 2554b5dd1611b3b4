"""What ARM adds to a forward pass of the demo model, and what counting activations adds: ratios to the plain forward.

    python benchmarks/arm.py [--tokens 128 512 2048] [--repeats 7]

The ways take turns in one process. Writes benchmarks/results/arm.csv and prints the medians.
"""

import argparse
import contextlib
import statistics
import time
from pathlib import Path

import pandas as pd
import torch
from extraction import machine

from lib.activations import histogram, measure, near_zero_bound, watched
from lib.arm import installed
from lib.models import Loaded, load

RESULTS = Path(__file__).parent / "results" / "arm.csv"


def reduce(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
    """Take in a layer's activations as notebook 04 does."""
    histogram(activation)
    measure(gate[0], activation[0], near_zero_bound(activation, 0.13))


def ways(loaded: Loaded) -> dict:
    """Return by name the context under which the forward is timed."""
    return {
        "plain": contextlib.nullcontext,
        "arm_text": lambda: installed(loaded.model),
        "arm_code": lambda: installed(loaded.model, mode="code"),
        "measured_layer": lambda: watched(loaded.model, [1], reduce),
    }


def measure_length(loaded: Loaded, tokens: int, repeats: int) -> dict:
    """Return median seconds of each way on one prompt of random tokens."""
    ids = torch.randint(100, 40_000, (1, tokens), generator=torch.Generator().manual_seed(0))
    times = {name: [] for name in ways(loaded)}
    for turn in range(repeats + 1):  # the first turn only warms up
        for name, context in ways(loaded).items():
            with torch.inference_mode(), context():
                start = time.perf_counter()
                loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1)
                times[name] += [time.perf_counter() - start] if turn else []
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    """Measure every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    loaded, rows = load("demo", device="cpu", dtype="float32"), []
    for tokens in options.tokens:
        seconds = measure_length(loaded, tokens, options.repeats)
        ratios = {f"{name}_of_plain": value / seconds["plain"] for name, value in seconds.items() if name != "plain"}
        rows.append({"tokens": tokens, "plain": seconds["plain"]} | ratios)
    table = pd.DataFrame(rows)
    RESULTS.parent.mkdir(exist_ok=True)
    table.assign(repeats=options.repeats, **machine()).to_csv(RESULTS, index=False, float_format="%.4g")
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
