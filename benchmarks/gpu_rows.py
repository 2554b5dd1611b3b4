"""What is measured on a GPU of whole prompts, and what the numbers belong to.

Each function returns a row's numbers. On a CPU every row runs on tiny models, so that
each line of it has run somewhere.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import transformers
from extraction import reduce
from gpu_device import QWEN, Gpu, setting
from measuring import PACKAGES, ROOT, random_ids

from lib.attention import function
from lib.attention.received import received_attention
from lib.generation.prefill import prefill
from lib.measurement.attention import prompts_of
from lib.prompts.problems import load_problems

TEST_SECONDS = 240


def versions(gpu: Gpu) -> dict:
    """Return what the numbers belong to, and what the device multiplies in a second.

    `float32_error` is how far float32 products are from float64's: 1e-3 would be TF32.
    """
    a = torch.randn(1024, 1024, device=gpu.device)
    exact = a.double() @ a.double()
    row = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "gpu": torch.cuda.get_device_name() if gpu.cuda else "none",
        "float32_products": torch.get_float32_matmul_precision(),
        "float32_error": float((a @ a - exact).norm() / exact.norm()),
    }
    if gpu.large:
        a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        seconds = gpu.timed(lambda: a @ a)["seconds"]
        row["bfloat16_tflops"] = 2 * 8192**3 / seconds / 1e12
    return row


def tests(gpu: Gpu) -> dict:
    """Return how the tests of what a GPU computes otherwise ended."""
    path = [str(ROOT), os.environ.get("PYTHONPATH", ""), str(PACKAGES)]
    marker = "cuda" if gpu.cuda else "cpu_too"
    files = ["tests/test_on_a_gpu.py", "tests/generation/test_step.py"]
    options = ["-q", "-p", "no:cacheprovider", "-m", marker]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
    )
    lines = (done.stdout or done.stderr).splitlines()
    if done.returncode:
        failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        raise RuntimeError("; ".join([lines[-1], *failures]))
    return {"ended": lines[-1]}


@contextmanager
def attention_of(decoder, kind: str) -> Iterator[None]:
    """Let a decoder attend by one of transformers' implementations."""
    usual = decoder.config._attn_implementation
    decoder.set_attn_implementation(kind)
    try:
        yield
    finally:
        decoder.set_attn_implementation(usual)


@torch.inference_mode()
def extract(gpu: Gpu, name: str, tokens: int, way: str) -> dict:
    """Return seconds and memory of one way to a prompt's received attention.

    Beside them those of a plain forward (sdpa), and of what eager attention gives.
    """
    model = gpu.model(name)
    decoder = model.get_decoder()
    ids = random_ids(tokens).to(gpu.device)
    if way == "eager":
        with attention_of(decoder, "eager"):
            return gpu.timed(lambda: reduce(decoder(ids, output_attentions=True)[-1]))
    if way == "sdpa":
        return gpu.timed(lambda: decoder(ids, use_cache=False))
    blocks = 1 if way == "all, one block" else function.GPU_CAUSAL_BLOCKS
    layers = [1] if way == "layer 1" else None
    with setting(function, GPU_CAUSAL_BLOCKS=blocks):
        return gpu.timed(lambda: received_attention(model, ids, layers))


def measuring(gpu: Gpu, measure: Callable) -> dict:
    """Return seconds a problem of a measurement in all layers under two conditions."""
    loaded = gpu.loaded(QWEN)
    problems = load_problems("embedded", limit=64 if gpu.large else 2, seed=0)
    prompts = prompts_of(loaded, problems, ["mless"])
    row = gpu.timed(lambda: list(measure(loaded, prompts)), 1)
    row["problems"] = len(problems)
    row["seconds_per_problem"] = row["seconds"] / len(problems)
    return row


def texts(gpu: Gpu) -> tuple[list[list[int]], list[range]]:
    """Return rows of ids, and the places of a solution in each."""
    length = 512 if gpu.large else 40
    rows = [random_ids(length)[0].tolist() for _ in range(4)]
    return rows, [range(length // 4, length - 1)] * len(rows)


def likelihood(gpu: Gpu, name: str, dtype: torch.dtype) -> dict:
    """Return tokens per second of scoring, where a whole solution's logits are made."""
    model = gpu.model(name, dtype)
    rows, places = texts(gpu)
    row = gpu.timed(lambda: prefill(model, rows, places))
    return row | {"tokens_per_second": sum(map(len, rows)) / row["seconds"]}
