"""Time and extra memory of received attention against the usual ways.

It is measured on the demo model and this machine. Each way and length runs in a process
of its own, so that peak memory belongs to it alone:

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
ours: lib.attention.received_attention; SDPA: a plain forward, no attention read;
eager: transformers with output_attentions=True; TL: TransformerLens' run_with_cache on
the patterns. s/... and MiB/...: seconds and extra memory against that way at the same
length, where TL is its layer 1 for our layer 1 and all its layers for the rest."""
AGREE_TOKENS = (128, 512)  # ours takes the queries in one block, and in several
AGREE_WITHIN = 1e-4
MIB = 1 << 20
GIB = 1 << 30
KILLED = "killed, most likely for lack of memory"
SLOW = 40  # seconds: a way that takes longer is called once, which then counts


def demo_folder():
    return converted(resolve("demo"), "float32")


def build(way: str):
    """Return what runs one way on (1, T) token ids, and the config of its model."""
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
    """Return the received attention (L, H, T) through TransformerLens' cache."""
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
    """Return the mean of each column below the diagonal, (L, H, T).

    There are L patterns (1, H, T, T).
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
    """Run one way in this process; return its median seconds and extra memory.

    The memory is the peak in MiB over the loaded, warm model.
    """
    call, config = build(way)
    reason = lacks_memory(way, tokens, config)
    if reason:
        return {"way": way, "tokens": tokens, "skipped": reason}
    ids = random_ids(tokens)
    with torch.inference_mode():
        # Touches the weights, which would count as extra memory otherwise.
        call(ids[:, :16])
        before = restart_peak()
        times = [seconds(call, ids)]
        extra = peak() - before
        if times[0] < SLOW:
            times = [seconds(call, ids) for _ in range(repeats)]
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
    """Say why a way that holds whole patterns does not fit into free memory, if so."""
    layers = config.num_hidden_layers
    patterns = {"eager": layers, "lens_all": layers, "lens_layer1": 1}
    if way not in patterns:
        return None
    # While a layer runs, its scores, masked scores and weights exist besides the
    # patterns that are kept.
    needed = (patterns[way] + 3) * config.num_attention_heads * tokens**2 * 4
    free = psutil.virtual_memory().available
    if needed * 1.1 < free:
        return None
    return f"needs {needed / GIB:.1f} GiB and a tenth more, {free / GIB:.1f} GiB free"


def restart_peak() -> float:
    """Set the kernel's peak of resident memory to what is resident now; return that.

    It is in bytes, and NaN where the kernel does not tell.
    """
    try:
        # Memory that loading freed and the allocator kept would be used again and hide
        # as much of the peak.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError, TypeError):
        # This is not Linux, or a C library without malloc_trim.
        return math.nan
    return peak()


def peak() -> float:
    """Return the peak resident memory since `restart_peak`, in bytes, or NaN."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    for line in lines:
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024.0
    return math.nan


def agree(ways: list[str]) -> list[dict]:
    """Return each way's largest difference from our received attention.

    It is over all layers, heads and tokens.
    """
    ours = build("all")[0]
    calls = {way: build(way)[0] for way in ways}
    rows = []
    with torch.inference_mode():
        for tokens in AGREE_TOKENS:
            ids = random_ids(tokens)
            expected = ours(ids)[..., :-1]
            for way, call in calls.items():
                difference = (call(ids)[..., :-1] - expected).abs().max().item()
                rows.append({"way": way, "tokens": tokens, "difference": difference})
    return rows


def run_apart(*arguments: str) -> dict | list | None:
    """Return what this file prints in a new, offline process.

    It is None when the process was killed, as for lack of memory.
    """
    command = [sys.executable, __file__, *arguments]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=offline)
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
    """Measure every way that is installed, write the csv and print the tables.

    One process runs after the other.
    """
    ways = list(WAYS)
    if importlib.util.find_spec("transformer_lens") is None:
        ways = [way for way in ways if not way.startswith("lens")]
        install = "pip install -r requirements/bench.txt"
        print(f"TransformerLens is not installed, skipped: {install}")
    # Converts the model now: the processes below pass on nothing that is printed.
    demo_folder()
    check_agreement(ways)

    rows = []
    for tokens in lengths:
        for way in ways:
            row = run_apart("--repeats", str(repeats), "--one", way, str(tokens))
            row = row or {"way": way, "tokens": tokens, "skipped": KILLED}
            rows.append(row)
            progress = f"{tokens} tokens, {WAYS[way]}: {outcome(row)}"
            print(progress, file=sys.stderr, flush=True)
    columns = ["way", "tokens", "seconds", "extra_mib", "skipped"]
    table = pd.DataFrame(rows, columns=columns)
    table = with_ratios(table).assign(growth=table.way.map(growth(table)))
    print_tables(keep("extraction", table, repeats=repeats))


