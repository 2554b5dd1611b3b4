"""The tasks of answers, which models write: one to each prompt, or several drawn."""

from collections.abc import Iterator

import pandas as pd

from lib.evaluation import of_profile
from lib.evaluation.rows import frame
from lib.evaluation.store import COMPLETIONS, read
from lib.models.names import resolve
from lib.plan.speed import Workload
from lib.plan.task import Task, TaskInputs, as_stored, operations
from lib.plan.tokens import (
    inserted_tokens,
    mean_prompt_tokens,
    problem_tokens,
    solution_tokens,
)
from lib.profiles import Accuracy, variation

# How much of its tokens an answer uses on average, where none of the model is stored.
SHARE_WRITTEN = 0.5
# How many problems of the demo's stored answers are answered again: a minute of the six
# that a run takes.
CHECKED = 32


def answer_tasks(inputs: TaskInputs, part: str) -> Iterator[Task]:
    """Yield what a part of the answers asks of each model."""
    profile = inputs.profile
    if part != "main" and getattr(profile.accuracy, part) is None:
        return
    accuracy = profile.accuracy if part == "main" else variation(profile.accuracy, part)
    answers = of_profile.stored_answers(profile, part)
    complete = of_profile.is_stored(profile, part)
    if part == "main" and profile.name == "demo":
        complete = not inputs.fresh
    for spec in accuracy.models:
        task = _answer_task(inputs, part, spec, accuracy, answers)
        rows = answers.model == resolve(spec).name
        yield as_stored(task, int(rows.sum())) if complete else task
    if part == "main" and profile.name == "demo" and not inputs.fresh:
        fewer = accuracy.model_copy(update={"limit": CHECKED})
        rows = read(*(profile.results / "check").glob(COMPLETIONS))
        yield _answer_task(inputs, "check", "demo", fewer, frame(rows))


def draw_tasks(inputs: TaskInputs) -> Iterator[Task]:
    """Yield what drawing the answers that are weighted asks of each model."""
    profile = inputs.profile
    if profile.pass_rates is None:
        return
    drawing = profile.pass_rates.drawing
    answers = of_profile.stored_answers(profile, "draws")
    of_repository = of_profile.is_stored(profile, "draws")
    for spec in drawing.models:
        task = _answer_task(inputs, "draws", spec, drawing, answers)
        rows = answers.model == resolve(spec).name
        yield as_stored(task, int(rows.sum())) if of_repository else task


def written_tokens(answers: pd.DataFrame, accuracy: Accuracy) -> float:
    """Return the mean tokens of a model's answers, estimated where there are none."""
    if len(answers):
        return answers.completion_tokens.astype(float).mean()
    return accuracy.max_new_tokens * SHARE_WRITTEN


def _answer_task(
    inputs: TaskInputs, name: str, spec: str, accuracy: Accuracy, answers: pd.DataFrame
) -> Task:
    """Return what answering these problems with a model takes."""
    problems = inputs.sample(accuracy.problems, accuracy.limit, accuracy.levels)
    conditions = [str(condition) for condition in accuracy.conditions]
    own = answers[answers.model == resolve(spec).name]
    own = own[own.condition.isin(conditions) & (own["sample"] < accuracy.samples)]
    own = own[own.problem_id.isin([problem.id for problem in problems])]

    prompts = len(problems) * len(conditions) * accuracy.samples
    stored = 0 if inputs.fresh else len(own)
    left = prompts - stored
    prompt_tokens = mean_prompt_tokens(problems, accuracy.format == "chat")
    prompt_tokens += sum(
        problem_tokens(example.problem) + solution_tokens(example.solution)
        for example in accuracy.examples
    )
    prompt_tokens += inserted_tokens(inputs.profile.filler, accuracy.conditions)
    written = written_tokens(own, accuracy)
    multiplied = inputs.multiplied(spec)
    return Task(
        name,
        spec,
        prompts,
        stored,
        int(prompts * (prompt_tokens + accuracy.max_new_tokens)),
        Workload(
            read=operations(left * prompt_tokens, multiplied),
            written=operations(left * written, multiplied),
        ),
        dtype=accuracy.dtype,
        # Without a size what fits is answered at once: one prompt at least.
        batch_size=(accuracy.batch_size or 1) * (accuracy.engine == "transformers"),
        longest=int(prompt_tokens + accuracy.max_new_tokens),
    )
