"""Layer 1 of the demo model over many prompts, against the plain forward of them.

    python benchmarks/many_prompts.py [--problems embedded] [--repeats 3]

The prompts are those of many problems under four conditions, in the same batches.
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
from measuring import in_turns, keep

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
    formed = []
    for condition in ("none", *INSERTIONS):
        prompts = [
            build_prompt(loaded.tokenizer, problem.problem, condition).input_ids
            for problem in problems
        ]

        def padded(places: list[int], prompts=prompts):
            return pad([prompts[place] for place in places])

        lengths = [len(ids) for ids in prompts]
        formed += [batch for _, batch in in_batches(lengths, padded)]
    return formed


def main() -> None:
    """Measure the three ways in turn and write their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--problems", default="embedded", help="embedded, math500 or a JSONL file"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    loaded = load("demo", layers=1, device="cpu", dtype="float32")
    problems = load_problems(options.problems)
    prepared = batches(loaded, problems)
    decoder = loaded.model.get_decoder()

    def measure() -> None:
        prompts = prompts_of(loaded, problems, INSERTIONS)
        for _ in measure_attention(loaded, prompts, [1]):
            pass

    def observe() -> None:
        for ids, lengths in prepared:
            received_attention(loaded.model, ids, [1], lengths)

    def plain() -> None:
        for ids, _ in prepared:
            decoder(input_ids=ids, use_cache=False)

    ways = {"measure": measure, "observe": observe, "plain": plain}
    with torch.inference_mode():
        times = in_turns(ways, options.repeats, time.perf_counter)
    seconds = {name: statistics.median(times[name]) for name in ways}
    row = {
        "problems": Path(options.problems).stem,
        "n": len(problems),
        "prompts": 4 * len(problems),
        **seconds,
        "observe_of_plain": seconds["observe"] / seconds["plain"],
    }
    table = keep("many_prompts", pd.DataFrame([row]))
    print(table.iloc[:, :7].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
