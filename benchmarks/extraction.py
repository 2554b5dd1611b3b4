"""Time of received attention, compared with the usual ways to compute it.

    python benchmarks/extraction.py [--tokens 1024 2048]

It is measured on the demo model and this machine. The results of each way are first
compared with ours. Each way and length runs in a separate process, which may run out of
memory. Writes benchmarks/results/extraction.csv: median seconds, and their ratios to
those of eager attention and, for the same layers, of TransformerLens. Every way ends
with the received attention of its layers, except SDPA, which is a plain forward pass.
TransformerLens is measured if it is installed.
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
from lib.models.sources import resolve

WAYS = ["layer1", "all", "sdpa", "eager", "lens_layer1", "lens_all"]
# Our ways, and those of TransformerLens with the same layers.
LENS = {"layer1": "lens_layer1", "all": "lens_all"}
AGREE_TOKENS = (
    128,
    512,
)  # for which ours computes the queries in one or several blocks
AGREE_WITHIN = 1e-4
REPEATS = 5
SLOW = 40  # seconds: of a slower way the first call counts and is not repeated


def random_ids(tokens: int) -> torch.Tensor:
    """Return the random prompt of a length, (1, T), which is always the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(100, 40_000, (1, tokens), generator=generator)


def build(way: str):
    """Return the function of one way, which takes token ids (1, T)."""
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
    """Return the function of TransformerLens, which reads attention from its cache."""
    from transformer_lens.model_bridge import TransformerBridge

    folder = converted(resolve("demo"), "float32")
    bridge = TransformerBridge.boot_transformers(
        str(folder), device="cpu", dtype=torch.float32
    )
    layers = 1 if way == "lens_layer1" else bridge.cfg.n_layers
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(layers)]

    def run(ids: torch.Tensor) -> torch.Tensor:
        # For a fair comparison neither logits of every position nor a key-value cache
        # are computed, because no other way computes them.
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
    """Return the mean of each column below the diagonal, (L, H, T), from L attention
    patterns (1, H, T, T).
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
    times = [seconds(call, ids)]  # the first call warms up
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
    """Exit if a way does not measure the same as ours."""
    ours = build("all")
    call = build(way)
    for tokens in AGREE_TOKENS:
        ids = random_ids(tokens)
        apart = (call(ids) - ours(ids))[..., :-1].abs().max()
        print(f"{tokens} tokens: {way} differs from ours by at most {apart:.1e}")
        if not apart <= AGREE_WITHIN:
            sys.exit("the ways do not measure the same")


def run_apart(way: str, tokens: int) -> dict:
    """Return the result of `measure` in a new process; NaN seconds if it was killed,
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
