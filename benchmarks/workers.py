"""Completions per second of one process against workers, on the demo model.

    python benchmarks/workers.py [--prompts 64] [--new-tokens 32] [--cores 2]

The process has all cores, each worker one. Every way has the same number of rows in
all, which its processes share. Each runs twice in processes of its own, on so many
prompts and on three times as many; the rate is that of the difference, so that starting
Ray and loading the model, which `start_seconds` gives, do not count. Writes
benchmarks/results/workers.csv and prints the table; `load` is the machine's load
average when a way began.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import pandas as pd
from measuring import keep

from lib.generation.engines import make_engine, workers_class
from lib.generation.requests import Request, Sampling
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

ROWS = 64  # of all processes together


def run(workers: int, prompts: int, new_tokens: int) -> float:
    """Return the seconds from nothing to the last completion of so many workers.

    Without any this process completes.
    """
    start = time.perf_counter()
    loaded = load("demo", device="cpu", read=not workers)
    requests = []
    for problem in load_problems("embedded", limit=prompts, seed=0):
        prompt = build_prompt(loaded.tokenizer, problem.problem, "mless", format="chat")
        requests.append(Request(problem.id, prompt.input_ids.tolist()))

    sampling = Sampling(new_tokens)
    if workers:
        batch = ROWS // workers
        with workers_class()(workers, 0, loaded, "transformers", batch, {}) as crew:
            done = list(crew.complete(requests, sampling))
    else:
        engine = make_engine("transformers", loaded, ROWS, {})
        done = list(engine.complete(requests, sampling))
    assert len(done) == prompts
    return time.perf_counter() - start


def apart(workers: int, threads: int, prompts: int, new_tokens: int) -> float:
    """Return the seconds of `run` in a process of its own with so many threads."""
    command = [
        sys.executable,
        __file__,
        f"--new-tokens={new_tokens}",
        "--one",
        str(workers),
        str(prompts),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{workers} workers failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(workers: int, threads: int, options: argparse.Namespace) -> dict:
    """Return the row of one way."""
    load_average = os.getloadavg()[0]
    few = options.prompts
    many = 3 * few
    short = apart(workers, threads, few, options.new_tokens)
    long = apart(workers, threads, many, options.new_tokens)
    rate = (many - few) / (long - short)
    return {
        "workers": workers,
        "threads": threads,
        "prompts": many,
        "per_second": rate,
        "start_seconds": short - few / rate,
        "load": load_average,
    }


def main() -> None:
    """Measure every way and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument(
        "--one",
        nargs=2,
        type=int,
        metavar=("WORKERS", "PROMPTS"),
        help=argparse.SUPPRESS,
    )
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(*options.one, options.new_tokens)))
        return
    ways = [(0, options.cores), (1, 1), (options.cores, 1)]
    table = pd.DataFrame([measure(*way, options) for way in ways])
    keep("workers", table, new_tokens=options.new_tokens)
    print(table.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
