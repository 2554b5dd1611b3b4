"""Time of received attention against the usual ways.

    python benchmarks/extraction.py [--tokens 1024 2048]

It is measured on the demo model and this machine. Each way and length runs in a process
of its own, which may run out of memory, and is held against ours first. Writes
benchmarks/results/extraction.csv: median seconds, and the shares of the time of eager
attention and, of the same layers, of TransformerLens. Every way but SDPA, a plain
forward, ends with the received attention of its layers. TransformerLens is measured
when it is installed.
"""

import argparse
import importlib.util
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time

import pandas as pd
import torch
from measuring import keep

from lib.attention.received import received_attention
from lib.models.conversion import converted
from lib.models.loading import load
from lib.models.names import resolve

WAYS = ["layer1", "all", "sdpa", "eager", "lens_layer1", "lens_all"]
# Which of them go through the same layers as TransformerLens.
LENS = {"layer1": "lens_layer1", "all": "lens_all"}
AGREE_TOKENS = (128, 512)  # ours takes the queries in one block, and in several
AGREE_WITHIN = 1e-4
REPEATS = 5
SLOW = 40  # seconds: a way that takes longer is called once, which then counts


def random_ids(tokens: int) -> torch.Tensor:
    """Return the one prompt of a length, (1, T)."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(100, 40_000, (1, tokens), generator=generator)


def build(way: str):
    """Return what runs one way on (1, T) token ids."""
    if way.startswith("lens"):
        return build_lens(way)
    model = load("demo", device="cpu", dtype="float32").model
    decoder = model.get_decoder()
    if way == "eager":
        decoder.set_attn_implementation("eager")
    calls = {
        "layer1": lambda ids: received_attention(model, ids, [1])[0],
        "all": lambda ids: received_attention(model, ids)[0],
        "sdpa": lambda ids: decoder(ids, use_cache=False),
        "eager": lambda ids: received(
            decoder(ids, output_attentions=True, use_cache=False).attentions
        ),
    }
    return calls[way]


def build_lens(way: str):
    """Return the same of TransformerLens, through its cache."""
    from transformer_lens.model_bridge import TransformerBridge

    folder = converted(resolve("demo"), "float32")
    bridge = TransformerBridge.boot_transformers(
        str(folder), device="cpu", dtype=torch.float32
    )
    layers = 1 if way == "lens_layer1" else bridge.cfg.n_layers
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(layers)]

    def run(ids: torch.Tensor) -> torch.Tensor:
        # Logits of every position and a key-value cache are no part of the task: none
        # of the other ways computes them.
        _, cache = bridge.run_with_cache(
            ids,
            names_filter=names,
            stop_at_layer=layers if layers < bridge.cfg.n_layers else None,
            return_cache_object=False,
            logits_to_keep=1,
            use_cache=False,
            return_type=None,
        )
        return received([cache[name] for name in names])

    return run


def received(patterns) -> torch.Tensor:
    """Return the mean of each column below the diagonal, (L, H, T), of L patterns (1,
    H, T, T).
    """
    # Above the diagonal a causal pattern is zero, so no masked copy is needed.
    sums = [
        pattern[0].sum(-2) - pattern[0].diagonal(dim1=-2, dim2=-1)
        for pattern in patterns
    ]
    later = torch.arange(sums[0].shape[-1] - 1, -1, -1.0)
    later[-1] = torch.nan
    return torch.stack(sums) / later


@torch.inference_mode()
def measure(way: str, tokens: int) -> dict:
    """Run one way in this process, and return its median seconds."""
    call = build(way)
    ids = random_ids(tokens)
    times = [seconds(call, ids)]  # which warms up
    if times[0] < SLOW:
        times = [seconds(call, ids) for _ in range(REPEATS)]
    return {"way": way, "tokens": tokens, "seconds": statistics.median(times)}


def seconds(call, ids: torch.Tensor) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    call(ids)
    return time.perf_counter() - start


@torch.inference_mode()
def check(way: str) -> None:
    """Stop where a way does not measure the same as ours."""
    ours = build("all")
    call = build(way)
    for tokens in AGREE_TOKENS:
        ids = random_ids(tokens)
        apart = (call(ids) - ours(ids))[..., :-1].abs().max()
        print(f"{tokens} tokens: {way} differs from ours by at most {apart:.1e}")
        if not apart <= AGREE_WITHIN:
            sys.exit("the ways do not measure the same")


def run_apart(way: str, tokens: int) -> dict:
    """Return what `measure` does in a new process, or no seconds where that was killed,
    most likely for lack of memory.
    """
    command = [sys.executable, __file__, "--one", way, str(tokens)]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=offline)
    if done.returncode == -signal.SIGKILL:
        return {"way": way, "tokens": tokens, "seconds": math.nan}
    if done.returncode:
        sys.exit(f"{way} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Check that the ways agree, measure each at every length, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    lengths = [128, 256, 512, 1024, 2048, 4096]
    parser.add_argument("--tokens", type=int, nargs="+", default=lengths)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        way, tokens = options.one
        print(json.dumps(measure(way, int(tokens))))
        return

    ways = WAYS
    if importlib.util.find_spec("transformer_lens") is None:
        ways = [way for way in WAYS if not way.startswith("lens")]
        install = "pip install -r requirements/bench.txt"
        print(f"TransformerLens is not installed, skipped: {install}")
    for way in {"eager", "lens_all"} & {*ways}:
        check(way)
    rows = []
    for tokens in options.tokens:
        found = {way: run_apart(way, tokens) for way in ways}
        for way, row in found.items():
            others = {"of_eager_time": "eager", "of_lens_time": LENS.get(way)}
            for column, other in others.items():
                if other in found:
                    row[column] = row["seconds"] / found[other]["seconds"]
            print(row, file=sys.stderr, flush=True)
        rows += found.values()
    table = keep("extraction", pd.DataFrame(rows), repeats=REPEATS)
    print(table[list(rows[0])].to_string(index=False))


if __name__ == "__main__":
    main()
