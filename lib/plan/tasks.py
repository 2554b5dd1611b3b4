"""What a run of a profile computes: prompts by part and model, and what is stored."""

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import NamedTuple

import pandas as pd

from lib.evaluation.parts import Part, parts_of_profile
from lib.evaluation.pass_rates import is_divided
from lib.measurement.datasets import MeasuredSteps, of_repository
from lib.measurement.variables import STEPS, PlannedStep
from lib.models.names import resolve
from lib.profiles import HALVES, Accuracy, Likelihood, Profile
from lib.prompts.problems import Problem, load_problems

TOKEN_CHARACTERS = 2.7  # of a token
ALL_LAYERS = inf  # as many layers as a model has, with its head


class Task(NamedTuple):
    """What is computed on one model for one purpose."""

    part: str  # as a run asks for it
    model: str  # its spec
    prompts: int
    stored: int  # of these prompts
    dtype: str
    layers: float = ALL_LAYERS  # that are read

    @property
    def left(self) -> int:
        """How many prompts are yet to be run."""
        return max(0, self.prompts - self.stored)


def tasks_of(profile: Profile, fresh: bool) -> Iterator[Task]:
    """Yield what a run computes; fresh: it starts over."""
    attention = profile.attention
    for (_, deep), group in groupby(STEPS, attrgetter("part", "deep")):
        steps = list(group)
        if attention.map_problems or not deep:
            for spec in attention.models:
                yield from _measured(profile, steps, spec, fresh)
    parts = parts_of_profile(profile)
    for part in parts.values():
        yield from _asked(part, parts, fresh)


def _measured(
    profile: Profile, steps: list[PlannedStep], spec: str, fresh: bool
) -> Iterator[Task]:
    """Yield these steps of the measurements, if anything of them is left: each reads
    its prompts once.
    """
    attention = profile.attention
    if fresh:
        missing = steps
    elif profile.has_stored(resolve(spec).name):
        of_repository(profile, spec)  # which refuses other settings, as the run does
        return
    else:
        missing = MeasuredSteps(profile, spec).missing(steps)
    if not missing:
        return
    part, _, deep, *_ = steps[0]
    problems = load_problems(attention.problems, attention.limit, profile.seed)
    if deep:
        problems = problems[: attention.map_problems]

    def prompts(step: PlannedStep) -> int:
        of_one = 1 if step.measure == "tokens" else len(problems)
        return of_one * len(step.conditions)

    every = sum(map(prompts, steps))
    left = sum(map(prompts, missing))
    yield Task(
        part,
        spec,
        prompts=every,
        stored=every - left,
        dtype=attention.dtype,
        layers=ALL_LAYERS if deep else attention.layers,
    )


def _asked(part: Part, parts: Mapping[str, Part], fresh: bool) -> Iterator[Task]:
    """Yield what a part of the answers or scores asks of each model.

    parts: all of the profile, of which `draws` says which answers need scores.
    """
    section = part.section
    if part.is_kept():
        # However few they are: nothing is added to them.
        models = part.stored()["model"]
        for spec in section.models:
            own = int((models == resolve(spec).name).sum())
            yield Task(part.name, spec, own, own, section.dtype)
        return

    levels = section.levels if isinstance(section, Accuracy) else None
    problems = load_problems(section.problems, section.limit, part.seed, levels)
    conditions = section.conditions
    if isinstance(section, Likelihood):
        longest = section.max_solution_tokens * TOKEN_CHARACTERS
        problems = [item for item in problems if len(item.solution) <= longest]
        conditions = [*conditions, *section.at_once]
    rows = part.found()
    for spec in section.models:
        texts = len(problems) * getattr(section, "samples", 1)
        if part.name == "draw_scores":
            texts *= len(HALVES)
            if not fresh:
                # Which of them need no score is known once they are drawn.
                drawn = parts["draws"].found()
                drawn = _of_these(drawn, spec, HALVES, problems)
                texts -= int((~is_divided(drawn)).sum())
        stored = 0 if fresh else len(_of_these(rows, spec, conditions, problems))
        yield Task(part.name, spec, texts * len(conditions), stored, section.dtype)


def _of_these(
    rows: pd.DataFrame,
    spec: str,
    conditions: Collection[object],
    problems: list[Problem],
) -> pd.DataFrame:
    """Return the rows that are of a model, these conditions and these problems."""
    of_model = rows["model"] == resolve(spec).name
    names = [str(condition) for condition in conditions]
    ids = [problem.id for problem in problems]
    return rows[of_model & rows["condition"].isin(names) & rows["problem_id"].isin(ids)]
