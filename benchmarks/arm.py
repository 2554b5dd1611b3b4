"""What ARM adds to a forward pass of the demo model, and what counting activations adds: ratios to the plain forward.

    python benchmarks/arm.py [--tokens 128 512 2048] [--repeats 9]

The ways take turns in one process, forwards and backwards. `redistribute` is also timed alone, on what it gets in
that forward: its cost lies below the noise of two whole forwards. Writes benchmarks/results/arm.csv and prints the
table: seconds of the plain forward and ratios to it, medians over the turns.
"""

import argparse
import contextlib
import statistics
import time
from pathlib import Path

import pandas as pd
import torch
from extraction import machine

from lib.arm.activations import histogram, measure, near_zero_bound, watched
from lib.arm.hook import installed
from lib.arm.moving import redistribute
from lib.arm.settings import MODES
from lib.models.loading import Loaded, load

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


def redistribute_alone(loaded: Loaded, ids: torch.Tensor, repeats: int) -> dict[str, list[float]]:
    """Return seconds of `redistribute` in each mode on the first layer's activations of one prompt."""
    kept = []
    with torch.inference_mode(), watched(loaded.model, [1], lambda layer, gate, activation: kept.append(activation)):
        loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1)
    times = {f"{mode}_alone": [] for mode in MODES}
    for _ in range(repeats):
        for mode in MODES:
            start = time.perf_counter()
            redistribute(kept[0], mode=mode)
            times[f"{mode}_alone"].append(time.perf_counter() - start)
    return times


def measure_length(loaded: Loaded, tokens: int, repeats: int) -> dict:
    """Return the median seconds of the plain forward, and of each other way the median ratio to it in the same turn."""
    ids = torch.randint(100, 40_000, (1, tokens), generator=torch.Generator().manual_seed(0))
    times = {name: [] for name in ways(loaded)}
    for turn in range(repeats + 1):  # the first turn only warms up
        # Every other turn goes backwards, so that no way always follows the same one.
        for name, context in list(ways(loaded).items())[:: 1 if turn % 2 else -1]:
            with torch.inference_mode(), context():
                start = time.perf_counter()
                loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1)
                times[name] += [time.perf_counter() - start] if turn else []
    plain = times.pop("plain")
    times |= redistribute_alone(loaded, ids, repeats)
    ratios = {name: [own / base for own, base in zip(found, plain, strict=True)] for name, found in times.items()}
    medians = {f"{name}_of_plain": statistics.median(found) for name, found in ratios.items()}
    return {"tokens": tokens, "plain": statistics.median(plain)} | medians


def main() -> None:
    """Measure every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    loaded = load("demo", device="cpu", dtype="float32")
    table = pd.DataFrame([measure_length(loaded, tokens, options.repeats) for tokens in options.tokens])
    RESULTS.parent.mkdir(exist_ok=True)
    table.assign(repeats=options.repeats, **machine()).to_csv(RESULTS, index=False, float_format="%.4g")
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
