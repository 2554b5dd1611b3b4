"""What is measured of single kernels on a GPU.

Each function returns a row's numbers.
"""

import torch
from gpu_decode import LONGEST, STEPS, lengths_of
from gpu_device import QWEN, Gpu, setting

from lib.arm.moving import redistribute
from lib.attention import steps
from lib.attention.steps import Step
from lib.generation import next_token, norms
from lib.generation.next_token import choose
from lib.generation.requests import Sampling


@torch.inference_mode()
def new_shapes(gpu: Gpu, cudnn: bool) -> dict:
    """Return the seconds of an attention whose shape is new, as of growing rows.

    What cuDNN takes for its plan shows with `cudnn`; it is off after a model is loaded.
    """
    rows, heads, keys, width = (64, 28, 4, 128) if gpu.large else (2, 4, 2, 16)
    dtype = torch.bfloat16 if gpu.large else torch.float32
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
    heads, keys, width, capacity = (
        (28, 4, 128, LONGEST) if gpu.large else (4, 2, 16, 256)
    )
    dtype = torch.bfloat16 if gpu.large else torch.float32
    place = {"device": gpu.device, "dtype": dtype}
    query = torch.randn(rows, heads, 1, width, **place)
    cached = torch.randn(2, rows, capacity, keys, width, **place).transpose(2, 3)
    lengths = torch.tensor(lengths_of(rows, True, capacity), device=gpu.device)
    masked = Step(lengths - 1)
    ragged = Step(lengths - 1, capacity)

    def attend(step: Step) -> torch.Tensor:
        return step.attend(query, *cached, window=None, scaling=width**-0.5)

    row = {"masked_seconds": gpu.timed(lambda: attend(masked))["seconds"]}
    with setting(steps, RAGGED=True):
        has_kernel = steps.stops_at_lengths(gpu.model(QWEN))
    if has_kernel:
        row["ragged_seconds"] = gpu.timed(lambda: attend(ragged))["seconds"]
        row["apart"] = float((attend(masked) - attend(ragged)).abs().max())
    return row


@torch.inference_mode()
def norm(gpu: Gpu, rows: int) -> dict:
    """Return the seconds of a model's norm in a step, as it is and as one kernel."""
    model = gpu.model(QWEN)
    usual = model.get_decoder().norm
    with setting(norms, FUSED_NORMS=True):
        fusable = norms.fusable_norms(model)
    x = torch.randn(rows, 1, len(usual.weight), device=gpu.device).to(usual.weight)
    before = usual(x)
    row = {"as_it_is_seconds": gpu.timed(lambda: usual(x))["seconds"]}
    with norms.fused(fusable):
        row["fused_seconds"] = gpu.timed(lambda: usual(x))["seconds"]
        row["apart"] = float((before - usual(x)).abs().max())
    return row | {"fusable": len(fusable)}


@torch.inference_mode()
def draw(gpu: Gpu, rows: int) -> dict:
    """Return the seconds of a step's choice: greedy, of few tokens, and of all."""
    vocabulary = gpu.config(QWEN)["vocab_size"]
    logits = 5 * torch.randn(rows, vocabulary, device=gpu.device)
    generators = [torch.Generator() for _ in range(rows)]
    greedy = Sampling(1)
    nucleus = Sampling(1, temperature=0.7, top_p=0.95)
    row = {
        "greedy": gpu.timed(lambda: choose(logits, greedy, generators)),
        "of_few": gpu.timed(lambda: choose(logits, nucleus, generators)),
    }
    # One is never enough, so that all are sorted behind it.
    with setting(next_token, NUCLEUS=1):
        row["of_all"] = gpu.timed(lambda: choose(logits, nucleus, generators))
    return {f"{way}_seconds": timing["seconds"] for way, timing in row.items()}


@torch.inference_mode()
def products(gpu: Gpu) -> dict:
    """Return the seconds of scaled scores in float32, scaled after and in the product.

    Whether the second way is there at all is what a CPU cannot tell.
    """
    heads, tokens = (28, 4096) if gpu.large else (4, 128)
    dtype = torch.bfloat16 if gpu.large else torch.float32
    query = torch.randn(heads, tokens, 128, device=gpu.device, dtype=dtype)
    keys = query.transpose(1, 2)
    wide = {"out_dtype": torch.float32} if gpu.large else {}

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
    rows = 2
    if gpu.large:
        rows = 32 if tokens > 1 else 256
    width = gpu.config(QWEN)["intermediate_size"]
    x = torch.randn(rows, tokens, width, device=gpu.device)
    x = torch.nn.functional.silu(x)
    timing = gpu.timed(lambda: redistribute(x, mode=mode, statistics="sequence"))
    return {"rows": rows} | timing
