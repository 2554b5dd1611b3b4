"""Time and extra memory of received attention against the usual ways, on the demo model
and this machine.

Each way and length runs in a process of its own, so that peak memory belongs to it
alone:

    python benchmarks/extraction.py [--tokens 1024 2048] [--repeats 5]

Writes benchmarks/results/extraction.csv and prints two markdown tables: seconds
(median), extra memory and ratios at each length, and how the seconds grow with the
length. Every way but SDPA ends with the received attention of its layers.
TransformerLens is measured when it is installed; memory is measured on Linux alone.
"""

import argparse
import ctypes
import importlib.util
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import torch
from measuring import keep, random_ids

from lib.attention.received import received_attention
from lib.models.conversion import converted
from lib.models.loading import load
from lib.models.names import resolve

WAYS = {
    "layer1": "ours, layer 1",
    "all": "ours, all layers",
    "sdpa": "SDPA, all layers",
    "eager": "eager, all layers",
    "lens_layer1": "TL, layer 1",
    "lens_all": "TL, all layers",
}
LEGEND = """
ours: lib.attention.received_attention; SDPA: a plain forward, no attention read; eager: transformers with
output_attentions=True; TL: TransformerLens' run_with_cache on the patterns. s/... and MiB/...: seconds and extra memory
against that way at the same length, where TL is its layer 1 for our layer 1 and all its layers for the rest."""
AGREE_TOKENS = (128, 512)  # ours takes the queries in one block, and in several
AGREE_WITHIN = 1e-4
MIB = 1 << 20
SLOW = 40  # seconds: a way that takes longer is called once, which then counts


def demo_folder():
    return converted(resolve("demo"), "float32")


def build(way: str):
    """Return the function that runs one way on (1, T) token ids, and the config of its
    model.
    """
    if way.startswith("lens"):
        from transformer_lens.model_bridge import TransformerBridge

        bridge = TransformerBridge.boot_transformers(
            str(demo_folder()), device="cpu", dtype=torch.float32
        )
        layers = 1 if way == "lens_layer1" else bridge.cfg.n_layers
        return lambda ids: lens(bridge, ids, layers), bridge.original_model.config
    model = load("demo", device="cpu", dtype="float32").model
    decoder = model.get_decoder()
    if way == "eager":
        decoder.set_attn_implementation("eager")
    calls = {
        "layer1": lambda ids: received_attention(model, ids, [1])[0],
        "all": lambda ids: received_attention(model, ids)[0],
        "sdpa": lambda ids: decoder(ids, use_cache=False),
        "eager": lambda ids: reduce(
            decoder(ids, output_attentions=True, use_cache=False).attentions
        ),
    }
    return calls[way], model.config


def lens(bridge, ids: torch.Tensor, layers: int) -> torch.Tensor:
    """Return the received attention (L, H, T) of the first layers through
    TransformerLens' cache.
    """
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(layers)]
    stop = layers if layers < bridge.cfg.n_layers else None
    # Logits of every position and a key-value cache are no part of the task: none of
    # the other ways computes them.
    spared = {"logits_to_keep": 1, "use_cache": False, "return_type": None}
    _, cache = bridge.run_with_cache(
        ids, names_filter=names, stop_at_layer=stop, return_cache_object=False, **spared
    )
    return reduce([cache[name] for name in names])


def reduce(patterns) -> torch.Tensor:
    """Return the mean of each column below the diagonal, (L, H, T), of L patterns (1,
    H, T, T).
    """
    # Above the diagonal a causal pattern is zero, so no masked copy is needed.
    sums = [
        pattern[0].sum(-2) - pattern[0].diagonal(dim1=-2, dim2=-1)
        for pattern in patterns
    ]
    later = torch.arange(sums[0].shape[-1] - 1, -1, -1.0, device=sums[0].device)
    later[-1] = torch.nan
    return torch.stack(sums) / later


def measure(way: str, tokens: int, repeats: int) -> dict:
    """Run one way in this process: median seconds, and peak extra memory in MiB over
    the loaded, warm model.
    """
    call, config = build(way)
    if reason := lacks_memory(way, tokens, config):
        return {"way": way, "tokens": tokens, "skipped": reason}
    ids = random_ids(tokens)
    with torch.inference_mode():
        call(
            ids[:, :16]
        )  # touches the weights, which would count as extra memory otherwise
        before = restart_peak()
        first = seconds(call, ids)
        extra = peak() - before
        times = (
            [seconds(call, ids) for _ in range(repeats)] if first < SLOW else [first]
        )
    return {
        "way": way,
        "tokens": tokens,
        "seconds": statistics.median(times),
        "extra_mib": extra / MIB,
    }


