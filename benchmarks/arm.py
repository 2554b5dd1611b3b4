"""What ARM, or counting activations, adds to a forward pass of the demo model.

    python benchmarks/arm.py [--tokens 128 512 2048] [--repeats 9]

The ways take turns in one process, forwards and backwards. `redistribute` is also timed
alone, on what it gets in that forward: its cost lies below the noise of two whole
forwards. Writes benchmarks/results/arm.csv and prints the table: seconds of the plain
forward and ratios to it, medians over the turns.
"""

import contextlib
import functools
import statistics
import time

import pandas as pd
import torch
from measuring import in_turns, keep, lengths_and_repeats, random_ids

from lib.arm.activations import histogram, measures_of, near_zero_bound, watched
from lib.arm.moving import installed, redistribute
from lib.arm.settings import MODES
from lib.models.loading import Loaded, load


def reduce(layer: int, gate: torch.Tensor, activation: torch.Tensor) -> None:
    """Take in a layer's activations as notebook 04 does."""
    histogram(activation)
    measures_of(
        gate[0], activation[0], near_zero_bound(activation.reshape(1, -1), 0.13)
    )


def ways(loaded: Loaded) -> dict:
    """Return by name the context under which the forward is timed."""
    return {
        "plain": contextlib.nullcontext,
        "arm_text": lambda: installed(loaded.model),
        "arm_code": lambda: installed(loaded.model, mode="code"),
        "measured_layer": lambda: watched(loaded.model, [1], reduce),
    }


def redistribute_alone(
    loaded: Loaded, ids: torch.Tensor, repeats: int
) -> dict[str, list[float]]:
    """Return seconds of `redistribute` in each mode on one prompt's first layer."""
    activations = []

    def keep_activation(layer, gate, activation) -> None:
        activations.append(activation)

    with torch.inference_mode(), watched(loaded.model, [1], keep_activation):
        loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1)
    calls = {
        f"{mode}_alone": functools.partial(redistribute, activations[0], mode=mode)
        for mode in MODES
    }
    return in_turns(calls, repeats, time.perf_counter)


def measure_length(loaded: Loaded, tokens: int, repeats: int) -> dict:
    """Return the median seconds of the plain forward, and median ratios to it.

    A ratio is of two ways in the same turn.
    """
    ids = random_ids(tokens)

    def forward(context) -> None:
        with torch.inference_mode(), context():
            loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1)

    contexts = ways(loaded).items()
    calls = {name: functools.partial(forward, context) for name, context in contexts}
    times = in_turns(calls, repeats, time.perf_counter)
    plain = times.pop("plain")
    times |= redistribute_alone(loaded, ids, repeats)

    medians = {"tokens": tokens, "plain": statistics.median(plain)}
    for name, seconds in times.items():
        pairs = zip(seconds, plain, strict=True)
        medians[f"{name}_of_plain"] = statistics.median(a / b for a, b in pairs)
    return medians


def main() -> None:
    """Measure every length and write the table."""
    options = lengths_and_repeats(__doc__, [128, 512, 2048], 9)
    loaded = load("demo", device="cpu", dtype="float32")
    rows = [measure_length(loaded, n, options.repeats) for n in options.tokens]
    table = pd.DataFrame(rows)
    keep("arm", table, repeats=options.repeats)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
