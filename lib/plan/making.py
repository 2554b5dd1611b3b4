"""A plan of a run, what it would be refused for, and the fetching of its weights."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import pandas as pd

from lib.errors import InputError
from lib.models.card import cards
from lib.models.hub import first_layers, snapshot
from lib.models.memory import free_memory
from lib.models.names import known_models, resolve
from lib.plan.sizes import files_of, shape_of
from lib.plan.tasks import Task, tasks_of
from lib.profiles import Profile

GB = 1e9
HOUR = 3600
NOTEBOOK_SECONDS = 15  # that a notebook takes to draw
STORED_BYTES = 2  # of a number on the hub: weights are published in bfloat16


class Need(NamedTuple):
    """What a run needs of a model; sizes are in bytes."""

    model: str
    layers: int | None
    to_fetch: float
    here: float
    memory: float


class Plan(NamedTuple):
    """What a run takes, and what this machine has no room for."""

    tasks: list[Task]
    seconds: list[float]  # of each task
    needs: list[Need]  # of the models that something is left to do with
    free: int  # bytes of memory
    drawing: int  # seconds that notebooks take

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
    profile: Profile,
    fresh: bool = False,
    parts: Collection[str] = (),
    notebooks: int = 0,
) -> Plan:
    """Return what a run of this profile takes.

    fresh: it starts over; parts: what it computes, all for none; notebooks: how many it
    draws. Raises InputError, for all models at once, where one cannot be had.
    """
    every = tasks_of(profile, fresh)
    tasks = [task for task in every if not parts or task.part in parts]
    left: dict[str, list[Task]] = {}
    for task in tasks:
        if task.left:
            left.setdefault(task.model, []).append(task)
    drawing = notebooks * NOTEBOOK_SECONDS
    if not left:
        return Plan(tasks, [0.0] * len(tasks), [], free_memory(), drawing)

    cards(left)  # which refuses what cannot be had
    depths = {spec: _depth(left[spec]) for spec in left}
    files = {spec: files_of(spec, depths[spec]) for spec in left}
    # With torch: a refusal does not wait for it.
    from lib.plan.machine import memory_of, room_for_weights, seconds_of

    shapes = {spec: shape_of(spec, files[spec].folder) for spec in left}
    needs = []
    for spec, layers in depths.items():
        missing, here, _ = files[spec]
        if layers is not None:
            missing = min(missing, STORED_BYTES * shapes[spec].parameters(layers))
        memory = max(memory_of(task, shapes[spec]) for task in left[spec])
        needs.append(Need(spec, layers, missing, here, memory))
    seconds = [
        seconds_of(task, shapes[task.model]) if task.left else 0.0 for task in tasks
    ]
    return Plan(tasks, seconds, needs, room_for_weights(), drawing)


def _depth(tasks: list[Task]) -> int | None:
    """Return how many first layers of a model its tasks need, None for all."""
    depths = [task.layers for task in tasks if task.layers is not None]
    return max(depths) if len(depths) == len(tasks) else None


def refuse(reasons: Collection[str]) -> None:
    """Raise InputError for all reasons at once, if there are any."""
    if reasons:
        raise InputError("; ".join(reasons))


def fetch(plan: Plan) -> Iterator[str]:
    """Fetch what a run lacks, and yield a line for each model: whole where any task
    needs it whole, else the byte ranges of its first layers.
    """
    for need in plan.needs:
        if not need.to_fetch:
            continue
        source = resolve(need.model)
        if need.layers is None:
            folder = snapshot(source.repo, source.revision)
        else:
            folder = first_layers(source.repo, need.layers, source.revision)
        yield f"{source.name}: {gigabytes(need.to_fetch)} fetched, {folder}"


def as_text(plan: Plan) -> str:
    """Return a plan in full: refusals first, and at last its `summary`."""
    blocks = [f"refused: {reason}" for reason in plan.refusals]
    if plan.needs:
        models = pd.DataFrame(plan.needs)
        for column in ("to_fetch", "here", "memory"):
            models[column] = models[column].map(gigabytes)
        models["layers"] = models["layers"].astype(object).fillna("all")
        models["gated"] = ["yes" if _is_gated(spec) else "no" for spec in models.model]
        blocks.append(models.to_string(index=False))
    tasks = pd.DataFrame(plan.tasks, columns=Task._fields)
    tasks["time"] = [duration(seconds) if seconds else "" for seconds in plan.seconds]
    shown = ["part", "model", "prompts", "stored", "time"]
    blocks.append(tasks[shown].to_string(index=False))
    blocks.append(f"free here: {gigabytes(plan.free)} of memory")
    return "\n\n".join([*blocks, summary(plan)])


def _is_gated(spec: str) -> bool:
    """Say whether a model's licence has to be accepted on the hub first."""
    return known_models().get(spec, {}).get("gated", False)


def summary(plan: Plan) -> str:
    """Return what a run takes, in one line."""
    prompts = sum(task.left for task in plan.tasks)
    if not prompts:
        return "Plan: nothing to fetch or compute, everything is stored"
    to_fetch = gigabytes(sum(need.to_fetch for need in plan.needs))
    time_taken = duration(plan.drawing + sum(plan.seconds))
    return (
        f"Plan: {to_fetch} to fetch, {prompts:,} prompts, about {time_taken} on this"
        " machine"
    )


def duration(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds >= 2 * HOUR:
        return f"{seconds / HOUR:.1f} hours"
    minutes = max(1, round(seconds / 60))
    return f"{minutes} minute{'s' if minutes > 1 else ''}"


def gigabytes(size: float) -> str:
    """Return a size in 10^9 bytes."""
    return f"{size / GB:.1f} GB"
