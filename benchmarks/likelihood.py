"""What a score costs: log likelihoods under a condition against a plain forward of the
same tokens, in turns.

    python benchmarks/likelihood.py [--models demo ...] [--problems embedded] [--limit 16] [--repeats 5]

`plain` is transformers' own SDPA with logits at the scored places alone, row by row of
the same batch, padded on the right; nothing is computed once for all rows. A problem
without a solution is its own text to score. Times are of the processor. Writes
benchmarks/results/likelihood.csv and prints the table: seconds per score and ratios,
medians.
"""

import argparse
import functools
import statistics
import time

import pandas as pd
import torch
from measuring import in_turns, keep
from transformers import AutoModelForCausalLM

from lib.evaluation.scoring import TextToScore, log_likelihoods
from lib.generation.prefill import logits_at
from lib.models.loading import Loaded, load
from lib.prompts.batches import pad
from lib.prompts.building import build_prompt
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import Problem, load_problems

CONDITIONS = ("none", "mless", "hidden-from-layer-1", "dilution")


def scored(loaded: Loaded, problem: Problem, name: str) -> TextToScore:
    """Return a problem with what follows its prompt."""
    text = loaded.tokenizer(
        problem.solution or problem.problem, add_special_tokens=False
    )["input_ids"]
    condition = parse_condition(name)
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition)
    return TextToScore(problem, condition, None, "solution", prompt, [], text)


@torch.inference_mode()
def plain(model, batch: dict[str, TextToScore]) -> torch.Tensor:
    """Return log p of each scored token, (N,), of one forward of the padded rows."""
    ids, lengths = pad([torch.tensor(one.ids) for one in batch.values()])
    places = [
        (row, place)
        for row, (one, length) in enumerate(
            zip(batch.values(), lengths.tolist(), strict=True)
        )
        for place in range(length - len(one.text) - 1, length - 1)
    ]
    row, at = torch.tensor(places).T
    with logits_at(model, row, at):
        logits = model(input_ids=ids, use_cache=False).logits[0].float()
    return logits.log_softmax(-1).gather(1, ids[row, at + 1][:, None])


def main() -> None:
    """Measure every model under every condition and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["demo"])
    parser.add_argument(
        "--problems", default="embedded", help="embedded, math500 or a JSONL file"
    )
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    problems, rows = load_problems(options.problems, limit=options.limit), []
    for spec in options.models:
        loaded = load(spec, device="cpu", dtype="float32")
        twin = AutoModelForCausalLM.from_config(
            loaded.model.config, attn_implementation="sdpa", dtype=torch.float32
        )
        twin.load_state_dict(loaded.model.state_dict(), assign=True)
        twin.eval()
        for condition in CONDITIONS:
            batch = {
                problem.id: scored(loaded, problem, condition) for problem in problems
            }
            ways = {
                "scored": functools.partial(log_likelihoods, loaded, batch),
                "plain": functools.partial(plain, twin, batch),
            }
            times = in_turns(ways, options.repeats, time.process_time)
            seconds = {
                name: statistics.median(found) / len(batch)
                for name, found in times.items()
            }
            row = {"model": loaded.name, "condition": condition, "n": len(batch)}
            row["tokens"] = sum(len(one.ids) for one in batch.values()) / len(batch)
            rows.append(
                row
                | seconds
                | {"scored_of_plain": seconds["scored"] / seconds["plain"]}
            )
    table = keep(
        "likelihood",
        pd.DataFrame(rows),
        problems=options.problems,
        threads=torch.get_num_threads(),
    )
    print(table.iloc[:, :7].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
