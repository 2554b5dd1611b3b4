"""The tasks of attention and activations, whose prompts are read and not answered."""

import json
from collections.abc import Iterator, Sequence

from lib.errors import InputError
from lib.measurement.plan import STEPS, TRAINED, PlannedStep
from lib.measurement.store import load_measured
from lib.plan.speed import Workload
from lib.plan.task import Task, TaskInputs, operations
from lib.plan.tokens import mean_prompt_tokens
from lib.profiles import Profile
from lib.prompts.problems import Problem

# How often a measure reads a prompt under a condition, where it is not once.
FORWARDS = {"causes": 4}


def measuring_tasks(inputs: TaskInputs, part: str) -> Iterator[Task]:
    """Yield what a part of the measurements asks of each model.

    One task is in the first layers; another goes through all of them where the profile
    asks for a map.
    """
    attention = inputs.profile.attention
    problems = inputs.sample(attention.problems, attention.limit)
    of_map = problems[: attention.map_problems or 0]
    for spec in attention.models:
        done = set() if inputs.fresh else _done(inputs.profile, spec)
        for deep, chosen in ((False, problems), (True, of_map)):
            planned = [step for step in STEPS if (step.part, step.deep) == (part, deep)]
            if planned and chosen:
                yield _measured_task(inputs, spec, planned, chosen, done)


def _measured_task(
    inputs: TaskInputs,
    spec: str,
    planned: Sequence[PlannedStep],
    problems: Sequence[Problem],
    done: set[str],
) -> Task:
    """Return the planned steps of a model as one: each prompt of each is read once."""
    profile = inputs.profile
    layers = None if planned[0].deep else profile.attention.layers
    chat = profile.attention.format == "chat"
    length = mean_prompt_tokens(problems, chat) + profile.filler.length
    prompts = stored = 0
    work = 0.0
    for step in planned:
        count = 1 if step.measure == "tokens" else len(problems)
        labels = {step.label(condition) for condition in step.conditions}
        left = count * len(labels - done)
        prompts += count * len(labels)
        stored += count * len(labels & done)
        passed = inputs.multiplied(spec, _layers_passed(step, layers))
        work += operations(left * length * FORWARDS.get(step.measure, 1), passed)
    return Task(
        planned[0].part,
        spec,
        prompts,
        stored,
        int(prompts * length),
        Workload(read=work),
        layers,
        head=False,
        dtype=profile.attention.dtype,
    )


def _layers_passed(step: PlannedStep, layers: int | None) -> int | None:
    """Return how many layers a step goes through: some look at the first alone."""
    only_first = step.measure == "causes" or (
        step.measure == "activations" and step.network != TRAINED
    )
    return 1 if only_first else layers


def _done(profile: Profile, spec: str) -> set[str]:
    """Return the labels of what is measured already of a model."""
    try:
        return set(json.loads(load_measured(profile, spec).done))
    except InputError:  # what the repository has was measured under other settings
        return set()
