"""Plan a run, list the reasons why it would be refused, and download its weights."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import pandas as pd

from lib.errors import InputError
from lib.models.availability import source_with_config
from lib.models.hub import first_layers, snapshot
from lib.models.name_resolution import resolve
from lib.plan.model_sizes import (
    files_of,
    gigabytes,
    memory_for_models,
    memory_of,
    shape_of,
)
from lib.plan.tasks import ALL_LAYERS, Task, tasks_of
from lib.profiles import Profile

STORED_BYTES = 2  # per number on the hub: weights are published in bfloat16


class Need(NamedTuple):
    """The requirements of a run for one model; sizes are in bytes."""

    model: str  # as the profile writes it
    layers: float  # number of first layers that are read; infinity: the complete model
    to_fetch: float  # size of the weights to download
    here: float  # size of the weights on this disk
    memory: float  # of the part that needs most
    gated: bool  # whether a licence has to be accepted on the hub


class Plan(NamedTuple):
    """The computations and requirements of a run, and the free memory."""

    tasks: list[Task]
    needs: list[Need]  # only of models with remaining prompts
    free: int  # free memory in bytes, of the GPU if there is one

    @property
    def refusals(self) -> list[str]:
        """The reasons why this machine cannot run it, by model; empty if it can."""
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

    fresh: whether the run starts over, so that only the repository's answers and scores
    count as stored. parts: the names of the parts that it computes; empty: all. Raises
    InputError for a model that is not available.
    """
    all_tasks = tasks_of(profile, fresh)
    tasks = [task for task in all_tasks if not parts or task.part in parts]
    left: dict[str, list[Task]] = {}
    for task in tasks:
        if task.left:
            left.setdefault(task.model, []).append(task)

    needs = []
    for spec, of_model in left.items():
        source = source_with_config(spec)
        layers = max(task.layers for task in of_model)
        missing, here = files_of(source, layers)
        shape = shape_of(source)
        if layers != ALL_LAYERS:
            missing = min(missing, STORED_BYTES * shape.parameters(layers))
        memory = max(memory_of(task, shape) for task in of_model)
        needs.append(Need(spec, layers, missing, here, memory, source.gated))
    return Plan(tasks, needs, memory_for_models())


def require_memory(plan: Plan) -> None:
    """Raise InputError if this machine has too little memory for a model of the run."""
    if plan.refusals:
        raise InputError("; ".join(plan.refusals))


def downloads(plan: Plan) -> Iterator[str]:
    """Download the weights that a run lacks, model by model, and yield a line after
    each; nothing is downloaded before the first line is requested.

    A model is downloaded completely if a task needs all layers, otherwise only the byte
    ranges of its first layers. Raises InputError if a download fails.
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
    """Return a plan as text: refusals, models, tasks, free memory and `summary`."""
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
    """Return in one line how much a run downloads and how many prompts it computes."""
    prompts = sum(task.left for task in plan.tasks)
    if not prompts:
        return "Plan: nothing to fetch or compute, everything is stored"
    size = sum(need.to_fetch for need in plan.needs)
    to_fetch = gigabytes(size) if size else "nothing"
    return f"Plan: {to_fetch} to fetch, {prompts:,} prompts"
