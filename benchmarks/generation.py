"""Completions per second of this project's engine, and of one prompt at a time.

    python benchmarks/generation.py [--problems embedded FILE ...]

Both ways get prompts with 55 slashes, one at a time only the first 16, decode greedily
on the demo model in float32 and stop at the same limit. Loading is not timed;
benchmarks/gpu.py compares with vLLM. Writes benchmarks/results/generation.csv and
prints the table.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from measuring import keep

from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.models.loading import Loaded, load
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.problems import load_problems

BATCH = 64
PROBLEMS = 100  # of each set
NEW_TOKENS = 64
ENOUGH_PROMPTS = 16  # to measure the rate of one prompt at a time
Way = Callable[[list[Prompt]], list[str]]  # prompts -> texts in order


def ours(loaded: Loaded) -> Way:
    """Return the project's engine as a way."""
    writer = engine_class("transformers")(loaded, BATCH)

    def run(prompts: list[Prompt]) -> list[str]:
        requests = [
            Request(str(number), prompt.input_ids.tolist())
            for number, prompt in enumerate(prompts)
        ]
        completions = writer.complete(requests, Sampling(NEW_TOKENS))
        texts = {completion.key: completion.text for completion in completions}
        return [texts[request.key] for request in requests]

    return run


def one_at_a_time(loaded: Loaded) -> Way:
    """Return `generate`, called with one prompt at a time as in the authors' code."""

    def run(prompts: list[Prompt]) -> list[str]:
        texts = []
        for prompt in prompts:
            ids = prompt.input_ids[None]
            output = loaded.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
                pad_token_id=loaded.tokenizer.eos_token_id,
            )
            new = output[0, ids.shape[1] :]
            texts.append(loaded.tokenizer.decode(new, skip_special_tokens=True))
        return texts

    return run


def compare(loaded: Loaded, source: str) -> list[dict]:
    """Return a row per way on one problem set: its rate, and for how many prompts it
    writes the same text as our engine.
    """
    prompts = [
        build_prompt(loaded.tokenizer, problem.problem, "mless", format="chat")
        for problem in load_problems(source, limit=PROBLEMS)
    ]
    ways = [("transformers", BATCH, ours(loaded))]
    ways.append(("one at a time", 1, one_at_a_time(loaded)))
    rows: list[dict] = []
    for way, batch, run in ways:
        timed = prompts[:ENOUGH_PROMPTS] if batch == 1 else prompts
        # Warm up with the longest prompts, because the first use allocates buffers and
        # starts processes.
        run(sorted(timed, key=len)[-2:])
        start = time.perf_counter()
        texts = [text.strip() for text in run(timed)]
        per_second = len(timed) / (time.perf_counter() - start)
        if not rows:
            our_texts = texts
        same = [text == our for text, our in zip(texts, our_texts, strict=False)]
        row = {"problems": Path(source).stem, "way": way, "batch": batch}
        row |= {"prompts": len(timed), "per_second": per_second}
        rows.append(row | {"same_texts": sum(same)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure every way on every problem set, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    about = "embedded, math500 or JSONL files"
    parser.add_argument("--problems", nargs="+", default=["embedded"], help=about)
    options = parser.parse_args()
    loaded = load("demo", device="cpu", dtype="float32")
    rows = []
    for source in options.problems:
        rows += compare(loaded, source)
    keep("generation", pd.DataFrame(rows), new_tokens=NEW_TOKENS)


if __name__ == "__main__":
    main()
