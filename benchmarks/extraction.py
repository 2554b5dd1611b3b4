"""Time of received attention, compared with plain forward passes.

    python benchmarks/extraction.py

It is measured on the demo model and this machine: of layer 1 and of all layers by this
project, from transformers' eager attention, and without any attention being received
(SDPA). The ways take turns, and tests/attention compares their results. Writes
benchmarks/results/extraction.csv: median seconds, and their ratio to eager attention's.
"""

import functools
import statistics
import sys
import time
from collections.abc import Callable

import pandas as pd
import torch
from measuring import in_turns, keep

from lib.attention.received import received_attention
from lib.models.loading import load

REPEATS = 5
LENGTHS = (128, 256, 512, 1024, 2048)  # tokens


def random_ids(tokens: int) -> torch.Tensor:
    """Return the random prompt of a length, (1, T), which is always the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(100, 40_000, (1, tokens), generator=generator)


def ways() -> dict[str, Callable[[torch.Tensor], object]]:
    """Return the function of each way, which takes token ids (1, T)."""
    model, other = (load("demo", device="cpu", dtype="float32").model for _ in "ab")
    eager = other.get_decoder()
    eager.set_attn_implementation("eager")
    return {
        "layer1": lambda ids: received_attention(model, ids, [1])[0],
        "all": lambda ids: received_attention(model, ids)[0],
        "sdpa": functools.partial(model.get_decoder(), use_cache=False),
        "eager": lambda ids: received(
            eager(ids, output_attentions=True, use_cache=False).attentions
        ),
    }


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
def main() -> None:
    """Measure each way at every length, and write the table."""
    calls = ways()
    rows = []
    for tokens in LENGTHS:
        ids = random_ids(tokens)
        at_length = {name: functools.partial(call, ids) for name, call in calls.items()}
        times = in_turns(at_length, REPEATS, time.perf_counter)
        seconds = {name: statistics.median(times[name]) for name in calls}
        for way, of_way in seconds.items():
            row = {"way": way, "tokens": tokens, "seconds": of_way}
            rows.append(row | {"of_eager_time": of_way / seconds["eager"]})
            print(rows[-1], file=sys.stderr, flush=True)
    keep("extraction", pd.DataFrame(rows), repeats=REPEATS)


if __name__ == "__main__":
    main()
