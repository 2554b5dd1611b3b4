"""Layer 1 of the demo model over many problems and four conditions, against the plain
forward of the same batches.

    python benchmarks/many_prompts.py [--problems embedded] [--repeats 3]

Writes benchmarks/results/many_prompts.csv and prints the medians: `measure` is all of
lambda, mass, flatness and dispersion including prompts and tables; `observe` the
forwards behind it; `plain` the same batches through SDPA.
"""

import argparse
import statistics
import time
from pathlib import Path

import pandas as pd
import torch
from measuring import keep

from lib.attention.received import received_attention
from lib.measurement.attention import measure_attention, prompts_of
from lib.models.loading import Loaded, load
from lib.prompts.batches import in_batches, pad
from lib.prompts.building import build_prompt
from lib.prompts.problems import Problem, load_problems

INSERTIONS = ("mless", "mful", "random")


def batches(
    loaded: Loaded, problems: list[Problem]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return (ids, lengths) of every batch that the measurement forms."""
    made = []
    for condition in ("none", *INSERTIONS):
        ids = [
            build_prompt(loaded.tokenizer, p.problem, condition).input_ids
            for p in problems
        ]
        lengths = [len(one) for one in ids]
        made += [
            batch
            for _, batch in in_batches(
                lengths, lambda indices, ids=ids: pad([ids[i] for i in indices])
            )
        ]
    return made


def main() -> None:
    """Measure the three ways in turn and write their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--problems", default="embedded", help="embedded, math500 or a JSONL file"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    loaded, problems = (
        load("demo", layers=1, device="cpu", dtype="float32"),
        load_problems(options.problems),
    )
    prepared, decoder = batches(loaded, problems), loaded.model.get_decoder()
    calls = {
        "measure": lambda: list(
            measure_attention(loaded, prompts_of(loaded, problems, INSERTIONS), [1])
        ),
        "observe": lambda: [
            received_attention(loaded.model, ids, [1], lengths)
            for ids, lengths in prepared
        ],
        "plain": lambda: [
            decoder(input_ids=ids, use_cache=False) for ids, _ in prepared
        ],
    }
    times = {name: [] for name in calls}
    with torch.inference_mode():
        for _ in range(options.repeats):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(found) for name, found in times.items()}
    row = {
        "problems": Path(options.problems).stem,
        "n": len(problems),
        "prompts": 4 * len(problems),
    } | seconds
    table = keep(
        "many_prompts",
        pd.DataFrame(
            [row | {"observe_of_plain": seconds["observe"] / seconds["plain"]}]
        ),
    )
    print(table.iloc[:, :7].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
