"""What asks for a GPU, row by row: `make gpu`, also on a node without network.

    python3 benchmarks/gpu.py [--out results/gpu] [--device cuda] [--only decode]

There it runs in the folder that `make gpu-folder` fills. Each row is written to
OUT/rows.jsonl and printed as it is measured, the most telling ones first: a run may be
stopped at any time, and goes on with what is missing. After --minutes no row is begun.
A row that ended the whole process twice is left out. With --device cpu every row runs
on tiny models. CLUSTER.md says what each row decides.
"""

import argparse
import collections
import functools
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gpu_decode
import gpu_kernels
import gpu_rows
import torch
from gpu_device import GEMMA, LLAMA, QWEN, SMALL_QWEN, Gpu
from measuring import ROOT

from lib.arm.settings import Arm
from lib.measurement.activations import measure_activations
from lib.measurement.attention import measure_attention

Row = tuple[str, Callable[[], dict]]  # a name, and what measures it
ARMS = {
    "none": None,
    "text": Arm(),
    "code": Arm(mode="code", statistics="sequence"),
}


def rows(gpu: Gpu) -> Iterator[Row]:
    """Yield all rows, the most telling first, with one change of the model in ten."""
    row = functools.partial
    most, fewer = (256, 64) if gpu.large else (4, 2)
    short, long = (1024, 4096) if gpu.large else (128, 256)

    yield "versions", row(gpu_rows.versions, gpu)
    yield from decoding(gpu, QWEN, most)
    for name, measure in (
        ("attention of a step", gpu_kernels.step_attention),
        ("norm of a step", gpu_kernels.norm),
        ("draw", gpu_kernels.draw),
        ("captures", row(gpu_decode.captures, name=QWEN)),
        ("bookkeeping of a step", gpu_decode.bookkeeping),
    ):
        yield f"{name}, {most} rows", row(measure, gpu, rows=most)
    yield from extraction(gpu, QWEN, long, "all", "all, one block", "layer 1", "sdpa")
    yield from arms(gpu, QWEN, most)
    yield "tests", row(gpu_rows.tests, gpu)

    for cudnn in (False, True):
        name = f"new shapes of attention, cuDNN {'on' if cudnn else 'off'}"
        yield name, row(gpu_kernels.new_shapes, gpu, cudnn)
    yield f"decode, {QWEN}, {fewer} rows", row(gpu_decode.decode, gpu, QWEN, fewer)
    yield "products, scaled after and within", row(gpu_kernels.products, gpu)
    yield from extraction(gpu, QWEN, short, "all", "layer 1", "sdpa", "eager")
    for name, measure in (
        ("attention", measure_attention),
        ("activations", measure_activations),
    ):
        yield f"measuring {name}, {QWEN}", row(gpu_rows.measuring, gpu, measure)
    yield from moves(gpu)

    for dtype in (torch.float32, torch.bfloat16):
        name = f"likelihood, {SMALL_QWEN}, {str(dtype).removeprefix('torch.')}"
        yield name, row(gpu_rows.likelihood, gpu, SMALL_QWEN, dtype)
    for model in (SMALL_QWEN, LLAMA, GEMMA):
        name = f"decode, {model}, {most} rows"
        yield name, row(gpu_decode.decode, gpu, model, most)
        yield from extraction(gpu, model, long, "all", "sdpa")
        yield (
            f"answers, {model}, ARM none",
            row(gpu_decode.answers, gpu, model, None, most),
        )


def decoding(gpu: Gpu, name: str, at_once: int) -> Iterator[Row]:
    """Yield rows of decode steps, as they are and with what could make them faster."""
    decode = functools.partial(gpu_decode.decode, gpu, name, at_once)
    changed = functools.partial(gpu_decode.decode_changed, gpu, name, at_once)
    fed_back = functools.partial(gpu_decode.decode_fed_back, gpu, name, at_once)
    ways = {
        "": decode,
        ", to each row's length": functools.partial(changed, to_lengths=True),
        ", fused norms": functools.partial(changed, fused=True),
        ", fed back": fed_back,
        ", alike": functools.partial(decode, ragged=False),
        ", eager": functools.partial(decode, eager=True),
    }
    for way, measure in ways.items():
        yield f"decode, {name}, {at_once} rows{way}", measure


def extraction(gpu: Gpu, name: str, tokens: int, *ways: str) -> Iterator[Row]:
    """Yield rows of ways to a prompt's received attention."""
    for way in ways:
        measure = functools.partial(gpu_rows.extract, gpu, name, tokens, way)
        yield f"extraction, {name}, {tokens} tokens, {way}", measure


def arms(gpu: Gpu, name: str, at_once: int) -> Iterator[Row]:
    """Yield rows of whole answers under each mode of ARM."""
    for mode, arm in ARMS.items():
        measure = functools.partial(gpu_decode.answers, gpu, name, arm, at_once)
        yield f"answers, {name}, ARM {mode}", measure


def moves(gpu: Gpu) -> Iterator[Row]:
    """Yield rows of what ARM does to one layer's activations."""
    for elements in (10**6, 10**7) if gpu.large else (10**4,):
        measure = functools.partial(gpu_kernels.order, gpu, elements)
        yield f"order statistics, {elements} elements", measure
    for mode in ("text", "code"):
        for tokens, what in ((256, "prompts of 256 tokens"), (1, "a token a row")):
            measure = functools.partial(gpu_kernels.move, gpu, mode, tokens)
            yield f"ARM, {mode}, {what}", measure


class RowsFile:
    """The rows that were measured, and those that were begun."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "rows.jsonl"
        lines = []
        if self.path.exists():
            lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.done = {line["row"] for line in lines if "begun" not in line}
        begun = [line["row"] for line in lines if "begun" in line]
        self.begun = collections.Counter(begun)

    def is_due(self, name: str) -> bool:
        """Say whether a row is to be measured: not done, nor begun twice in vain."""
        return name not in self.done and self.begun[name] < 2

    def write(self, row: dict) -> None:
        with open(self.path, "a") as file:
            print(json.dumps(row), file=file, flush=True)


def measured(measure: Callable[[], dict]) -> dict:
    """Return a row's numbers; an error is one, so that those behind it are not lost."""
    begin = time.perf_counter()
    try:
        row = measure()
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        gc.collect()
        torch.cuda.empty_cache()
    return row | {"in_all": round(time.perf_counter() - begin, 1)}


def shown(row: dict) -> str:
    """Return a row as it is printed."""
    parts = []
    for key, value in row.items():
        if isinstance(value, float):
            value = f"{value:.4g}"
        parts.append(str(value) if key == "row" else f"{key}={value}")
    return " ".join(parts)


def main() -> int:
    """Measure what is missing, row by row; 1 when a row failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "gpu")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only", default="", help="rows whose names begin so")
    parser.add_argument(
        "--minutes", type=float, default=10, help="after which no row is begun"
    )
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            f"torch {torch.__version__} sees no GPU: --device cpu tries every row on"
            " tiny models"
        )
    file = RowsFile(options.out)
    end = time.monotonic() + 60 * options.minutes
    failed = 0
    for name, measure in rows(Gpu(options.device)):
        if not name.startswith(options.only) or not file.is_due(name):
            continue
        if time.monotonic() > end:
            print(f"{options.minutes:g} minutes are over: start it again to go on")
            break
        # A line of its own for the beginning: the row may end the process.
        file.write({"row": name, "begun": time.strftime("%H:%M:%S")})
        row = {"row": name} | measured(measure)
        file.write(row)
        print(shown(row), flush=True)
        failed += "error" in row and "out of memory" not in row["error"]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
