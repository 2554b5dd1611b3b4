"""List the computations of a profile's run: how many prompts each part needs of each
model, and how many of them are stored.

    print(as_text(tasks_of(load_profile("laptop"))))
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from lib.models.sources import resolve
from lib.prompts.problems import load_problems
from reproduction.evaluation.profile_parts import (
    DrawScoresPart,
    Part,
    parts_of_profile,
)
from reproduction.evaluation.weighted_pass_rates import is_mixed
from reproduction.measurement.dataset import MEASURED_PARTS, PlannedStep
from reproduction.measurement.measurement_run import MeasuredPart, Measurements
from reproduction.profiles import (
    SAMPLING_CONDITIONS,
    Accuracy,
    Likelihood,
    Profile,
)

# Characters per token of a reference solution, to estimate which solutions are too long
# without a tokenizer.
TOKEN_CHARACTERS = 2.7


class Task(NamedTuple):
    """The computation of one part of a run with one model."""

    part: str  # name of the part, such as main or attention
    model: str  # as the profile writes it
    prompts: int  # number of prompts in total
    stored: int  # number of these prompts whose results are stored

    @property
    def left(self) -> int:
        """Number of prompts that remain to be computed."""
        return max(0, self.prompts - self.stored)


def tasks_of(
    profile: Profile, names: Collection[str] = (), stored: bool = True
) -> list[Task]:
    """Return the computations of a run.

    names: of the parts that it computes; empty: all. stored: False to measure again
    what the repository has.
    """
    tasks = [*_measured(profile, stored)]
    for part in parts_of_profile(profile).values():
        tasks += _of_part(part)
    return [task for task in tasks if not names or task.part in names]


def _measured(profile: Profile, stored: bool) -> Iterator[Task]:
    """Yield the measurements that have to be computed."""
    for name in MEASURED_PARTS:
        part = MeasuredPart(profile, name, stored=stored)
        for model in part.models:
            if missing := model.missing(part.steps):
                total = _prompts_of(model, part.steps)
                stored_prompts = total - _prompts_of(model, missing)
                yield Task(name, model.spec, total, stored_prompts)


def _prompts_of(model: Measurements, steps: Sequence[PlannedStep]) -> int:
    """Return the number of prompts of some steps."""
    return sum(len(step.conditions) * len(model.problems_of(step)) for step in steps)


def _of_part(part: Part) -> Iterator[Task]:
    """Yield the computations of a part of the answers or scores for each model."""
    section, rows = part.section, part.rows()
    for spec in section.models:
        name = resolve(spec).name
        of_model = [row for row in rows if row["model"] == name]
        if part.profile.stored_only:
            yield Task(part.name, spec, len(of_model), len(of_model))
            continue
        problems = _problems_of(part)
        texts = len(problems) * getattr(section, "samples", 1)
        if isinstance(part, DrawScoresPart):
            texts *= len(SAMPLING_CONDITIONS)
            # Which answers need a score is known only after sampling.
            drawn = part.draws.stored()
            texts -= int((~is_mixed(drawn[drawn["model"] == name])).sum())
        conditions = [*section.conditions, *getattr(section, "at_once", ())]
        stored = sum(row["problem_id"] in problems for row in of_model)
        yield Task(part.name, spec, texts * len(conditions), stored)


def _problems_of(part: Part) -> set[str]:
    """Return the ids of a part's problems, without those whose reference solution is
    probably too long to be scored.
    """
    section = part.section
    levels = section.levels if isinstance(section, Accuracy) else None
    seed = part.profile.seed
    problems = load_problems(section.problems, section.limit, seed, levels)
    if isinstance(section, Likelihood):
        longest = section.max_solution_tokens * TOKEN_CHARACTERS
        problems = [item for item in problems if len(item.solution) <= longest]
    return {problem.id for problem in problems}


def as_text(tasks: Sequence[Task]) -> str:
    """Return the tasks as a table, with a last line that says what is left."""
    table = pd.DataFrame(tasks, columns=Task._fields)
    return f"{table.to_string(index=False)}\n\n{summary(tasks)}"


def summary(tasks: Sequence[Task]) -> str:
    """Return in one line how many prompts a run computes."""
    left = sum(task.left for task in tasks)
    return f"Plan: {left:,} prompts" if left else "Plan: everything is stored"
