"""What a score costs against a plain forward of the same tokens.

    python benchmarks/likelihood.py [--models demo ...] [--problems embedded]
        [--limit 16] [--repeats 5]

`plain` is transformers' own SDPA with logits at the scored places alone, row by row of
the same batch, padded on the right; nothing is computed once for all rows. A problem
without a solution is its own text to score. The ways take turns; times are of the
processor. Writes benchmarks/results/likelihood.csv and prints the table: seconds per
score and ratios, medians.
"""

import argparse
import functools
import statistics
import time

import pandas as pd
import torch
from measuring import in_turns, keep
from transformers import AutoModelForCausalLM, PreTrainedModel

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
    condition = parse_condition(name)
    text = problem.solution or problem.problem
    ids = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition)
    return TextToScore(problem, condition, None, "solution", prompt, [], ids)


@torch.inference_mode()
def plain(model, batch: dict[str, TextToScore]) -> torch.Tensor:
    """Return log p of each scored token, (N,), of one forward of the padded rows."""
    ids, lengths = pad([torch.tensor(text.ids) for text in batch.values()])
    places = []
    for row, text in enumerate(batch.values()):
        end = int(lengths[row]) - 1
        places += [(row, place) for place in range(end - len(text.text), end)]
    row, place = torch.tensor(places).T
    with logits_at(model, row, place):
        logits = model(input_ids=ids, use_cache=False).logits[0].float()
    return logits.log_softmax(-1).gather(1, ids[row, place + 1][:, None])


def sdpa_twin(loaded: Loaded) -> PreTrainedModel:
    """Return the model with transformers' own attention and the same weights."""
    twin = AutoModelForCausalLM.from_config(
        loaded.model.config, attn_implementation="sdpa", dtype=torch.float32
    )
    twin.load_state_dict(loaded.model.state_dict(), assign=True)
    return twin.eval()


def measure(
    loaded: Loaded, problems: list[Problem], name: str, repeats: int
) -> dict[str, object]:
    """Return seconds per score of both ways under a condition."""
    batch = {problem.id: scored(loaded, problem, name) for problem in problems}
    ways = {
        "scored": functools.partial(log_likelihoods, loaded, batch),
        "plain": functools.partial(plain, sdpa_twin(loaded), batch),
    }
    times = in_turns(ways, repeats, time.process_time)
    seconds = {way: statistics.median(times[way]) / len(batch) for way in ways}
    return {
        "model": loaded.name,
        "condition": name,
        "n": len(batch),
        "tokens": statistics.mean(len(text.ids) for text in batch.values()),
        **seconds,
        "scored_of_plain": seconds["scored"] / seconds["plain"],
    }


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

    problems = load_problems(options.problems, limit=options.limit)
    rows = []
    for spec in options.models:
        loaded = load(spec, device="cpu", dtype="float32")
        for name in CONDITIONS:
            rows.append(measure(loaded, problems, name, options.repeats))
    settings = {"problems": options.problems, "threads": torch.get_num_threads()}
    table = keep("likelihood", pd.DataFrame(rows), **settings)
    print(table.iloc[:, :7].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
