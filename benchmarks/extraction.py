"""Time and extra memory of received attention against the usual ways, on the demo model and this machine.

Each way and length runs in a process of its own, so that peak memory belongs to it alone:

    python benchmarks/extraction.py [--tokens 1024 2048] [--repeats 3]

Writes benchmarks/results/extraction.csv and prints medians, ratios and peak extra memory.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

WAYS = {
    "sdpa": "plain forward, SDPA",
    "eager": "output_attentions=True, eager",
    "layer1": "received attention, layer 1",
    "all": "received attention, all layers",
}
RESULTS = Path(__file__).parent / "results" / "extraction.csv"


def measure(way: str, tokens: int, repeats: int) -> dict:
    """Run one way in this process: median seconds and peak extra memory in MiB over the loaded model."""
    import torch

    from lib.attention import received_attention
    from lib.models import load

    loaded = load("demo")
    decoder = loaded.model.get_decoder()
    ids = torch.randint(100, 40_000, (1, tokens), generator=torch.Generator().manual_seed(0))
    if way == "eager":
        decoder.set_attn_implementation("eager")
    calls = {
        "sdpa": lambda ids: decoder(input_ids=ids, use_cache=False),
        "eager": lambda ids: [a.mean() for a in decoder(ids, output_attentions=True, use_cache=False).attentions],
        "layer1": lambda ids: received_attention(loaded.model, ids, [1]),
        "all": lambda ids: received_attention(loaded.model, ids),
    }
    times = []
    with torch.inference_mode():
        calls[way](ids[:, :16])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(repeats):
            start = time.perf_counter()
            calls[way](ids)
            times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"way": way, "tokens": tokens, "seconds": statistics.median(times), "extra_mib": peak / 1024}


def main() -> None:
    """Measure every way at every length, side by side, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "TOKENS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.repeats)))
        return
    import pandas as pd

    rows = []
    for tokens in options.tokens:
        for way in WAYS:
            command = [sys.executable, __file__, "--repeats", str(options.repeats), "--one", way, str(tokens)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{tokens:5} tokens  {WAYS[way]:32} {rows[-1]['seconds']:8.3f} s", flush=True)
    table = pd.DataFrame(rows)
    plain = table[table.way == "sdpa"].set_index("tokens")
    eager = table[table.way == "eager"].set_index("tokens")
    table["of_sdpa_time"] = table.seconds / table.tokens.map(plain.seconds)
    table["of_eager_time"] = table.seconds / table.tokens.map(eager.seconds)
    table["of_eager_extra_memory"] = table.extra_mib / table.tokens.map(eager.extra_mib)
    table["machine"] = f"{platform.machine()}, {_cores()} cores, float32"
    RESULTS.parent.mkdir(exist_ok=True)
    table.to_csv(RESULTS, index=False, float_format="%.4g")
    print(table.drop(columns="machine").round(4).to_string(index=False))


def _cores() -> int:
    import torch

    return torch.get_num_threads()


if __name__ == "__main__":
    main()
