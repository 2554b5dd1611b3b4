"""Processor time of this checkout and of another one, such as an older commit.

    git worktree add ../before COMMIT
    python benchmarks/side_by_side.py ../before [--turns 5]

Both take turns in processes of one thread, on the demo model's first layers. Writes
benchmarks/results/side_by_side.csv and prints it: median seconds of the processor
before and now, and their ratio.
"""

import argparse
import functools
import gzip
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import pandas as pd
import torch
from measuring import ROOT, in_turns, keep

import lib
from lib.attention.received import received_attention
from lib.evaluation.score_run import score_rows
from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.generation.key_value_caches import SlotCache
from lib.generation.transformers_engine import _Batch, choose
from lib.grading.equality import compare
from lib.grading.extraction import UNDECIDED, settle
from lib.models.loading import Loaded, load
from lib.prompts.problems import load_problems

LAYERS = 4
EXTRACTED = (512, 2048)  # tokens
BATCHES = ((8, 100), (32, 400))  # rows, and tokens of each
STEPS = 8
SAMPLED = (64, 151_936)  # rows, and tokens to choose from
SCORED = 16  # problems
CONDITIONS = ("none", "mless", "hidden-from-layer-1")
GRADED = 100  # answers
ANSWERS = ROOT / "data" / "families" / "answers" / "main.jsonl.gz"

Ways = Iterator[tuple[str, Callable[[], object]]]


def first_layers() -> Loaded:
    """Return the demo model with its head and few layers."""
    loaded = load("demo", device="cpu", dtype="float32")
    decoder = loaded.model.model
    decoder.layers = decoder.layers[:LAYERS]
    loaded.model.config.num_hidden_layers = LAYERS
    return loaded


def extraction(loaded: Loaded) -> Ways:
    """Yield received attention of all layers."""
    for tokens in EXTRACTED:
        ids = torch.randint(100, 40_000, (1, tokens))
        way = f"extraction of {tokens:,} tokens"
        yield way, lambda ids=ids: received_attention(loaded.model, ids)


def likelihood(loaded: Loaded) -> Ways:
    """Yield the scores of some texts."""
    from likelihood import scored

    problems = load_problems("embedded", limit=SCORED)
    pairs = list(itertools.product(problems, CONDITIONS))
    texts = {f"{n:016x}": scored(loaded, *pair) for n, pair in enumerate(pairs)}
    yield f"likelihood of {len(texts)} texts", lambda: list(score_rows(loaded, texts))


def answers(loaded: Loaded) -> Ways:
    """Yield prefills, and steps of the rows that they leave."""
    engine = engine_class("transformers")(loaded, None)
    sampling = Sampling(10 * STEPS)
    for rows, tokens in BATCHES:
        shape = f"{rows} rows of {tokens} tokens"
        prompts = torch.randint(100, 40_000, (rows, tokens)).tolist()
        requests = [Request(str(n), ids) for n, ids in enumerate(prompts)]
        cache = SlotCache(rows, tokens + 2 * STEPS)
        batch = _Batch(engine, sampling, cache, None)

        def prefilled(batch=batch, requests=requests) -> None:
            batch.rows.clear()
            batch._admit(requests)

        def steps(batch=batch, rows=rows, tokens=tokens) -> None:
            batch.cache.lengths = [tokens] * rows
            for _ in range(STEPS):
                for row in batch.rows:
                    row.feed = [7]
                batch._step()

        yield f"prefill of {shape}", prefilled
        yield f"{STEPS} steps of {shape}", steps


def sampling() -> Ways:
    """Yield draws of tokens, and the choice of the most probable ones."""
    logits = 4 * torch.randn(SAMPLED)
    draws = [torch.Generator().manual_seed(row) for row in range(len(logits))]
    for way, temperature in (("drawn", 0.6), ("greedy", 0.0)):
        how = Sampling(1, temperature)
        name = f"{SAMPLED[0]} tokens of {SAMPLED[1]:,}, {way}"
        yield name, lambda how=how: choose(logits, how, draws)


def grading() -> Ways:
    """Yield a function that grades answers like a worker, with other answers in each
    call, because some results are cached.
    """
    with gzip.open(ANSWERS, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    left = iter([row for row in rows if row["extracted"]])

    def graded() -> None:
        for row in itertools.islice(left, GRADED):
            settled = settle(row["answer"], row["response"])
            if settled.method == UNDECIDED:
                compare(row["answer"], settled.extracted)

    yield f"grading of {GRADED} answers", graded


@torch.inference_mode()
def serve() -> None:
    """Run the way that each line of stdin names, and print its processor seconds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loaded = first_layers()
    ways = dict(
        itertools.chain(
            extraction(loaded),
            likelihood(loaded),
            answers(loaded),
            sampling(),
            grading(),
        )
    )
    print(json.dumps([lib.__path__[0], *ways]), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        ways[line.strip()]()
        print(time.process_time() - start, flush=True)


class Server:
    """A process that runs ways with the lib of a checkout; `seconds` is the processor
    time of all ways so far.
    """

    def __init__(self, checkout: Path):
        settings = {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import side_by_side; side_by_side.serve()"],
            cwd=Path(__file__).parent,
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.seconds = 0.0
        path, *self.ways = self._answer()
        if Path(path) != checkout / "lib":
            sys.exit(f"{checkout} has no lib: give the folder of a checkout")

    def take(self, way: str) -> None:
        """Run a way, and add its processor time to `seconds`."""
        print(way, file=self.process.stdin, flush=True)
        self.seconds += self._answer()

    def _answer(self) -> Any:
        line = cast(TextIO, self.process.stdout).readline()
        if not line:
            sys.exit("a process ended: its message is above")
        return json.loads(line)


def commit_of(checkout: Path) -> str:
    """Return the short name of a checkout's commit."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    return subprocess.check_output(command, cwd=checkout, text=True).strip()


def main() -> None:
    """Time both checkouts in turns, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    before = options.before.resolve()
    servers = {"before": Server(before), "now": Server(ROOT)}

    def clock() -> float:
        return sum(server.seconds for server in servers.values())

    rows = []
    for way in servers["now"].ways:
        calls = {
            name: functools.partial(server.take, way)
            for name, server in servers.items()
        }
        times = in_turns(calls, options.turns, clock)
        row = {name: statistics.median(seconds) for name, seconds in times.items()}
        rows.append({"way": way, **row, "ratio": row["now"] / row["before"]})
        print(rows[-1], flush=True)
    commit = commit_of(before)
    settings = {"turns": options.turns, "layers": LAYERS, "commit": commit}
    table = keep("side_by_side", pd.DataFrame(rows), **settings)
    print(table[list(rows[0])].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
