"""What a run of a profile computes: prompts by part and model, and what is stored."""

from collections.abc import Collection, Iterator
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import NamedTuple

import pandas as pd

from lib.evaluation.of_profile import is_stored, stored_rows
from lib.evaluation.pass_rates import is_divided
from lib.measurement.datasets import MeasuredSteps, of_repository
from lib.measurement.variables import STEPS, PlannedStep
from lib.models.names import resolve
from lib.profiles import HALVES, Accuracy, Likelihood, Profile
from lib.prompts.problems import Problem, load_problems

TOKEN_CHARACTERS = 2.7  # of a token
PROMPT_TOKENS = 40  # beside the problem and what is inserted
SHARE_WRITTEN = 0.5  # of the tokens that an answer may have
ALL_LAYERS = inf  # as many layers as a model has, with its head


class Task(NamedTuple):
    """What is computed on one model for one purpose."""

    part: str  # as a run asks for it
    model: str  # its spec
    prompts: int
    stored: int  # of these prompts
    tokens: float  # of a prompt with its answer
    dtype: str
    layers: float = ALL_LAYERS  # that are read
    steps: float = 0  # in which what is left of the answers is written, batch by batch

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
    for part, section in profile.parts.items():
        rows = stored_rows(profile, part)
        for spec in section.models:
            if is_stored(profile, part):
                # However little it is: nothing is added to it.
                own = int((rows["model"] == resolve(spec).name).sum())
                yield Task(part, spec, own, own, 0, section.dtype)
            else:
                yield _asked(profile, part, spec, rows, fresh)


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
    layers = sum(prompts(step) * step.depth(attention.layers) for step in missing)
    share = layers / (left * attention.layers)
    yield Task(
        part,
        spec,
        prompts=every,
        stored=every - left,
        tokens=share * _prompt_tokens(profile, problems),
        dtype=attention.dtype,
        layers=ALL_LAYERS if deep else attention.layers,
    )


def _asked(
    profile: Profile, part: str, spec: str, rows: pd.DataFrame, fresh: bool
) -> Task:
    """Return what a part of the answers or scores asks of a model.

    rows: those of the part that are stored.
    """
    section = profile.parts[part]
    levels = section.levels if isinstance(section, Accuracy) else None
    problems = load_problems(section.problems, section.limit, profile.seed, levels)
    conditions = section.conditions
    if isinstance(section, Likelihood):
        longest = section.max_solution_tokens * TOKEN_CHARACTERS
        problems = [item for item in problems if len(item.solution) <= longest]
        conditions = [*conditions, *section.at_once]
        tokens = _mean_tokens([problem.solution for problem in problems])
        texts = len(problems)
    else:
        tokens = section.max_new_tokens * SHARE_WRITTEN
        texts = len(problems) * section.samples
    if part == "draw_scores":
        texts *= len(HALVES)
        if not fresh:
            # Which of them need no score is known once they are drawn.
            drawn = _of_these(stored_rows(profile, "draws"), spec, HALVES, problems)
            texts -= int((~is_divided(drawn)).sum())
    stored = 0 if fresh else len(_of_these(rows, spec, conditions, problems))
    task = Task(
        part,
        spec,
        prompts=texts * len(conditions),
        stored=stored,
        tokens=tokens + _prompt_tokens(profile, problems),
        dtype=section.dtype,
    )
    if isinstance(section, Accuracy):
        task = task._replace(steps=_steps(section, task.left))
    return task


def _steps(accuracy: Accuracy, answers: int) -> float:
    """Return in how many steps so many answers are written: a row that ends makes room
    for the next one, and the longest goes on to the limit.
    """
    batches = answers / (accuracy.batch_size or max(1, answers))
    return accuracy.max_new_tokens * max(1, SHARE_WRITTEN * batches)


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


def _prompt_tokens(profile: Profile, problems: list[Problem]) -> float:
    """Return the mean tokens of a prompt."""
    of_problem = _mean_tokens([problem.problem for problem in problems])
    return PROMPT_TOKENS + of_problem + profile.filler.length


def _mean_tokens(texts: list[str]) -> float:
    """Return the mean tokens of texts, from characters: that needs no tokenizer."""
    characters = sum(len(text) for text in texts)
    return characters / TOKEN_CHARACTERS / max(1, len(texts))
