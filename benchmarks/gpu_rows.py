"""What is measured on a GPU: models of the real ones' shapes with random weights.

Each function returns a row's numbers. Nothing is downloaded. On a CPU every row runs on
tiny models, so that each line of it has run somewhere.
"""

import collections
import functools
import gc
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import transformers
from extraction import reduce
from measuring import PACKAGES, ROOT, random_ids
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    Gemma3TextConfig,
    LlamaConfig,
    Qwen2Config,
)

from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.attention import function
from lib.attention.received import received_attention
from lib.generation import Request, Sampling, drawing
from lib.generation.drawing import choose
from lib.generation.prefill import prefill
from lib.generation.step import DecodeSteps
from lib.generation.transformers import Engine
from lib.measurement.attention import prompts_of
from lib.models.conversion import converted
from lib.models.loading import Loaded
from lib.models.names import resolve
from lib.prompts.problems import load_problems

QWEN = "Qwen2.5-Math-7B"
SMALL_QWEN = "Qwen2.5-1.5B"
LLAMA = "Llama-3.1-8B"
GEMMA = "Gemma-3-4b"
DIMENSIONS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
)
SHAPES = {
    QWEN: (Qwen2Config, 3584, 18944, 28, 28, 4, 128, 152064),
    SMALL_QWEN: (Qwen2Config, 1536, 8960, 28, 12, 2, 128, 151936),
    LLAMA: (LlamaConfig, 4096, 14336, 32, 32, 8, 128, 128256),
    GEMMA: (Gemma3TextConfig, 2560, 10240, 34, 8, 4, 256, 262208),
}
TINY = (64, 128, 3, 4, 2, 16, 49152)
EAGER_MOST = 2048  # tokens, beyond which eager attention takes all memory
STEPS = 20  # of a decode row, that are timed
MEAN_LENGTH = 900  # of the answers at work in a step, in tokens with their prompts
LONGEST = 2304
TEST_SECONDS = 240
PATIENCE = 8  # seconds, after which what is timed is not repeated


class Gpu:
    """The device that is measured; one model lies in its memory at a time."""

    def __init__(self, device: str):
        self.device = device
        self.cuda = device == "cuda"
        self.tokenizer_folder = ROOT / "tokenizer"
        torch.backends.cuda.enable_cudnn_sdp(False)  # as after a model is loaded

    @functools.lru_cache(maxsize=1)  # noqa: B019 (the one object lives as long as the process)
    def model(self, name: str, dtype: torch.dtype = torch.bfloat16):
        """Return a model with random weights, made where it runs."""
        config_class, *sizes = SHAPES[name]
        sizes = sizes if self.cuda else TINY
        config = config_class(
            **dict(zip(DIMENSIONS, sizes, strict=True)),
            max_position_embeddings=16384,
            pad_token_id=0,
        )
        self.model.cache_clear()  # before there are two
        gc.collect()
        if self.cuda:
            torch.cuda.empty_cache()
        with torch.device(self.device):
            dtype = dtype if self.cuda else torch.float32
            return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()

    @functools.cached_property
    def tokenizer(self):
        """The demo model's, from the folder that was filled or from its conversion."""
        folder = self.tokenizer_folder
        if not folder.is_dir():
            folder = converted(resolve("demo"), "float32")
        return AutoTokenizer.from_pretrained(folder)

    def loaded(self, name: str, dtype: torch.dtype = torch.bfloat16) -> Loaded:
        """Return the random model with the demo's tokenizer."""
        model = self.model(name, dtype)
        return Loaded(
            model,
            self.tokenizer,
            name,
            name,
            "",
            self.device,
            str(model.dtype).removeprefix("torch."),
            model.config.num_hidden_layers,
        )

    def timed(self, call: Callable[[], object], repeats: int = 5) -> dict:
        """Return the median seconds of a call, the first one's, and the memory it took.

        The memory is the most on the GPU beside what lay there.
        """
        before = 0
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        times: list[float] = []
        # The first only warms up.
        while len(times) <= repeats and (len(times) < 2 or sum(times) < PATIENCE):
            begin = time.perf_counter()
            call()
            if self.cuda:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        row = {"seconds": statistics.median(times[1:]), "first_seconds": times[0]}
        if self.cuda:
            peak = torch.cuda.max_memory_allocated() - before
            row["peak_mib"] = peak // 2**20
        return row


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
    if gpu.cuda:
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


