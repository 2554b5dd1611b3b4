"""Plan a run, list the reasons why it would be refused, and download its weights."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import pandas as pd

from lib.errors import InputError
from lib.models.hub import first_layers, snapshot
from lib.models.names import resolve, source_with_config
from lib.plan.model_sizes import files_of, memory_of, room_for_weights, shape_of
from lib.plan.tasks import ALL_LAYERS, Task, tasks_of
from lib.profiles import Profile

GB = 1e9
STORED_BYTES = 2  # per number on the hub: weights are published in bfloat16


class Need(NamedTuple):
    """The requirements of a run for a model; sizes are in bytes."""

    model: str
    layers: float
    to_fetch: float
    here: float
    memory: float
    gated: bool


class Plan(NamedTuple):
    """The requirements of a run, and those that this machine does not meet."""

    tasks: list[Task]
    needs: list[Need]  # of the models with remaining work
    free: int  # bytes of memory

    @property
    def refusals(self) -> list[str]:
        """Why this machine cannot run it."""
        free = gigabytes(self.free)
        return [
            f"{need.model} needs {gigabytes(need.memory)} of memory, {free} are free"
            for need in self.needs
            if need.memory > self.free
        ]


def make_plan(
    profile: Profile, fresh: bool = False, parts: Collection[str] = ()
) -> Plan:
    """Return the plan of a run of this profile.

    fresh: the run starts over. parts: what it computes; none given: all. Raises
    InputError for a model that is not available.
    """
    every = tasks_of(profile, fresh)
    tasks = [task for task in every if not parts or task.part in parts]
    left: dict[str, list[Task]] = {}
    for task in tasks:
        if task.left:
            left.setdefault(task.model, []).append(task)

    needs = []
    for spec, own in left.items():
        source = source_with_config(spec)
        layers = max(task.layers for task in own)
        missing, here = files_of(source, layers)
        shape = shape_of(source)
        if layers != ALL_LAYERS:
            missing = min(missing, STORED_BYTES * shape.parameters(layers))
        memory = max(memory_of(task, shape) for task in own)
        needs.append(Need(spec, layers, missing, here, memory, source.gated))
    return Plan(tasks, needs, room_for_weights())


def require_memory(plan: Plan) -> None:
    """Raise InputError if this machine lacks room for the run, with all reasons."""
    if plan.refusals:
        raise InputError("; ".join(plan.refusals))


def downloads(plan: Plan) -> Iterator[str]:
    """Download the weights that a run lacks, and yield a line for each model: the
    complete model if any task needs it, otherwise the byte ranges of its first layers.
    """
    for need in plan.needs:
        if not need.to_fetch:
            continue
        source = resolve(need.model)
        if need.layers == ALL_LAYERS:
            folder = snapshot(source.repo, source.revision)
        else:
            folder = first_layers(source.repo, int(need.layers), source.revision)
        yield f"{source.name}: {gigabytes(need.to_fetch)} fetched, {folder}"


def as_text(plan: Plan) -> str:
    """Return a complete plan: refusals first, and its `summary` last."""
    blocks = [f"refused: {reason}" for reason in plan.refusals]
    if plan.needs:
        models = pd.DataFrame(plan.needs)
        for column in ("to_fetch", "here", "memory"):
            models[column] = models[column].map(gigabytes)
        models["layers"] = models["layers"].map("{:.0f}".format).replace("inf", "all")
        blocks.append(models.to_string(index=False))
    tasks = pd.DataFrame(plan.tasks, columns=Task._fields)
    columns = ["part", "model", "prompts", "stored"]
    blocks.append(tasks.to_string(index=False, columns=columns))
    blocks.append(f"free here: {gigabytes(plan.free)} of memory")
    return "\n\n".join([*blocks, summary(plan)])


def summary(plan: Plan) -> str:
    """Return the requirements of a run in one line."""
    prompts = sum(task.left for task in plan.tasks)
    if not prompts:
        return "Plan: nothing to fetch or compute, everything is stored"
    to_fetch = gigabytes(sum(need.to_fetch for need in plan.needs))
    return f"Plan: {to_fetch} to fetch, {prompts:,} prompts"


def gigabytes(size: float) -> str:
    """Return a size in 10^9 bytes."""
    return f"{size / GB:.1f} GB"