def seconds(call, ids: torch.Tensor) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    call(ids)
    return time.perf_counter() - start


def lacks_memory(way: str, tokens: int, config) -> str | None:
    """Say why a way that holds whole patterns does not fit into the memory that is free
    now.
    """
    held = {
        "eager": config.num_hidden_layers,
        "lens_all": config.num_hidden_layers,
        "lens_layer1": 1,
    }.get(way)
    if held is None:
        return None
    # While a layer runs, its scores, masked scores and weights exist besides the
    # patterns that are kept.
    needed = (held + 3) * config.num_attention_heads * tokens**2 * 4
    available = psutil.virtual_memory().available
    if needed * 1.1 < available:
        return None
    return (
        f"needs {needed / 2**30:.1f} GiB and a tenth more, {available / 2**30:.1f} GiB"
        " free"
    )


def restart_peak() -> float:
    """Set the kernel's peak of resident memory back to what is resident now, and return
    that, in bytes.
    """
    try:
        # Memory that loading freed and the allocator kept would be used again and hide
        # as much of the peak.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (
        OSError,
        AttributeError,
        TypeError,
    ):  # not Linux, or a C library without malloc_trim
        return math.nan
    return peak()


def peak() -> float:
    """Return the peak resident memory since `restart_peak`, in bytes; NaN where the
    kernel does not tell.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next(
        (int(line.split()[1]) * 1024.0 for line in lines if line.startswith("VmHWM")),
        math.nan,
    )


def agree(ways: list[str]) -> list[dict]:
    """Return each way's largest difference from our received attention, over all
    layers, heads and tokens.
    """
    calls = {way: build(way)[0] for way in ["all", *ways]}
    found = []
    with torch.inference_mode():
        for tokens in AGREE_TOKENS:
            values = {
                way: call(random_ids(tokens))[..., :-1] for way, call in calls.items()
            }
            for way in ways:
                difference = (values[way] - values["all"]).abs().max().item()
                found.append({"way": way, "tokens": tokens, "difference": difference})
    return found


def run_apart(*arguments: str) -> dict | list | None:
    """Run this file with arguments in a new, offline process; None when it was killed,
    as for lack of memory.
    """
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    if done.returncode == -signal.SIGKILL:
        return None
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Check that the ways agree, measure each at every length, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=[128, 256, 512, 1024, 2048, 4096]
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--one", nargs=2, metavar=("WAY", "TOKENS"), help=argparse.SUPPRESS
    )
    parser.add_argument("--agree", nargs="+", metavar="WAY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.repeats)))
    elif options.agree:
        print(json.dumps(agree(options.agree)))
    else:
        compare(sorted(set(options.tokens)), options.repeats)


def compare(lengths: list[int], repeats: int) -> None:
    """Measure every way that is installed, one process after the other; write the csv
    and print the tables.
    """
    ways = list(WAYS)
    if importlib.util.find_spec("transformer_lens") is None:
        ways = [way for way in ways if not way.startswith("lens")]
        print(
            "TransformerLens is not installed, skipped: pip install -r"
            " requirements/bench.txt"
        )
    converted(
        resolve("demo"), "float32"
    )  # converts the model now: the processes below pass on nothing that is printed
    check_agreement(ways)
    rows = []
    for tokens in lengths:
        for way in ways:
            row = run_apart("--repeats", str(repeats), "--one", way, str(tokens))
            rows.append(
                row
                or {
                    "way": way,
                    "tokens": tokens,
                    "skipped": "killed, most likely for lack of memory",
                }
            )
            print(
                f"{tokens} tokens, {WAYS[way]}: {outcome(rows[-1])}",
                file=sys.stderr,
                flush=True,
            )
    table = pd.DataFrame(
        rows, columns=["way", "tokens", "seconds", "extra_mib", "skipped"]
    )
    table = with_ratios(table).assign(growth=table.way.map(growth(table)))
    print_tables(keep("extraction", table, repeats=repeats))


def check_agreement(ways: list[str]) -> None:
    """Print how far eager and TransformerLens are from ours, and stop when it is too
    far.
    """
    found = run_apart("--agree", *[way for way in ways if way in ("eager", "lens_all")])
    if found is None:
        sys.exit(
            "the check that the ways agree was killed, most likely for lack of memory"
        )
    for row in found:
        print(
            f"{row['tokens']} tokens: {WAYS[row['way']]} differ from ours by at most"
            f" {row['difference']:.1e}"
        )
        if not row["difference"] <= AGREE_WITHIN:
            sys.exit(
                f"that is more than {AGREE_WITHIN:.0e}: the ways do not measure the"
                " same"
            )


def with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Add seconds and extra memory against SDPA, eager and TransformerLens at the same
    length.
    """
    table = table.copy()
    measured = table.set_index(["way", "tokens"])
    for other in ("sdpa", "eager", "lens"):
        for column, name in (("seconds", "time"), ("extra_mib", "extra_memory")):
            pairs = [
                (counterpart(way, other), tokens)
                for way, tokens in zip(table.way, table.tokens, strict=True)
            ]
            table[f"of_{other}_{name}"] = (
                table[column] / measured[column].reindex(pairs).to_numpy()
            )
    return table


