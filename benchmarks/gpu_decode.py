"""What is measured of the steps of answers on a GPU.

Each function returns a row's numbers.
"""

import collections
import random
import warnings
from collections.abc import Callable

import torch
from gpu_device import QWEN, Gpu, setting
from measuring import random_ids
from transformers import DynamicCache

from lib.arm.settings import Arm
from lib.attention import steps as attention_steps
from lib.generation import norms
from lib.generation.next_token import choose, on_device
from lib.generation.requests import Request, Sampling
from lib.generation.step import DecodeSteps
from lib.generation.transformers import Engine, _Batch, _Row

STEPS = 20  # of a decode row, that are timed
IN_A_ROW = 5  # of them, before the device is waited for to look at the clock
MEAN_LENGTH = 900  # of the answers at work in a step, in tokens with their prompts
LONGEST = 2304


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
def steps_of(
    gpu: Gpu, name: str, rows: int, *, ragged: bool = True, kind: type = DecodeSteps
) -> DecodeSteps:
    """Return steps of rows that hold so many positions, of nothing in particular."""
    longest = LONGEST - 2 * STEPS if gpu.large else 200
    model = gpu.model(name)
    prefilled = DynamicCache()
    first = random_ids(1).to(gpu.device)
    model.get_decoder()(first, past_key_values=prefilled, use_cache=True)
    steps = kind(model, rows, LONGEST if gpu.large else 256)
    steps.cache.write(0, prefilled, [1])
    steps.cache.lengths = lengths_of(rows, ragged, longest)
    return steps


@torch.inference_mode()
def decode(
    gpu: Gpu, name: str, rows: int, *, ragged: bool = True, eager: bool = False
) -> dict:
    """Return tokens per second of decode steps, waits of one, and its longest kernels.

    `first_seconds` are those of the capture and of the first few steps.
    """
    steps = steps_of(gpu, name, rows, ragged=ragged)
    steps.eager = eager
    tokens = [1] * rows
    draws = [torch.Generator() for _ in range(rows)]
    return _of_step(gpu, steps, lambda: choose(steps(tokens), Sampling(1), draws))


def decode_changed(
    gpu: Gpu, name: str, rows: int, *, to_lengths: bool = False, fused: bool = False
) -> dict:
    """Return the same with what steps do where a line switches it on.

    That is: attention that stops at each row's length, and norms of one kernel.
    """
    with setting(attention_steps, RAGGED=to_lengths), setting(norms, FUSED_NORMS=fused):
        return decode(gpu, name, rows)


class FedBackSteps(DecodeSteps):
    """Steps that take tokens where they were chosen, on the device."""

    def _inputs(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.tensor(self.cache.lengths[: len(tokens)])
        positions = on_device(positions, self.inputs.device)
        return torch.stack((tokens, positions), 1)


@torch.inference_mode()
def decode_fed_back(gpu: Gpu, name: str, rows: int) -> dict:
    """Return the same of steps whose tokens the host reads one step late."""
    steps = steps_of(gpu, name, rows, kind=FedBackSteps)
    chosen = torch.ones(rows, dtype=torch.long, device=gpu.device)
    read = torch.empty(rows, dtype=torch.long)
    if gpu.cuda:
        read = read.pin_memory()

    def step() -> list[int]:
        """Start a step; return the tokens that went into it."""
        nonlocal chosen
        read.copy_(chosen, non_blocking=True)
        is_read = torch.cuda.Event() if gpu.cuda else None
        if is_read:
            is_read.record()
        chosen = steps(chosen).argmax(-1)
        if is_read:
            is_read.synchronize()  # of the step before, while this one goes on
        return read.tolist()

    return _of_step(gpu, steps, step)


def _of_step(gpu: Gpu, steps: DecodeSteps, step: Callable[[], list[int]]) -> dict:
    """Return what a row says of steps that `step` takes one of."""
    row = gpu.timed(lambda: [step() for _ in range(IN_A_ROW)], STEPS // IN_A_ROW)
    row["seconds"] /= IN_A_ROW
    row["tokens_per_second"] = steps.cache.slots / row["seconds"]
    row["waits"] = waits_of(gpu, step)
    row["as_graphs"] = steps.as_graphs
    row["graphs"] = len(steps.graphs)
    row["to_lengths"] = steps.ragged
    row["fused_norms"] = len(steps.norms)
    return row | kernels_of(gpu, step)


@torch.inference_mode()
def captures(gpu: Gpu, name: str, rows: int) -> dict:
    """Return the seconds and the memory of the graphs of four numbers of rows."""
    steps = steps_of(gpu, name, rows)
    counts = iter(range(rows, 0, -max(1, rows // 8)))
    row = gpu.timed(lambda: steps([1] * next(counts)), 3)
    return row | {"graphs": len(steps.graphs)}


@torch.inference_mode()
def bookkeeping(gpu: Gpu, rows: int) -> dict:
    """Return the host's seconds of a step beside its forward.

    Tokens that are read one step late would hide them behind the next forward.
    """
    engine = Engine(gpu.loaded(QWEN), rows)
    engine.stops = set()
    batch = _Batch(engine, None, rows, Sampling(10**6), [], None)
    batch.rows = [
        _Row(Request(str(row), [1]), engine.model.device) for row in range(rows)
    ]
    logits = torch.randn(rows, 8, device=gpu.device)

    def advance() -> list[int]:
        list(batch._advance(range(rows), logits))
        return [row.feed.pop(0) for row in batch.rows]

    return gpu.timed(advance)


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


def answers(gpu: Gpu, name: str, arm: Arm | None, rows: int) -> dict:
    """Return tokens per second of the engine on prompts of 64 to 319 tokens.

    Prefills are counted; captures, which stay with the engine, are not.
    """
    engine = Engine(gpu.loaded(name), rows)
    engine.stops = set()
    new_tokens = 128 if gpu.large else 4
    requests = [
        Request(str(n), random_ids(64 + n % 256)[0].tolist(), n, arm)
        for n in range(2 * rows)
    ]
    sampling = Sampling(new_tokens)
    row = gpu.timed(lambda: list(engine.complete(requests, sampling)), 1)
    tokens = new_tokens * len(requests)
    return row | {"tokens_per_second": tokens / row["seconds"]}
