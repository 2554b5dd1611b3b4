"""Completions per second of this project's engines against lm-evaluation-harness and
one prompt at a time.

    python benchmarks/generation.py [--problems embedded FILE ...] [--limit 100] [--new-tokens 64] [--repeats 2]

All ways get the same prompts, decode greedily in float32 on the demo model and stop at
the same limit, each in a process of its own. Loading is not timed; a call that takes
over 60 s is not repeated. Writes benchmarks/results/generation.csv and prints the
table.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from measuring import keep

from lib.generation import Request, Sampling, make_engine
from lib.models.conversion import converted
from lib.models.loading import Loaded, load
from lib.models.names import resolve
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.problems import load_problems

HARNESS_BATCHES = (8, 32)  # the best of them counts
ENOUGH = 60  # seconds of calls
ONE_AT_A_TIME = 16  # prompts are enough for a rate
Way = Callable[[list[Prompt], int], list[str]]  # prompts, new tokens -> texts in order


def ours(loaded: Loaded, engine: str, batch: int) -> Way:
    """Return one of the project's engines as a way."""
    made = make_engine(engine, loaded, batch, {})

    def run(asked: list[Prompt], new_tokens: int) -> list[str]:
        requests = [
            Request(str(i), prompt.input_ids.tolist()) for i, prompt in enumerate(asked)
        ]
        texts = {c.key: c.text for c in made.complete(requests, Sampling(new_tokens))}
        return [texts[request.key] for request in requests]

    return run


def harness(batch: int) -> Way:
    """Return lm-evaluation-harness' `hf` model as a way."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    options = {"device": "cpu", "dtype": "float32", "add_bos_token": False}
    made = HFLM(
        pretrained=str(converted(resolve("demo"), "float32")),
        batch_size=batch,
        **options,
    )

    def run(asked: list[Prompt], new_tokens: int) -> list[str]:
        settings = {"until": [], "max_gen_toks": new_tokens, "do_sample": False}
        given = [
            Instance("generate_until", {}, (prompt.text, dict(settings)), i)
            for i, prompt in enumerate(asked)
        ]
        return made.generate_until(given, disable_tqdm=True)

    return run


def one_at_a_time(loaded: Loaded) -> Way:
    """Return `generate`, called with one prompt after the other as in the authors'
    code, as a way.
    """

    def run(asked: list[Prompt], new_tokens: int) -> list[str]:
        texts = []
        for prompt in asked:
            ids = prompt.input_ids[None]
            options = {
                "attention_mask": torch.ones_like(ids),
                "max_new_tokens": new_tokens,
                "do_sample": False,
            }
            made = loaded.model.generate(
                ids, pad_token_id=loaded.tokenizer.eos_token_id, **options
            )[0, ids.shape[1] :]
            texts.append(loaded.tokenizer.decode(made, skip_special_tokens=True))
        return texts

    return run


def measure(
    way: str, batch: int, source: str, limit: int, new_tokens: int, repeats: int
) -> dict:
    """Run one way in this process on prompts with 55 slashes; return its median
    completions per second and texts.
    """
    loaded = load("demo", device="cpu", dtype="float32")
    problems = load_problems(
        source, limit=ONE_AT_A_TIME if way == "one at a time" else limit
    )
    asked = [
        build_prompt(loaded.tokenizer, p.problem, "mless", format="chat")
        for p in problems
    ]
    if way == "one at a time":
        run = one_at_a_time(loaded)
    else:
        run = harness(batch) if way == "lm-eval hf" else ours(loaded, way, batch)
    run(
        sorted(asked, key=len)[-2:], new_tokens
    )  # first use: buffers, processes, lengths
    times = []
    while len(times) < repeats and sum(times) < ENOUGH:
        start = time.perf_counter()
        texts = run(asked, new_tokens)
        times.append(time.perf_counter() - start)
    rate = len(asked) / statistics.median(times)
    answers = {
        prompt.text: text.strip() for prompt, text in zip(asked, texts, strict=True)
    }
    counts = {"batch": batch, "prompts": len(asked), "calls": len(times)}
    return {"way": way, **counts, "per_second": rate, "texts": answers}


def ways() -> list[tuple[str, int]]:
    """Return what can be measured here, with batch sizes; what is absent is said."""
    found = [("transformers", 64), ("one at a time", 1)]
    if importlib.util.find_spec("vllm"):
        found.append(("vllm", 64))
    else:
        print("vllm is not installed, skipped: see requirements/vllm.txt")
    if importlib.util.find_spec("lm_eval"):
        return found + [("lm-eval hf", batch) for batch in HARNESS_BATCHES]
    print(
        "lm-evaluation-harness is not installed, skipped: pip install -r"
        " requirements/bench.txt"
    )
    return found


def compare(source: str, options: argparse.Namespace) -> list[dict]:
    """Return a row per way on one problem set: rate, how many times slower than ours,
    how many texts equal ours.
    """
    rows = []
    for way, batch in ways():
        settings = [
            f"--limit={options.limit}",
            f"--new-tokens={options.new_tokens}",
            f"--repeats={options.repeats}",
        ]
        command = [
            sys.executable,
            __file__,
            *settings,
            "--one",
            way,
            str(batch),
            source,
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
        if done.returncode:
            sys.exit(f"{way} failed:\n{done.stderr[-3000:]}")
        rows.append(
            {"problems": Path(source).stem} | json.loads(done.stdout.splitlines()[-1])
        )
        print(
            f"{rows[-1]['problems']}, {way}, batch {batch}:"
            f" {rows[-1]['per_second']:.2f} completions/s",
            flush=True,
        )
    first = rows[0]
    for row in rows:
        row["ours_is_faster_by"] = first["per_second"] / row["per_second"]
        row["same_texts"] = sum(
            first["texts"].get(prompt) == text for prompt, text in row["texts"].items()
        )
    return [
        {name: value for name, value in row.items() if name != "texts"} for row in rows
    ]


def main() -> None:
    """Measure every way that is installed on every problem set, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--problems",
        nargs="+",
        default=["embedded"],
        help="embedded, math500 or JSONL files",
    )
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--one", nargs=3, metavar=("WAY", "BATCH", "SOURCE"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.one:
        way, batch, source = options.one
        print(
            json.dumps(
                measure(
                    way,
                    int(batch),
                    source,
                    options.limit,
                    options.new_tokens,
                    options.repeats,
                )
            )
        )
        return
    rows = [row for source in options.problems for row in compare(source, options)]
    table = keep("generation", pd.DataFrame(rows), new_tokens=options.new_tokens)
    print(table[list(rows[0])].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
