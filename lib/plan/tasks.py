"""The computations of a profile's run: prompts by part and model, and those that are
stored.
"""

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

TOKEN_CHARACTERS = 2.7  # per token
ALL_LAYERS = inf  # all layers of a model, with its head


class Task(NamedTuple):
    """The computation for one part on one model."""

    part: str  # the part's name in a run
    model: str  # its spec
    prompts: int
    stored: int  # of these prompts
    dtype: str
    layers: float = ALL_LAYERS  # number of layers that are read

    @property
    def left(self) -> int:
        """Number of prompts that remain."""
        return max(0, self.prompts - self.stored)


def tasks_of(profile: Profile, fresh: bool) -> Iterator[Task]:
    """Yield the computations of a run; fresh: the run starts over."""
    attention = profile.attention
    for (_, deep), group in groupby(STEPS, attrgetter("part", "deep")):
        steps = list(group)
        if attention.map_problems or not deep:
            for spec in attention.models:
                yield from _measured(profile, steps, spec, fresh)
    parts = parts_of_profile(profile)
    for part in parts.values():
        yield from _of_part(part, parts, fresh)


def _measured(
    profile: Profile, steps: list[PlannedStep], spec: str, fresh: bool
) -> Iterator[Task]:
    """Yield these measurement steps if any of them remains; each reads its prompts
    once.
    """
    attention = profile.attention
    if fresh:
        missing = steps
    elif profile.has_stored(resolve(spec).name):
        of_repository(
            profile, spec
        )  # raises InputError for other settings, as the run does
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


def _of_part(part: Part, parts: Mapping[str, Part], fresh: bool) -> Iterator[Task]:
    """Yield the computations of a part of the answers or scores for each model.

    parts: all parts of the profile, of which `draws` decides which answers need scores.
    """
    section = part.section
    if part.is_kept():
        # Nothing is added to stored rows, however few there are.
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
                # Which answers need a score is known only after sampling.
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
    """Return the rows of a model, these conditions and these problems."""
    of_model = rows["model"] == resolve(spec).name
    names = [str(condition) for condition in conditions]
    ids = [problem.id for problem in problems]
    return rows[of_model & rows["condition"].isin(names) & rows["problem_id"].isin(ids)]
