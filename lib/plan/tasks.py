"""List the computations of a profile's run: how many prompts each part needs of each
model, and how many are stored.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

import pandas as pd

from lib.evaluation.engine_choice import generation_device
from lib.evaluation.profile_parts import Part, parts_of_profile
from lib.evaluation.weighted_pass_rates import is_mixed
from lib.measurement.measurement_run import MeasuredPart
from lib.measurement.planned_steps import MEASURED_PARTS, PlannedStep
from lib.measurement.stored_measurements import Measurements
from lib.models.availability import named_revision, source_with_config
from lib.models.name_resolution import resolve
from lib.profiles import SAMPLING_CONDITIONS, Accuracy, Likelihood, Profile
from lib.prompts.problem_schema import Problem
from lib.prompts.problem_sets import load_problems

# Characters per token of a reference solution, to estimate which solutions are too long
# without a tokenizer.
TOKEN_CHARACTERS = 2.7
ALL_LAYERS = inf  # all layers of a model, with its output head


class Task(NamedTuple):
    """The computation of one part of a run with one model."""

    part: str  # name of the part, such as main or attention
    model: str  # as the profile writes it
    prompts: int  # number of prompts in total
    stored: int  # number of these prompts whose results are stored
    dtype: str
    layers: float = ALL_LAYERS  # number of first layers that are read

    @property
    def left(self) -> int:
        """Number of prompts that remain to be computed."""
        return max(0, self.prompts - self.stored)


def tasks_of(profile: Profile, fresh: bool) -> Iterator[Task]:
    """Yield the computations of a run.

    fresh: whether the run starts over, so that only the repository's answers and scores
    count as stored.
    """
    for name in MEASURED_PARTS:
        part = MeasuredPart(profile, name, stored=not fresh)
        for model in part.models:
            # A run that starts over deletes what is in results/.
            missing = part.steps if fresh else model.missing(part.steps)
            for deep in (False, True):
                steps = [step for step in part.steps if step.deep == deep]
                if left := [step for step in steps if step in missing]:
                    yield _measured(name, model, steps, left)
    parts = parts_of_profile(profile)
    for part in parts.values():
        yield from _of_part(part, parts, fresh)


def _measured(
    part: str,
    model: Measurements,
    steps: Sequence[PlannedStep],
    missing: Sequence[PlannedStep],
) -> Task:
    """Return the computation of measurement steps that run prompts through the same
    layers.

    missing: the steps among them that are not stored.
    """
    attention = model.profile.attention
    problems = load_problems(attention.problems, attention.limit, model.profile.seed)
    deep = steps[0].deep
    if deep:
        problems = problems[: attention.map_problems]

    def prompts(some: Sequence[PlannedStep]) -> int:
        return sum(
            len(step.conditions) * (1 if step.measure == "tokens" else len(problems))
            for step in some
        )

    total = prompts(steps)
    return Task(
        part,
        model.spec,
        prompts=total,
        stored=total - prompts(missing),
        dtype=attention.dtype,
        layers=ALL_LAYERS if deep else attention.layers,
    )


def _of_part(part: Part, parts: Mapping[str, Part], fresh: bool) -> Iterator[Task]:
    """Yield the computations of a part of the answers or scores for each model.

    parts: all parts of the profile, of which `draws` decides which answers need scores.
    """
    section = part.section
    if part.uses_shipped():
        # Nothing is added to stored rows, however few there are.
        models = part.stored()["model"]
        for spec in section.models:
            rows = int((models == resolve(spec).name).sum())
            yield Task(part.name, spec, rows, rows, section.dtype)
        return

    problems = _problems_of(part)
    conditions = [*section.conditions, *getattr(section, "at_once", ())]
    rows = part.stored_or_reusable()
    for spec in section.models:
        texts = len(problems) * getattr(section, "samples", 1)
        if part.name == "draw_scores":
            texts *= len(SAMPLING_CONDITIONS)
            if not fresh:
                # Which answers need a score is known only after sampling.
                draws = parts["draws"]
                drawn = draws.stored_or_reusable()
                drawn = _matching_rows(
                    drawn, draws, spec, SAMPLING_CONDITIONS, problems
                )
                texts -= int((~is_mixed(drawn)).sum())
        stored = 0
        if not fresh:
            stored = len(_matching_rows(rows, part, spec, conditions, problems))
        yield Task(part.name, spec, texts * len(conditions), stored, section.dtype)


def _problems_of(part: Part) -> list[Problem]:
    """Return the problems of a part, without those whose reference solution is probably
    too long to be scored.
    """
    section = part.section
    levels = section.levels if isinstance(section, Accuracy) else None
    problems = load_problems(section.problems, section.limit, part.seed, levels)
    if isinstance(section, Likelihood):
        longest = section.max_solution_tokens * TOKEN_CHARACTERS
        problems = [item for item in problems if len(item.solution) <= longest]
    return problems


def _matching_rows(
    rows: pd.DataFrame,
    part: Part,
    spec: str,
    conditions: Collection[object],
    problems: list[Problem],
) -> pd.DataFrame:
    """Return the rows of a model, in the revision and dtype that a run of the part
    would use, under these conditions and of these problems.

    A run finds rows by their keys, for which it needs the tokenizer and all prompts.
    """
    rows = rows[rows["model"] == resolve(spec).name]
    if rows.empty:
        return rows
    # Imported here, because an unavailable model is refused without torch.
    from lib.models.loading import placement

    section = part.section
    source = source_with_config(spec)
    is_generated = isinstance(section, Accuracy)
    device = generation_device(section) if is_generated else "auto"
    _, dtype = placement(device, section.dtype)
    return rows[
        rows["revision"].isin([source.revision or named_revision(spec)])
        & rows["dtype"].eq(dtype)
        & rows["condition"].isin([str(condition) for condition in conditions])
        & rows["problem_id"].isin([problem.id for problem in problems])
        & (rows.get("sample", 0) < getattr(section, "samples", 1))
    ]
