"""The memory and the time that a task takes on this machine."""

import functools
import time
from typing import Any

import torch

from lib.models.loading import placement
from lib.models.memory import SHARE_OF_MEMORY, free_memory
from lib.plan.sizes import Shape
from lib.plan.tasks import Task

# Parts that score: what their models lack of memory stays on disk.
SCORING = ("likelihood", "draw_scores")
WORKING_MEMORY = 2.5e9  # bytes of Python, logits, and answers that grow at once
# Seconds that go by for each second of matrix products.
OVERHEAD = 1.4
# The product that is timed is one of a 1.5B's MLP: rows x width times width x inner.
ROWS, WIDTH, INNER = 128, 1536, 8960
TRIAL_SECONDS = 2


def room_for_weights() -> int:
    """Return how many bytes are free where weights lie."""
    if torch.cuda.is_available():
        return torch.cuda.mem_get_info()[0]
    return free_memory()


def memory_of(task: Task, shape: Shape) -> float:
    """Return how many bytes of memory a task needs.

    What a model that scores lacks of it stays on disk.
    """
    _, dtype = placement("auto", task.dtype)
    needed = shape.parameters(task.layers) * getattr(torch, dtype).itemsize
    if task.part in SCORING:
        needed = min(needed, SHARE_OF_MEMORY * room_for_weights())
    return needed + WORKING_MEMORY


def seconds_of(task: Task, shape: Shape) -> float:
    """Return how long it takes to compute what is left of a task."""
    operations = 2 * task.left * task.tokens * shape.multiplied(task.layers)
    return OVERHEAD * operations / _speed(*placement("auto", task.dtype))


@functools.cache
def _speed(device: str, dtype: str) -> float:
    """Return how many operations a second products in this dtype do.

    On a CPU the processor's time counts, so that what else runs meanwhile does not.
    """
    form: Any = {"device": device, "dtype": getattr(torch, dtype)}
    weights = torch.ones(INNER, WIDTH, **form)
    inputs = torch.ones(ROWS, WIDTH, **form)
    clock = time.process_time if device == "cpu" else time.monotonic
    threads = torch.get_num_threads() if device == "cpu" else 1
    products = 0
    begun = clock()
    while clock() < begun + TRIAL_SECONDS * threads:
        # Reading a number waits for a GPU to be done.
        torch.nn.functional.linear(inputs, weights)[0, 0].item()
        products += 1
    return products * 2 * ROWS * WIDTH * INNER * threads / (clock() - begun)
