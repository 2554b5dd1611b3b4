"""What a profile computes, task by task: prompts, tokens and operations, and what of it
is stored already.

A task is what `lib.reproduce` computes on one model before a notebook starts.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from lib import paths
from lib.errors import InputError
from lib.evaluation import of_profile
from lib.evaluation.rows import frame
from lib.evaluation.store import COMPLETIONS, SCORES, read
from lib.measurement.plan import MEASURED_PARTS, STEPS, TRAINED, PlannedStep
from lib.measurement.store import load_measured
from lib.models.names import resolve
from lib.plan.speed import Workload
from lib.plan.tokens import (
    inserted_tokens,
    mean_of,
    mean_prompt_tokens,
    problem_tokens,
    solution_tokens,
)
from lib.plan.weights import Shape
from lib.profiles import PARTS, Accuracy, Likelihood, Profile, variation
from lib.prompts.problems import Problem, sampling_order

# What a run computes, in its order.
EVERY_PART = (*MEASURED_PARTS, "main", *PARTS, "likelihood")
ANSWER_TOKENS = 10  # of a gold answer that is scored at once
# How much of its tokens an answer uses on average, where none of the model is stored.
SHARE_WRITTEN = 0.5
# How often a measure reads a prompt under a condition, where it is not once.
FORWARDS = {"causes": 4}
# How many problems of the demo's stored answers are answered again: a minute of the six
# that a run takes.
CHECKED = 32


@dataclass(frozen=True)
class Task:
    """What is computed on one model for one purpose."""

    name: str  # of MEASURED_PARTS, main, check, one of PARTS, or likelihood
    model: str  # its spec
    prompts: int
    stored: int  # of these prompts
    tokens: int  # at most, of all prompts and answers
    work: Workload  # what is left to do
    layers: int | None = None  # that are loaded; None: all
    head: bool = True  # whether the output head is loaded too
    dtype: str = "auto"
    # How many answers grow at once where this project's engine keeps their caches, and
    # how long each may get.
    batch_size: int = 0
    longest: int = 0

    @property
    def kind(self) -> str:
        """What the task shares its overhead with."""
        return "answers" if self.name in ("main", "check", *PARTS) else self.name

    @property
    def left(self) -> int:
        """How many prompts are not stored yet."""
        return self.prompts - self.stored


@dataclass(frozen=True)
class TaskInputs:
    """A profile with what its steps are counted from."""

    profile: Profile
    shapes: dict[str, Shape]  # of the models that are known, by spec
    problems: dict[str, list[Problem]]  # all of each source
    fresh: bool = False  # whether a run starts over, whatever is stored

    def sample(
        self, source: str, limit: int | None, levels: Collection[int] | None = None
    ) -> list[Problem]:
        """Return the problems that a section with this limit draws."""
        problems = self.problems[source]
        if levels is not None:
            problems = [problem for problem in problems if problem.level in levels]
        return sampling_order(problems, self.profile.seed)[:limit]

    def multiplied(self, spec: str, layers: int | None = None) -> int:
        """Return the parameters that a token is multiplied with, 0 if not known."""
        shape = self.shapes.get(spec)
        return shape.multiplied(layers) if shape else 0


def tasks_of(inputs: TaskInputs, parts: Collection[str] = ()) -> list[Task]:
    """Return the tasks of a profile that these parts name, all for none."""
    tasks: list[Task] = []
    for part in parts or EVERY_PART:
        if part in MEASURED_PARTS:
            tasks += _measuring(inputs, part)
        elif part == "likelihood":
            tasks += _scoring(inputs)
        else:
            tasks += _answering(inputs, part)
    return tasks


def _measuring(inputs: TaskInputs, part: str) -> Iterator[Task]:
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
        work += _operations(left * length * FORWARDS.get(step.measure, 1), passed)
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


def _answering(inputs: TaskInputs, part: str) -> Iterator[Task]:
    """Yield what a part of the answers asks of each model."""
    profile = inputs.profile
    if part != "main" and getattr(profile.accuracy, part) is None:
        return
    accuracy = profile.accuracy if part == "main" else variation(profile.accuracy, part)
    answers = of_profile.stored_answers(profile, part)
    complete = of_profile.stored_file(profile, part) is not None
    if part == "main" and profile.name == "demo":
        complete = not inputs.fresh
    for spec in accuracy.models:
        task = _answer_task(inputs, part, spec, accuracy, answers)
        rows = answers.model == resolve(spec).name
        yield _as_stored(task, int(rows.sum())) if complete else task
    if part == "main" and profile.name == "demo" and not inputs.fresh:
        fewer = accuracy.model_copy(update={"limit": CHECKED})
        rows = read(*(profile.results / "check").glob(COMPLETIONS))
        yield _answer_task(inputs, "check", "demo", fewer, frame(rows))


def _as_stored(task: Task, rows: int) -> Task:
    """Return a task of which the repository has so many rows: nothing is left to do,
    even where these are fewer than the profile names.
    """
    return replace(task, prompts=rows, stored=rows, work=Workload())


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
    written = accuracy.max_new_tokens * SHARE_WRITTEN
    if len(own):
        written = own.completion_tokens.astype(float).mean()
    multiplied = inputs.multiplied(spec)
    return Task(
        name,
        spec,
        prompts,
        stored,
        int(prompts * (prompt_tokens + accuracy.max_new_tokens)),
        Workload(
            read=_operations(left * prompt_tokens, multiplied),
            written=_operations(left * written, multiplied),
        ),
        dtype=accuracy.dtype,
        # Without a size what fits is answered at once: one prompt at least.
        batch_size=(accuracy.batch_size or 1) * (accuracy.engine == "transformers"),
        longest=int(prompt_tokens + accuracy.max_new_tokens),
    )


def _scoring(inputs: TaskInputs) -> Iterator[Task]:
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
            task = _as_stored(task, int(rows.sum()))
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
    work = _operations(tokens, inputs.multiplied(spec))
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


def _operations(tokens: float, multiplied: int) -> float:
    """Return the 10^9 operations of so many tokens through so many parameters."""
    return 2 * tokens * multiplied / 1e9
