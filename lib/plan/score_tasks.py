"""The tasks of likelihoods: of worked solutions, answers at once, and drawn answers."""

from collections.abc import Iterator

import pandas as pd

from lib import paths
from lib.evaluation import of_profile
from lib.evaluation.pass_rates import is_divided
from lib.evaluation.store import SCORES, read
from lib.models.names import resolve
from lib.plan.answer_tasks import written_tokens
from lib.plan.speed import Workload
from lib.plan.task import Task, TaskInputs, as_stored, operations
from lib.plan.tokens import (
    inserted_tokens,
    mean_of,
    mean_prompt_tokens,
    solution_tokens,
)
from lib.profiles import HALVES, Likelihood, PassRates
from lib.prompts.problems import Problem

ANSWER_TOKENS = 10  # of a gold answer that is scored at once


def likelihood_tasks(inputs: TaskInputs) -> Iterator[Task]:
    """Yield what the likelihoods ask of each model."""
    likelihood = inputs.profile.likelihood
    if likelihood is None:
        return
    profile = inputs.profile
    of_repository = read(*(paths.DATA / profile.name / "likelihood").glob("*.jsonl.gz"))
    of_results = read(*(profile.results / "likelihood").glob(SCORES))
    scores = pd.DataFrame(of_repository or of_results)
    for spec in likelihood.models:
        stored = 0
        if len(scores) and not (inputs.fresh and not of_repository):
            stored = _count_scores(inputs, spec, likelihood, scores)
        task = _score_task(inputs, spec, likelihood, stored)
        if of_repository:
            rows = scores.model == resolve(spec).name
            task = as_stored(task, int(rows.sum()))
        yield task


def _score_task(
    inputs: TaskInputs, spec: str, likelihood: Likelihood, stored: int
) -> Task:
    """Return what scoring gold solutions and answers with a model takes."""
    problems = _short_enough(inputs, likelihood)
    solution = mean_of(solution_tokens(problem.solution) for problem in problems)
    prompt = mean_prompt_tokens(problems, likelihood.format == "chat")
    tokens = prompts = 0
    for conditions, scored in (
        (likelihood.conditions, solution),
        (likelihood.at_once, ANSWER_TOKENS),
    ):
        texts = len(problems) * len(conditions)
        inserted = inserted_tokens(inputs.profile.filler, conditions)
        tokens += texts * (prompt + inserted + scored)
        prompts += texts
    left = 1 - stored / prompts if prompts else 0
    work = operations(tokens, inputs.multiplied(spec))
    return Task(
        "likelihood",
        spec,
        prompts,
        stored,
        int(tokens),
        Workload(read=work * left),
        dtype=likelihood.dtype,
    )


def _short_enough(inputs: TaskInputs, likelihood: Likelihood) -> list[Problem]:
    """Return the problems whose solutions are scored."""
    problems = inputs.sample(likelihood.problems, likelihood.limit)
    limit = likelihood.max_solution_tokens
    return [item for item in problems if solution_tokens(item.solution) <= limit]


def _count_scores(
    inputs: TaskInputs, spec: str, likelihood: Likelihood, scores: pd.DataFrame
) -> int:
    """Return how many of the texts that are asked for have a score."""
    ids = [problem.id for problem in _short_enough(inputs, likelihood)]
    own = scores[(scores.model == resolve(spec).name) & scores.problem_id.isin(ids)]
    solutions = own.condition.isin([str(c) for c in likelihood.conditions])
    answers = own.condition.isin([str(c) for c in likelihood.at_once])
    is_solution = own.target == "solution"
    return int((is_solution & solutions | ~is_solution & answers).sum())


def draw_score_tasks(inputs: TaskInputs) -> Iterator[Task]:
    """Yield what scoring the drawn answers under every condition asks of each model."""
    profile = inputs.profile
    rates = profile.pass_rates
    if rates is None:
        return
    scores = of_profile.stored_draw_scores(profile)
    answers = of_profile.stored_answers(profile, "draws")
    of_repository = of_profile.is_stored(profile, "draw_scores")
    for spec in rates.models:
        name = resolve(spec).name
        own = scores[scores.model == name]
        drawn = answers[answers.model == name]
        task = _draw_score_task(inputs, spec, rates, own, drawn)
        yield as_stored(task, len(own)) if of_repository else task


def _draw_score_task(
    inputs: TaskInputs,
    spec: str,
    rates: PassRates,
    scores: pd.DataFrame,
    drawn: pd.DataFrame,
) -> Task:
    """Return what scoring a model's drawn answers takes.

    scores, drawn: of this model, as far as they are stored.
    """
    problems = inputs.sample(rates.problems, rates.limit)
    ids = [problem.id for problem in problems]
    answers = len(problems) * len(HALVES) * rates.samples
    # Which answers need no score is known once they are drawn.
    if not inputs.fresh:
        needless = ~is_divided(drawn) & drawn.problem_id.isin(ids)
        answers -= int(needless.sum())
    prompts = answers * len(rates.conditions)
    wanted = scores.condition.isin([str(condition) for condition in rates.conditions])
    wanted &= scores.problem_id.isin(ids)
    stored = 0 if inputs.fresh else int(wanted.sum())

    tokens = mean_prompt_tokens(problems, rates.format == "chat")
    tokens += inserted_tokens(inputs.profile.filler, rates.conditions)
    tokens += written_tokens(drawn, rates.drawing)
    return Task(
        "draw_scores",
        spec,
        prompts,
        stored,
        int(prompts * tokens),
        Workload(read=operations((prompts - stored) * tokens, inputs.multiplied(spec))),
        dtype=rates.dtype,
    )
