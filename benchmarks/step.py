"""Tokens per second of a step of generation, by how many positions each row's cache holds.

    python benchmarks/step.py [--models demo ...] [--dtype float32] [--rows 96] [--positions 128 850] [--repeats 3]

All rows have the same prompt, which is prefilled once; a run of few new tokens is taken off a run of more, so that only
steps count. Writes benchmarks/results/step.csv and prints the table.
"""

import argparse
import functools
import statistics
import time

import pandas as pd
import torch
from measuring import in_turns, keep

from lib.generation.interface import Request, Sampling, make_engine
from lib.models.loading import load

FEW, MORE = 2, 10  # new tokens of the two runs


def complete(engine, requests: list[Request], new_tokens: int) -> None:
    """Let the engine write so many tokens behind every prompt."""
    for _ in engine.complete(requests, Sampling(new_tokens)):
        pass


def main() -> None:
    """Measure every model at every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["demo"])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--positions", type=int, nargs="+", default=[128, 850])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for spec in options.models:
        loaded = load(spec, dtype=options.dtype)
        engine = make_engine("transformers", loaded, options.rows, {})
        engine.stops = set()  # every row writes as many tokens as it may
        for positions in options.positions:
            ids = torch.randint(100, 10_000, (positions,), generator=torch.Generator().manual_seed(0)).tolist()
            requests = [Request(str(row), ids) for row in range(options.rows)]
            ways = {str(new): functools.partial(complete, engine, requests, new) for new in (FEW, MORE)}
            times = in_turns(ways, options.repeats, time.perf_counter)
            few, more = (statistics.median(times[str(new)]) for new in (FEW, MORE))
            seconds = (more - few) / (MORE - FEW)
            found = {"model": loaded.name, "dtype": loaded.dtype, "rows": options.rows, "positions": positions}
            rows.append(found | {"seconds_per_step": seconds, "tokens_per_second": options.rows / seconds})
    table = keep("step", pd.DataFrame(rows), threads=torch.get_num_threads())
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
