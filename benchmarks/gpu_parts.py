"""How a GPU spends its time, with random weights of real shapes.

    python benchmarks/gpu_parts.py [--rows 660] [--tiny] >> parts.jsonl
    python benchmarks/gpu_parts.py --table parts.jsonl

No model is needed: a step of generation and its parts, likelihoods of batches of
several sizes, and extraction in several numbers of blocks. Prints a line of JSON for
each: median milliseconds until the device has finished, those until the call returns on
the host, and the number of kernels. --tiny runs everything with a tiny model, also on a
CPU. --table measures nothing and writes printed lines, which may be cut off or among
others, to benchmarks/results/gpu_parts.csv.
"""

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
import transformers
from measuring import RESULTS  # which makes lib importable
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, Qwen2Config

from lib.attention import query_blocks
from lib.attention.custom_attention import attending
from lib.attention.query_blocks import Step
from lib.attention.received import received_attention
from lib.generation.engine_interface import Sampling
from lib.generation.key_value_caches import SlotCache, prefill
from lib.generation.transformers_engine import choose
from lib.models.fused_norms import fuse_norms

QWEN = {
    "vocab_size": 151_936,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32_768,
    "tie_word_embeddings": True,
}
LLAMA = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
SHAPES = {
    "0.5B": Qwen2Config(
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        **QWEN,
    ),
    "1.5B": Qwen2Config(
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        **QWEN,
    ),
    "135M": LlamaConfig(num_hidden_layers=30, **LLAMA),
    "tiny": LlamaConfig(
        vocab_size=9000,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
    ),
}
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
LONGEST = 600  # positions of a row in a step
BLOCKS = (1, 4, 6, 8)
REPEATS = 5
COLUMNS = [
    "shape",
    "dtype",
    "way",
    "rows",  # of a step
    "tokens",  # of a forward pass
    "blocks",  # of extraction, at most so many
    "ms",
    "host_ms",
    "kernels",
    "device",
    "torch",
    "transformers",
]


def say(**row: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(row), flush=True)


def wait() -> None:
    """Wait until the device has finished all of its work."""
    if CUDA:
        torch.cuda.synchronize()


def measured(call: Callable[[], object]) -> dict[str, object]:
    """Return the times and kernels of a call, after two calls to warm up."""
    device, host = [], []
    for turn in range(REPEATS + 2):
        wait()
        start = time.perf_counter()
        call()
        free = time.perf_counter()
        wait()
        if turn > 1:
            device.append(time.perf_counter() - start)
            host.append(free - start)
    row: dict[str, object] = {"ms": round(1e3 * statistics.median(device), 3)}
    row["host_ms"] = round(1e3 * statistics.median(host), 3)
    if CUDA:
        kind = torch.profiler.ProfilerActivity.CUDA
        with torch.profiler.profile(activities=[kind]) as seen:
            call()
            wait()
        # The calls on the host that launch kernels are recorded, too.
        device_type = torch.autograd.DeviceType.CUDA
        kernels = [
            each for each in seen.key_averages() if each.device_type == device_type
        ]
        row["kernels"] = sum(kernel.count for kernel in kernels)
        kernels.sort(key=lambda kernel: -kernel.device_time_total)
        row["longest"] = [
            (kernel.key[:60], kernel.count, round(kernel.device_time_total / 1e3, 2))
            for kernel in kernels[:6]
        ]
    return row


def model_of(shape: str, dtype: torch.dtype) -> PreTrainedModel:
    """Return a model of a shape with random weights."""
    with torch.device(DEVICE):
        return AutoModelForCausalLM.from_config(SHAPES[shape], dtype=dtype).eval()