def check_agreement(ways: list[str]) -> None:
    """Print how far eager and TransformerLens are from ours; stop if it is too far."""
    others = [way for way in ways if way in ("eager", "lens_all")]
    rows = run_apart("--agree", *others)
    if rows is None:
        sys.exit(f"the check that the ways agree was {KILLED}")
    for row in rows:
        difference = row["difference"]
        print(
            f"{row['tokens']} tokens: {WAYS[row['way']]} differ from ours by at most"
            f" {difference:.1e}"
        )
        if not difference <= AGREE_WITHIN:
            limit = f"more than {AGREE_WITHIN:.0e}"
            sys.exit(f"that is {limit}: the ways do not measure the same")


def with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Add seconds and extra memory against the usual ways at the same length."""
    table = table.copy()
    measured = table.set_index(["way", "tokens"])
    for other in ("sdpa", "eager", "lens"):
        counterparts = [counterpart(way, other) for way in table.way]
        places = list(zip(counterparts, table.tokens, strict=True))
        for column, name in (("seconds", "time"), ("extra_mib", "extra_memory")):
            divisor = measured[column].reindex(places).to_numpy()
            table[f"of_{other}_{name}"] = table[column] / divisor
    return table


def counterpart(way: str, other: str) -> str:
    """Return the way that `way` is divided by in the columns of `other`."""
    if other != "lens":
        return other
    return "lens_layer1" if way.endswith("layer1") else "lens_all"


def growth(table: pd.DataFrame) -> dict[str, float]:
    """Return per way the slope of log seconds over log tokens.

    It is that of the upper half of the lengths, at least two.
    """
    lengths = sorted(table.tokens.unique())
    upper = lengths[-max(2, len(lengths) // 2) :]
    measured = table[table.tokens.isin(upper)].dropna(subset="seconds")
    slopes = {}
    for way, rows in measured.groupby("way"):
        if len(rows) > 1:
            tokens = [math.log(value) for value in rows.tokens]
            times = [math.log(value) for value in rows.seconds]
            slopes[way] = statistics.linear_regression(tokens, times).slope
    return slopes


def outcome(row: dict) -> str:
    """Say in a few words how one measurement went."""
    if "skipped" in row:
        return f"skipped: {row['skipped']}"
    return f"{row['seconds']:.3f} s"


# The columns of the printed table, by their heads.
PRINTED = {
    "seconds": "seconds",
    "MiB": "extra_mib",
    "s/SDPA": "of_sdpa_time",
    "s/eager": "of_eager_time",
    "s/TL": "of_lens_time",
    "MiB/SDPA": "of_sdpa_extra_memory",
    "MiB/eager": "of_eager_extra_memory",
    "MiB/TL": "of_lens_extra_memory",
}


def print_tables(table: pd.DataFrame) -> None:
    """Print the csv as two markdown tables of at most 120 columns."""
    first = table.iloc[0]
    lens = first.transformer_lens or "not installed"
    print(
        f"\n{first.cpu}, {first.cores} cores, float32, median of {first.repeats}, torch"
        f" {first.torch}, transformers {first.transformers}, transformer-lens {lens}\n"
    )

    widths = [max(7, len(head)) for head in PRINTED]
    rules = ["-" * (width + 1) + ":" for width in widths]
    print("| tokens | way               |", _cells(list(PRINTED), widths))
    print(f"|-------:|-------------------|{'|'.join(rules)}|")
    for _, row in table.iterrows():
        if isinstance(row.skipped, str):
            cells = f"{outcome(row)} {'|' * len(PRINTED)}"
        else:
            cells = _cells([number(row[name]) for name in PRINTED.values()], widths)
        print(f"| {row.tokens:6} | {WAYS[row.way]:17} |", cells)
    print(LEGEND)

    print("\n| way               | seconds grow as tokens to the power of |")
    print("|-------------------|---------------------------------------:|")
    for way, rows in table.groupby("way", sort=False):
        print(f"| {WAYS[way]:17} | {number(rows.growth.iloc[0]):>38} |")


def _cells(texts: list[str], widths: list[int]) -> str:
    pairs = zip(texts, widths, strict=True)
    return " ".join(f"{text:>{width}} |" for text, width in pairs)


def number(value: float) -> str:
    """Write a number with three digits, and a missing one as a dash."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


if __name__ == "__main__":
    main()
