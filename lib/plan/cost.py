"""What one task takes on this machine: its seconds and its memory."""

from dataclasses import dataclass

from lib.models.memory import SHARE_OF_MEMORY
from lib.plan.machine import Machine
from lib.plan.speed import overhead_of, speed_of
from lib.plan.task import Task
from lib.plan.weights import Shape

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Logits, caches and what Python itself takes.
WORKING_MEMORY = 1.5e9


@dataclass(frozen=True)
class Cost:
    """What a task takes on this machine."""

    task: Task
    products: float  # seconds of matrix products alone
    seconds: float
    learned: bool  # whether the seconds are of this machine's own last runs
    streamed: bool  # whether one layer at a time is in memory
    memory: int  # bytes


def cost_of(task: Task, shape: Shape | None, machine: Machine) -> Cost:
    """Return what a task takes on this machine."""
    dtype = machine.dtype(task.dtype)
    memory = _memory(task, shape, DTYPE_BYTES[dtype])
    scored = task.kind == "likelihood"
    streamed = scored and memory > SHARE_OF_MEMORY * machine.memory
    if streamed and shape:
        memory = int((shape.embedding + 2 * shape.layer) * DTYPE_BYTES[dtype])
    products = speed_of(machine, dtype).seconds(task.work) if task.left else 0.0
    overhead, learned = overhead_of(task.kind)
    return Cost(
        task,
        products,
        products * overhead,
        learned,
        streamed,
        int(memory + WORKING_MEMORY),
    )


def _memory(task: Task, shape: Shape | None, number_bytes: int) -> int:
    """Return what a task's weights and caches take in memory."""
    if shape is None:
        return 0
    layers = task.layers
    if layers is None and not task.head:
        layers = shape.layers
    caches = min(task.batch_size, task.left) * task.longest * shape.cache
    return (shape.parameters(layers) + caches) * number_bytes