def counterpart(way: str, other: str) -> str:
    """Return the way that `way` is divided by in the columns of `other`."""
    if other != "lens":
        return other
    return "lens_layer1" if way.endswith("layer1") else "lens_all"


def growth(table: pd.DataFrame) -> dict[str, float]:
    """Return per way the slope of log seconds over log tokens in the upper half of the
    lengths, at least two.
    """
    lengths = sorted(table.tokens.unique())
    upper = table[table.tokens.isin(lengths[-max(2, len(lengths) // 2) :])].dropna(
        subset="seconds"
    )
    slopes = {}
    for way, rows in upper.groupby("way"):
        if len(rows) > 1:
            points = [
                (math.log(tokens), math.log(s))
                for tokens, s in zip(rows.tokens, rows.seconds, strict=True)
            ]
            slopes[way] = statistics.linear_regression(*zip(*points, strict=True)).slope
    return slopes


def outcome(row: dict) -> str:
    """Say in a few words how one measurement went."""
    return (
        f"skipped: {row['skipped']}" if "skipped" in row else f"{row['seconds']:.3f} s"
    )


def print_tables(table: pd.DataFrame) -> None:
    """Print the csv as two markdown tables of at most 120 columns."""
    first = table.iloc[0]
    print(
        f"\n{first.cpu}, {first.cores} cores, float32, median of {first.repeats}, torch"
        f" {first.torch}",
        end="",
    )
    print(
        f", transformers {first.transformers}, transformer-lens"
        f" {first.transformer_lens or 'not installed'}\n"
    )
    ratios = [
        f"of_{way}_{what}"
        for what in ("time", "extra_memory")
        for way in ("sdpa", "eager", "lens")
    ]
    heads = [
        "seconds",
        "MiB",
        "s/SDPA",
        "s/eager",
        "s/TL",
        "MiB/SDPA",
        "MiB/eager",
        "MiB/TL",
    ]
    widths = [max(7, len(head)) for head in heads]
    print(
        "| tokens | way               |",
        *[f"{head:>{width}} |" for head, width in zip(heads, widths, strict=True)],
    )
    print(
        "|-------:|-------------------|"
        + "|".join("-" * (width + 1) + ":" for width in widths)
        + "|"
    )
    for _, row in table.iterrows():
        cells = [number(row[column]) for column in ("seconds", "extra_mib", *ratios)]
        cells = [
            f"{cell:>{width}} |" for cell, width in zip(cells, widths, strict=True)
        ]
        if isinstance(row.skipped, str):
            cells = [outcome(row), "|" * len(heads)]
        print(f"| {row.tokens:6} | {WAYS[row.way]:17} |", *cells)
    print(LEGEND)
    print("\n| way               | seconds grow as tokens to the power of |")
    print("|-------------------|---------------------------------------:|")
    for way, rows in table.groupby("way", sort=False):
        print(f"| {WAYS[way]:17} | {number(rows.growth.iloc[0]):>38} |")


def number(value: float) -> str:
    """Write a number with three digits, and a missing one as a dash."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


if __name__ == "__main__":
    main()