@torch.inference_mode()
def step_parts(shape: str, dtype: torch.dtype, rows: int) -> None:
    """Time a step of generation of so many rows, and its parts."""
    model = model_of(shape, dtype)
    cache = SlotCache(rows, LONGEST + 40)
    filled, _ = prefill(model, [list(range(5, 13))], [range(7, 8)])
    cache.write(0, filled, [8])
    tokens = torch.full((rows, 1), 7, device=DEVICE)
    lengths = [LONGEST - (row * 7) % (LONGEST // 2) for row in range(rows)]

    def step(in_eights: bool = False) -> torch.Tensor:
        cache.lengths = list(lengths)
        positions = cache.next_positions(rows, DEVICE)
        if in_eights:
            cache.longest = -(-cache.longest // 8) * 8
        with attending(model.get_decoder(), step=Step(positions)):
            output = model(
                input_ids=tokens,
                position_ids=positions[:, None],
                past_key_values=cache,
                use_cache=True,
            )
        return output.logits[:, -1].float()

    logits = step()
    draws = [torch.Generator().manual_seed(row) for row in range(rows)]
    ways = {
        "step": step,
        "step, keys in eights": functools.partial(step, True),
        "greedy": lambda: choose(logits, Sampling(1), draws),
        "drawn": lambda: choose(logits, Sampling(1, 0.6), draws),
    }
    for way, call in ways.items():
        say(shape=shape, dtype=str(dtype), rows=rows, way=way, **measured(call))
    fuse_norms(model)
    way = "step, fused norms"
    say(shape=shape, dtype=str(dtype), rows=rows, way=way, **measured(step))


@torch.inference_mode()
def whole_prompts(shape: str, dtype: torch.dtype, most: int, length: int) -> None:
    """Time likelihoods of up to so many tokens at once, and extraction."""
    model = model_of(shape, dtype)
    named = {"shape": shape, "dtype": str(dtype)}
    for tokens in (most // 16, most // 4, most):
        ids = torch.randint(100, 9000, (tokens // 256, 256))
        ids[:, :30] = 5
        positions = [range(128, 255)] * len(ids)
        call = functools.partial(prefill, model, ids.tolist(), positions)
        say(**named, way="likelihood", tokens=tokens, **measured(call))
    ids = torch.randint(100, 9000, (most // 2 // length, length), device=DEVICE)
    plain = functools.partial(model.get_decoder(), ids, use_cache=False)
    say(**named, way="plain forward", tokens=ids.numel(), **measured(plain))
    for blocks in BLOCKS:
        query_blocks.GPU_CAUSAL_BLOCKS = blocks
        call = functools.partial(received_attention, model, ids)
        row = {"way": "extraction", "tokens": ids.numel(), "blocks": blocks}
        say(**named, **row, **measured(call))


def write_table(lines: Path) -> None:
    """Write the measurements among a file's lines as a table, of three digits."""
    rows = []
    machine: dict = {}
    for line in lines.read_text().splitlines():
        # Others are warnings, or were cut off.
        if not (line.startswith("{") and line.endswith("}")):
            continue
        row = json.loads(line)
        if "device" in row:
            machine = row
        else:
            rows.append(machine | row)
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["dtype"] = table["dtype"].str.removeprefix("torch.")
    counts = ["rows", "tokens", "blocks", "kernels"]
    table[counts] = table[counts].astype("Int64")
    table.to_csv(RESULTS / "gpu_parts.csv", index=False, float_format="%.3g")


def main() -> None:
    """Time everything, the most informative first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=660)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--table", type=Path, metavar="LINES")
    options = parser.parse_args()
    if options.table:
        write_table(options.table)
        return
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    say(device=name, **versions)
    if options.tiny:
        step_parts("tiny", torch.float32, 4)
        whole_prompts("tiny", torch.float32, 4096, 128)
        return
    step_parts("0.5B", torch.float32, options.rows)
    whole_prompts("135M", torch.bfloat16, 32_768, 1024)
    step_parts("0.5B", torch.bfloat16, options.rows)
    step_parts("1.5B", torch.float32, 250)
    whole_prompts("0.5B", torch.float32, 32_768, 1024)
    step_parts("135M", torch.bfloat16, 256)


if __name__ == "__main__":
    main()
