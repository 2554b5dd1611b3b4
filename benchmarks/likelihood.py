"""The cost of a score, compared with a plain forward pass over the same tokens.

    python benchmarks/likelihood.py

The plain forward pass uses the SDPA attention of transformers on the same batch, padded
on the right, with logits only at the scored positions; no common prefix is shared
between rows. Both take turns; times are processor times. Writes
benchmarks/results/likelihood.csv and prints it: median seconds per score, and their
ratio.
"""

import functools
import statistics
import time

import pandas as pd
import torch
from measuring import in_turns, keep
from transformers import AutoModelForCausalLM

from lib.generation.key_value_caches import logits_at
from lib.generation.log_likelihoods import log_likelihoods
from lib.models.loading import Loaded, load
from lib.prompts.batches import pad
from lib.prompts.building import build_prompt
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import Problem, load_problems
from reproduction.evaluation.score_run import TextToScore

PROBLEMS = 16
REPEATS = 5
CONDITIONS = ("none", "mless", "hidden-from-layer-1", "dilution")


def scored(loaded: Loaded, problem: Problem, name: str) -> TextToScore:
    """Return a text to score: the problem's text, repeated after its prompt."""
    condition = parse_condition(name)
    ids = loaded.tokenizer(problem.problem, add_special_tokens=False)["input_ids"]
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition)
    return TextToScore(
        problem=problem,
        condition=condition,
        prompt=prompt,
        target="solution",
        text=ids,
    )


@torch.inference_mode()
def plain(model, batch: list[TextToScore]) -> torch.Tensor:
    """Return log p of each scored token (N, 1), from one forward pass over padded
    rows.
    """
    ids, lengths = pad([torch.tensor(text.ids) for text in batch])
    scored_at = []
    for row, text in enumerate(batch):
        end = int(lengths[row]) - 1
        scored_at += [(row, position) for position in range(end - len(text.text), end)]
    row, position = torch.tensor(scored_at).T
    with logits_at(model, row, position):
        logits = model(input_ids=ids, use_cache=False).logits[0].float()
    return logits.log_softmax(-1).gather(1, ids[row, position + 1][:, None])


def main() -> None:
    """Measure under every condition and write the table."""
    problems = load_problems("embedded", limit=PROBLEMS)
    loaded = load("demo", device="cpu", dtype="float32")
    twin = AutoModelForCausalLM.from_config(
        loaded.model.config, attn_implementation="sdpa", dtype=torch.float32
    )
    twin.load_state_dict(loaded.model.state_dict(), assign=True)
    rows = []
    for name in CONDITIONS:
        batch = [scored(loaded, problem, name) for problem in problems]
        condition = batch[0].condition
        ways = {
            "scored": functools.partial(log_likelihoods, loaded, batch, condition),
            "plain": functools.partial(plain, twin.eval(), batch),
        }
        times = in_turns(ways, REPEATS, time.process_time)
        row = {way: statistics.median(times[way]) / len(batch) for way in ways}
        row["scored_of_plain"] = row["scored"] / row["plain"]
        rows.append({"condition": name} | row)
    threads = torch.get_num_threads()
    keep("likelihood", pd.DataFrame(rows), model=loaded.name, threads=threads)


if __name__ == "__main__":
    main()