def lengths_of(rows: int, ragged: bool, longest: int) -> list[int]:
    """Return how many positions each row's cache holds, the same in all if not ragged.

    Ragged ones are spread evenly below the longest around nearly the same mean.
    """
    mean = min(MEAN_LENGTH, longest // 2)
    if not ragged:
        return [mean] * rows
    draw = random.Random(0)
    lengths = [draw.randint(mean // 4, mean * 7 // 4) for _ in range(rows)]
    lengths[0] = longest
    return lengths


@torch.inference_mode()
def steps_of(gpu: Gpu, name: str, rows: int, ragged: bool) -> DecodeSteps:
    """Return steps of rows that hold so many positions, of nothing in particular."""
    longest = LONGEST - 2 * STEPS if gpu.cuda else 200
    model = gpu.model(name)
    prefilled = DynamicCache()
    first = random_ids(1).to(gpu.device)
    model.get_decoder()(first, past_key_values=prefilled, use_cache=True)
    steps = DecodeSteps(model, rows, LONGEST if gpu.cuda else 256)
    steps.cache.write(0, prefilled, [1])
    steps.cache.lengths = lengths_of(rows, ragged, longest)
    return steps


@torch.inference_mode()
def decode(
    gpu: Gpu, name: str, rows: int, *, ragged: bool = True, eager: bool = False
) -> dict:
    """Return tokens per second of decode steps, waits of one, and its longest kernels.

    `first_seconds` are mostly those of the capture.
    """
    steps = steps_of(gpu, name, rows, ragged)
    steps.eager = eager
    tokens = [1] * rows
    draws = [torch.Generator() for _ in range(rows)]

    def step():
        return choose(steps(tokens), Sampling(1), draws)

    row = gpu.timed(step, STEPS)
    row["tokens_per_second"] = rows / row["seconds"]
    row["waits"] = waits_of(gpu, step)
    row["as_graphs"] = steps.as_graphs
    row["graphs"] = len(steps.graphs)
    return row | kernels_of(gpu, step)


def waits_of(gpu: Gpu, step: Callable[[], object]) -> int:
    """Return how often the host waits for the device in a step."""
    with warnings.catch_warnings(record=True) as waits:
        warnings.simplefilter("always")
        if gpu.cuda:
            torch.cuda.set_sync_debug_mode("warn")
        step()
        if gpu.cuda:
            torch.cuda.set_sync_debug_mode("default")
    return len(waits)


def kernels_of(gpu: Gpu, step: Callable[[], object]) -> dict:
    """Return how many kernels a step has, their milliseconds, and the longest six."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if gpu.cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        step()
    spent = collections.Counter()
    count = 0
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            spent[event.name[:40]] += event.device_time_total / 1000
            count += 1
    longest = {name: round(time, 3) for name, time in spent.most_common(6)}
    return {"kernels": count, "kernel_ms": spent.total(), "longest_ms": longest}


@torch.inference_mode()
def new_shapes(gpu: Gpu, cudnn: bool) -> dict:
    """Return the seconds of an attention whose shape is new, as of growing rows.

    What cuDNN takes for its plan shows with `cudnn`; it is off after a model is loaded.
    """
    rows, heads, keys, width = (64, 28, 4, 128) if gpu.cuda else (2, 4, 2, 16)
    dtype = torch.bfloat16 if gpu.cuda else torch.float32
    place = {"device": gpu.device, "dtype": dtype}
    query = torch.randn(rows, keys, heads // keys, width, **place)
    cached = torch.randn(rows, keys, 1024, width, **place)
    lengths = iter(range(128, 1024, 8))

    def attend():
        length = next(lengths)
        mask = torch.zeros(rows, 1, 1, length, **place)
        part = cached[:, :, :length]
        torch.nn.functional.scaled_dot_product_attention(
            query, part, part, attn_mask=mask
        )

    torch.backends.cuda.enable_cudnn_sdp(cudnn)
    try:
        return gpu.timed(attend, STEPS)
    finally:
        torch.backends.cuda.enable_cudnn_sdp(False)


@torch.inference_mode()
def step_attention(gpu: Gpu, rows: int) -> dict:
    """Return the seconds of a step's attention in one layer, of ragged rows.

    `masked` is today's, which reads every row up to the longest; `ragged` stops at each
    row's length on the device. `apart` is their largest difference.
    """
    keys, groups, width, capacity = (
        (4, 7, 128, LONGEST) if gpu.cuda else (2, 2, 16, 256)
    )
    dtype = torch.bfloat16 if gpu.cuda else torch.float32
    place = {"device": gpu.device, "dtype": dtype}
    query = torch.randn(rows, keys, groups, width, **place)
    cached = torch.randn(2, rows, keys, capacity, width, **place)
    lengths = torch.tensor(lengths_of(rows, True, capacity), device=gpu.device)
    hidden = torch.arange(capacity, device=gpu.device) >= lengths[:, None, None, None]
    mask = torch.zeros(hidden.shape, **place).masked_fill_(hidden, -torch.inf)

    def masked():
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(query, *cached, attn_mask=mask)

    row = {"masked_seconds": gpu.timed(masked)["seconds"]}
    if gpu.cuda:  # where alone the other has a kernel
        ragged = functools.partial(ragged_attention, query, cached, lengths)
        row["ragged_seconds"] = gpu.timed(ragged)["seconds"]
        row["apart"] = float((masked().flatten(1, 2) - ragged()).abs().max())
    return row


def ragged_attention(
    query: torch.Tensor, cached: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Return the heads' outputs (rows, H, D), each row to its own length.

    query: (rows, K, groups, D); cached: keys and values (2, rows, K, capacity, D).
    """
    from torch.nn.attention.varlen import varlen_attn

    rows = len(query)
    whole = {"dtype": torch.int32, "device": query.device}
    return varlen_attn(
        query.flatten(1, 2),
        *cached.transpose(2, 3),
        cu_seq_q=torch.arange(rows + 1, **whole),
        cu_seq_k=None,
        max_q=1,
        max_k=cached.shape[3],
        enable_gqa=True,
        seqused_k=lengths.to(torch.int32),
        block_table=torch.arange(rows, **whole)[:, None],  # a slot is a page
    )


@torch.inference_mode()
def norms(gpu: Gpu, rows: int) -> dict:
    """Return the seconds of a model's norm in a step, as it is and as one kernel."""
    norm = gpu.model(QWEN).get_decoder().norm
    width = norm.weight.shape[0]
    x = torch.randn(rows, 1, width, device=gpu.device, dtype=norm.weight.dtype)

    def fused():
        return torch.nn.functional.rms_norm(
            x, (width,), norm.weight, norm.variance_epsilon
        )

    row = {"as_it_is_seconds": gpu.timed(lambda: norm(x))["seconds"]}
    row["fused_seconds"] = gpu.timed(fused)["seconds"]
    row["apart"] = float((norm(x) - fused()).abs().max())
    return row


@torch.inference_mode()
def draw(gpu: Gpu, rows: int) -> dict:
    """Return the seconds of a step's choice: greedy, of few tokens, and of all."""
    vocabulary = SHAPES[QWEN][-1] if gpu.cuda else TINY[-1]
    logits = 5 * torch.randn(rows, vocabulary, device=gpu.device)
    generators = [torch.Generator() for _ in range(rows)]
    greedy = Sampling(1)
    nucleus = Sampling(1, temperature=0.7, top_p=0.95)
    row = {
        "greedy": gpu.timed(lambda: choose(logits, greedy, generators)),
        "of_few": gpu.timed(lambda: choose(logits, nucleus, generators)),
    }
    few = drawing.NUCLEUS
    drawing.NUCLEUS = 1  # never enough, so that all are sorted behind it
    try:
        row["of_all"] = gpu.timed(lambda: choose(logits, nucleus, generators))
    finally:
        drawing.NUCLEUS = few
    return {f"{way}_seconds": timing["seconds"] for way, timing in row.items()}


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
    blocks = function.GPU_CAUSAL_BLOCKS
    if way == "all, one block":
        function.GPU_CAUSAL_BLOCKS = 1
    try:
        layers = [1] if way == "layer 1" else None
        return gpu.timed(lambda: received_attention(model, ids, layers))
    finally:
        function.GPU_CAUSAL_BLOCKS = blocks


@torch.inference_mode()
def products(gpu: Gpu) -> dict:
    """Return the seconds of scaled scores in float32, scaled after and in the product.

    Whether the second way is there at all is what a CPU cannot tell.
    """
    heads, tokens = (28, 4096) if gpu.cuda else (4, 128)
    dtype = torch.bfloat16 if gpu.cuda else torch.float32
    query = torch.randn(heads, tokens, 128, device=gpu.device, dtype=dtype)
    keys = query.transpose(1, 2)
    wide = {"out_dtype": torch.float32} if gpu.cuda else {}

    def after():
        return torch.bmm(query, keys, **wide).mul_(0.0884)

    def within():
        zero = torch.zeros(heads, tokens, tokens, device=gpu.device)
        return torch.baddbmm(zero, query, keys, beta=0, alpha=0.0884, **wide)

    row = {"after_seconds": gpu.timed(after)["seconds"]}
    row["within_seconds"] = gpu.timed(within)["seconds"]
    row["apart"] = float((after() - within()).abs().max())
    return row


def order(gpu: Gpu, elements: int) -> dict:
    """Return seconds of a sort, which gives all order statistics, and of two others."""
    values = torch.randn(elements, device=gpu.device)
    ways = {
        "sort": values.sort,
        "kthvalue": lambda: values.kthvalue(elements // 2),
        "topk": lambda: values.topk(99),
    }
    return {f"{way}_seconds": gpu.timed(run)["seconds"] for way, run in ways.items()}


def move(gpu: Gpu, mode: str, tokens: int) -> dict:
    """Return seconds of ARM's move over what a batch of the 7B has in one layer."""
    rows, width = 2, TINY[1]
    if gpu.cuda:
        rows = 32 if tokens > 1 else 256
        width = SHAPES[QWEN][2]
    x = torch.randn(rows, tokens, width, device=gpu.device)
    x = torch.nn.functional.silu(x)
    timing = gpu.timed(lambda: redistribute(x, mode=mode, statistics="sequence"))
    return {"rows": rows} | timing


def measuring(gpu: Gpu, measure: Callable) -> dict:
    """Return seconds a problem of a measurement in all layers under two conditions."""
    loaded = gpu.loaded(QWEN)
    problems = load_problems("embedded", limit=64 if gpu.cuda else 2, seed=0)
    prompts = prompts_of(loaded, problems, ["mless"])
    row = gpu.timed(lambda: list(measure(loaded, prompts)), 1)
    row["problems"] = len(problems)
    row["seconds_per_problem"] = row["seconds"] / len(problems)
    return row


def answers(gpu: Gpu, name: str, arm: Arm | None, rows: int) -> dict:
    """Return tokens per second of the engine on prompts of 64 to 319 tokens.

    Prefills are counted; captures, which stay with the engine, are not.
    """
    engine = Engine(gpu.loaded(name), rows)
    engine.stops = set()
    new_tokens = 128 if gpu.cuda else 4
    requests = [
        Request(str(n), random_ids(64 + n % 256)[0].tolist(), n, arm)
        for n in range(2 * rows)
    ]
    sampling = Sampling(new_tokens)
    row = gpu.timed(lambda: list(engine.complete(requests, sampling)), 1)
    tokens = new_tokens * len(requests)
    return row | {"tokens_per_second": tokens / row["seconds"]}


def likelihood(gpu: Gpu, name: str, dtype: torch.dtype) -> dict:
    """Return tokens per second of scoring, where a whole solution's logits are made."""
    model = gpu.model(name, dtype)
    length = 512 if gpu.cuda else 40
    rows = [random_ids(length)[0].tolist() for _ in range(4)]
    places = [range(length // 4, length - 1)] * len(rows)
    row = gpu.timed(lambda: prefill(model, rows, places))
    return row | {"tokens_per_second": length * len(rows) / row["seconds"]}
