"""Completions per second of this project's engines and of others.

    python benchmarks/generation.py [--problems embedded FILE ...] [--limit 100]
        [--new-tokens 64]

The others are lm-evaluation-harness, llama.cpp, and `generate` with one prompt at a
time; what is not installed is left out. All ways get the same prompts, decode greedily
on the demo model and stop at the same limit, each in a process of its own: in float32,
but llama.cpp with the packed weights. Loading is not timed. Writes
benchmarks/results/generation.csv and prints the table.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from measuring import keep

from lib.generation.engines import make_engine
from lib.generation.requests import Request, Sampling
from lib.models.conversion import converted
from lib.models.gguf_files import gguf_parts
from lib.models.loading import load
from lib.models.names import resolve
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.problems import load_problems

# The module that each way needs, and its batch sizes.
WAYS = {
    "transformers": ("transformers", [64]),
    "one at a time": ("transformers", [1]),
    "vllm": ("vllm", [64]),
    "llama.cpp": ("llama_cpp", [64]),
    "lm-eval hf": ("lm_eval", [8, 32]),
}
ENOUGH_PROMPTS = 16  # one at a time, for a rate
Way = Callable[[list[Prompt], int], list[str]]  # prompts, new tokens -> texts in order


def ours(loaded, engine: str, batch: int) -> Way:
    """Return one of the project's engines as a way."""
    writer = make_engine(engine, loaded, batch, {})

    def run(prompts: list[Prompt], new_tokens: int) -> list[str]:
        requests = [
            Request(str(number), prompt.input_ids.tolist())
            for number, prompt in enumerate(prompts)
        ]
        completions = writer.complete(requests, Sampling(new_tokens))
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

    def run(prompts: list[Prompt], new_tokens: int) -> list[str]:
        settings = {"until": [], "max_gen_toks": new_tokens, "do_sample": False}
        instances = [
            Instance("generate_until", {}, (prompt.text, dict(settings)), number)
            for number, prompt in enumerate(prompts)
        ]
        return model.generate_until(instances, disable_tqdm=True)

    return run


def packed(loaded, batch: int) -> Way:
    """Return llama.cpp with the demo's GGUF file as a way."""
    from llama_peer import LlamaPeer

    (file,) = gguf_parts(resolve("demo"))
    peer = LlamaPeer(file, loaded.tokenizer.eos_token_id)

    def run(prompts: list[Prompt], new_tokens: int) -> list[str]:
        written = []
        for begin in range(0, len(prompts), batch):
            ids = [p.input_ids.tolist() for p in prompts[begin : begin + batch]]
            written += peer.complete(ids, new_tokens)
        return loaded.tokenizer.batch_decode(written)

    return run


def one_at_a_time(loaded) -> Way:
    """Return `generate`, called with each prompt alone as in the authors' code."""

    def run(prompts: list[Prompt], new_tokens: int) -> list[str]:
        texts = []
        for prompt in prompts:
            ids = prompt.input_ids[None]
            output = loaded.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new_tokens,
                do_sample=False,
                pad_token_id=loaded.tokenizer.eos_token_id,
            )
            new = output[0, ids.shape[1] :]
            texts.append(loaded.tokenizer.decode(new, skip_special_tokens=True))
        return texts

    return run


def measure(way: str, batch: int, source: str, limit: int, new_tokens: int) -> dict:
    """Run one way in this process; return its completions per second and its texts.

    The prompts have 55 slashes.
    """
    loaded = load("demo", device="cpu", dtype="float32")
    problems = load_problems(source, limit=ENOUGH_PROMPTS if batch == 1 else limit)
    prompts = [
        build_prompt(loaded.tokenizer, problem.problem, "mless", format="chat")
        for problem in problems
    ]
    if way == "one at a time":
        run = one_at_a_time(loaded)
    elif way == "lm-eval hf":
        run = harness(batch)
    elif way == "llama.cpp":
        run = packed(loaded, batch)
    else:
        run = ours(loaded, way, batch)

    # The first use makes buffers and processes, for the greatest lengths.
    run(sorted(prompts, key=len)[-2:], new_tokens)
    start = time.perf_counter()
    texts = run(prompts, new_tokens)
    seconds = time.perf_counter() - start
    pairs = zip(prompts, texts, strict=True)
    return {
        "problems": Path(source).stem,
        "way": way,
        "batch": batch,
        "prompts": len(prompts),
        "per_second": len(prompts) / seconds,
        "texts": {prompt.text: text.strip() for prompt, text in pairs},
    }


def compare(source: str, options: argparse.Namespace) -> list[dict]:
    """Return a row per way on one problem set: its rate, how many times slower than
    ours that is, and how many texts equal ours.
    """
    rows = []
    for way, (module, batches) in WAYS.items():
        if not importlib.util.find_spec(module):
            print(f"{way} is not installed and left out")
            continue
        for batch in batches:
            settings = [way, batch, source, options.limit, options.new_tokens]
            command = [sys.executable, __file__, "--one", json.dumps(settings)]
            offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
            done = subprocess.run(command, capture_output=True, text=True, env=offline)
            if done.returncode:
                sys.exit(f"{way} failed:\n{done.stderr[-3000:]}")
            rows.append(json.loads(done.stdout.splitlines()[-1]))

    first = rows[0]
    ours = first["texts"]
    for row in rows:
        texts = row.pop("texts")
        row["ours_is_faster_by"] = first["per_second"] / row["per_second"]
        row["same_texts"] = sum(ours.get(name) == texts[name] for name in texts)
    return rows


def main() -> None:
    """Measure every way that is installed on every problem set, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    about = "embedded, math500 or JSONL files"
    parser.add_argument("--problems", nargs="+", default=["embedded"], help=about)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*json.loads(options.one))))
        return
    rows = [row for source in options.problems for row in compare(source, options)]
    table = keep("generation", pd.DataFrame(rows), new_tokens=options.new_tokens)
    print(table[list(rows[0])].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
