"""Completions per second of this project's engines and of others.

    python benchmarks/generation.py [--problems embedded FILE ...]

The others are lm-evaluation-harness, and `generate` with one prompt at a time; packages
that are not installed are left out. All ways get the same prompts with 55 slashes,
decode greedily on the demo model in float32 and stop at the same limit. Loading is not
timed. Writes benchmarks/results/generation.csv and prints the table.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import torch
from measuring import keep

from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.models.conversion import converted
from lib.models.loading import Loaded, load
from lib.models.sources import resolve
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.problems import load_problems

BATCH = 64
HARNESS_BATCHES = (8, 32)
PROBLEMS = 100  # of each set
NEW_TOKENS = 64
ENOUGH_PROMPTS = 16  # to measure the rate of one prompt at a time
Way = Callable[[list[Prompt]], list[str]]  # prompts -> texts in order


def ways(loaded: Loaded) -> Iterator[tuple[str, int, Way]]:
    """Yield the name, batch size and function of each way, each made when it is
    needed.
    """
    yield "transformers", BATCH, ours(loaded, "transformers")
    yield "one at a time", 1, one_at_a_time(loaded)
    if importlib.util.find_spec("vllm"):
        yield "vllm", BATCH, ours(loaded, "vllm")
    if importlib.util.find_spec("lm_eval"):
        for batch in HARNESS_BATCHES:
            yield "lm-eval hf", batch, harness(batch)


def ours(loaded: Loaded, engine: str) -> Way:
    """Return one of the project's engines as a way."""
    writer = engine_class(engine)(loaded, BATCH)

    def run(prompts: list[Prompt]) -> list[str]:
        requests = [
            Request(str(number), prompt.input_ids.tolist())
            for number, prompt in enumerate(prompts)
        ]
        completions = writer.complete(requests, Sampling(NEW_TOKENS))
        texts = {completion.key: completion.text for completion in completions}
        return [texts[request.key] for request in requests]

    return run


def harness(batch: int) -> Way:
    """Return lm-evaluation-harness' `hf` model as a way."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(
        pretrained=str(converted(resolve("demo"), "float32")),
        batch_size=batch,
        device="cpu",
        dtype="float32",
        add_bos_token=False,
    )

    def run(prompts: list[Prompt]) -> list[str]:
        settings = {"until": [], "max_gen_toks": NEW_TOKENS, "do_sample": False}
        instances = [
            Instance("generate_until", {}, (prompt.text, dict(settings)), number)
            for number, prompt in enumerate(prompts)
        ]
        return model.generate_until(instances, disable_tqdm=True)

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
    rows: list[dict] = []
    for way, batch, run in ways(loaded):
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
        row = {
            "problems": Path(source).stem,
            "way": way,
            "batch": batch,
            "prompts": len(timed),
            "per_second": per_second,
            "same_texts": sum(same),
        }
        print(row, flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Measure every way that is installed on every problem set, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    about = "embedded, math500 or JSONL files"
    parser.add_argument("--problems", nargs="+", default=["embedded"], help=about)
    options = parser.parse_args()
    loaded = load("demo", device="cpu", dtype="float32")
    rows = []
    for source in options.problems:
        rows += compare(loaded, source)
    table = keep("generation", pd.DataFrame(rows), new_tokens=NEW_TOKENS)
    print(table[list(rows[0])].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
