"""Completions per second of this project's engines and of others.

    python benchmarks/generation.py [--problems embedded FILE ...] [--limit 100]
        [--new-tokens 64] [--repeats 2]

The others are lm-evaluation-harness, llama.cpp, and `generate` with one prompt at a
time. All ways get the same prompts, decode greedily on the demo model and stop at the
same limit, each in a process of its own: in float32, but llama.cpp with the packed
weights. Loading is not timed; a call that takes over 60 s
is not repeated. Writes benchmarks/results/generation.csv and prints the table.
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

from lib.generation.engines import make_engine
from lib.generation.requests import Request, Sampling
from lib.models.conversion import converted
from lib.models.gguf_files import gguf_parts
from lib.models.loading import Loaded, load
from lib.models.names import resolve
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.problems import load_problems

HARNESS_BATCHES = (8, 32)  # the best of them counts
ENOUGH_SECONDS = 60  # of calls
ENOUGH_PROMPTS = 16  # one at a time, for a rate
Way = Callable[[list[Prompt], int], list[str]]  # prompts, new tokens -> texts in order


def ours(loaded: Loaded, engine: str, batch: int) -> Way:
    """Return one of the project's engines as a way."""
    writer = make_engine(engine, loaded, batch, {})

    def run(prompts: list[Prompt], new_tokens: int) -> list[str]:
        requests = [
            Request(str(i), prompt.input_ids.tolist())
            for i, prompt in enumerate(prompts)
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
            Instance("generate_until", {}, (prompt.text, dict(settings)), i)
            for i, prompt in enumerate(prompts)
        ]
        return model.generate_until(instances, disable_tqdm=True)

    return run


def packed(loaded: Loaded, batch: int) -> Way:
    """Return llama.cpp with the demo's GGUF file as a way."""
    from llama_peer import LlamaPeer

    (file,) = gguf_parts(resolve("demo"))
    peer = LlamaPeer(file, batch)

    def run(prompts: list[Prompt], new_tokens: int) -> list[str]:
        ids = [prompt.input_ids.tolist() for prompt in prompts]
        answers = peer.complete(ids, new_tokens)
        return loaded.tokenizer.batch_decode(answers, skip_special_tokens=True)

    return run


def one_at_a_time(loaded: Loaded) -> Way:
    """Return `generate`, called with each prompt alone as in the authors' code, as a
    way.
    """

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


def measure(way: str, batch: int, source: str, options: argparse.Namespace) -> dict:
    """Run one way in this process; return its median completions per second and texts.

    The prompts have 55 slashes.
    """
    loaded = load("demo", device="cpu", dtype="float32")
    alone = way == "one at a time"
    problems = load_problems(source, limit=ENOUGH_PROMPTS if alone else options.limit)
    prompts = [
        build_prompt(loaded.tokenizer, problem.problem, "mless", format="chat")
        for problem in problems
    ]
    if alone:
        run = one_at_a_time(loaded)
    elif way == "lm-eval hf":
        run = harness(batch)
    elif way == "llama.cpp":
        run = packed(loaded, batch)
    else:
        run = ours(loaded, way, batch)

    # The first use makes buffers and processes, for the greatest lengths.
    run(sorted(prompts, key=len)[-2:], options.new_tokens)
    texts: list[str] = []
    times: list[float] = []
    while len(times) < options.repeats and sum(times) < ENOUGH_SECONDS:
        start = time.perf_counter()
        texts = run(prompts, options.new_tokens)
        times.append(time.perf_counter() - start)
    pairs = zip(prompts, texts, strict=True)
    return {
        "way": way,
        "batch": batch,
        "prompts": len(prompts),
        "calls": len(times),
        "per_second": len(prompts) / statistics.median(times),
        "texts": {prompt.text: text.strip() for prompt, text in pairs},
    }


def ways() -> list[tuple[str, int]]:
    """Return what can be measured here, with batch sizes; what is absent is said."""
    with_batches = [("transformers", 64), ("one at a time", 1)]
    if importlib.util.find_spec("vllm"):
        with_batches.append(("vllm", 64))
    else:
        print("vllm is not installed, skipped: see requirements/vllm.txt")
    if importlib.util.find_spec("llama_cpp"):
        with_batches.append(("llama.cpp", 64))
    else:
        install = "pip install llama-cpp-python==0.3.36, a build of ten minutes"
        print(f"llama.cpp is not installed, skipped: {install}")
    if importlib.util.find_spec("lm_eval"):
        with_batches += [("lm-eval hf", batch) for batch in HARNESS_BATCHES]
    else:
        install = "pip install -r requirements/bench.txt"
        print(f"lm-evaluation-harness is not installed, skipped: {install}")
    return with_batches


def compare(source: str, options: argparse.Namespace) -> list[dict]:
    """Return a row per way on one problem set.

    It has the rate, how many times slower than ours that is, and how many texts equal
    ours.
    """
    rows = []
    for way, batch in ways():
        row = {"problems": Path(source).stem} | apart(way, batch, source, options)
        rows.append(row)
        rate = f"{row['per_second']:.2f} completions/s"
        print(f"{row['problems']}, {way}, batch {batch}: {rate}", flush=True)

    first = rows[0]
    of_first = first["texts"]
    for row in rows:
        texts = row.pop("texts")
        row["ours_is_faster_by"] = first["per_second"] / row["per_second"]
        row["same_texts"] = sum(of_first.get(name) == texts[name] for name in texts)
    return rows


def apart(way: str, batch: int, source: str, options: argparse.Namespace) -> dict:
    """Return what `measure` does in a process of its own."""
    command = [
        sys.executable,
        __file__,
        f"--limit={options.limit}",
        f"--new-tokens={options.new_tokens}",
        f"--repeats={options.repeats}",
        "--one",
        way,
        str(batch),
        source,
    ]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=offline)
    if done.returncode:
        sys.exit(f"{way} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


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
        print(json.dumps(measure(way, int(batch), source, options)))
        return
    rows = [row for source in options.problems for row in compare(source, options)]
    table = keep("generation", pd.DataFrame(rows), new_tokens=options.new_tokens)
    print(table[list(rows[0])].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
