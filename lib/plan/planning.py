"""What a run of a profile will take on this machine, and what it would be refused for.

plan = make_plan(load_profile("laptop"))
plan.seconds, plan.to_fetch, plan.refusals
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lib.errors import InputError
from lib.models.names import resolve
from lib.plan.cost import Cost, cost_of
from lib.plan.machine import Machine, this_machine
from lib.plan.speed import NOTEBOOK_SECONDS, overhead_of
from lib.plan.task import Task, TaskInputs
from lib.plan.tasks import tasks_of
from lib.plan.units import GB
from lib.plan.weights import ModelWeights, Shape, weights_of
from lib.profiles import Profile
from lib.prompts.problems import Problem, load_problems

# MATH-500 where it is not at hand: of its size, and of its mean length.
MATH500_SIZE = 500
UNSEEN_PROBLEM = "x" * 200
UNSEEN_SOLUTION = "x" * 550


@dataclass(frozen=True)
class Plan:
    """What a run will take; sizes are in bytes."""

    profile: Profile
    machine: Machine
    weights: list[ModelWeights]
    to_fetch: dict[str, int]  # by spec
    costs: list[Cost]
    absent: list[str]  # why weights or problems cannot be had
    unfit: list[str]  # why this machine cannot use them as the profile asks
    drawing: float = 0.0  # seconds that notebooks take beside the tasks

    @property
    def refusals(self) -> list[str]:
        return list(dict.fromkeys([*self.absent, *self.unfit]))

    @property
    def left(self) -> list[Cost]:
        """The tasks that are not done yet."""
        return [cost for cost in self.costs if cost.task.left]

    def shape_of(self, spec: str) -> Shape | None:
        """Return the shape of one of the models, if it is known."""
        return {known.spec: known.shape for known in self.weights}[spec]

    def of_part(self, part: str) -> tuple[str, float, bool]:
        """Return what is remembered of a part: the kind of its tasks, the seconds of
        their products, and whether this processor computes them.

        The seconds are 0, which teach nothing, of the scores of drawn answers: how many
        have to be scored is known only when they are drawn.
        """
        name = "check" if part == "main" and self.profile.name == "demo" else part
        own = [cost for cost in self.left if cost.task.name in (part, name)]
        kind = own[0].task.kind if own else part
        # Drawn answers are written here, whatever writes the others.
        accuracy = self.profile.accuracy
        elsewhere = accuracy.workers > 0 or accuracy.engine != "transformers"
        on_processor = self.machine.device == "cpu" and not (
            kind == "answers" and part != "draws" and elsewhere
        )
        products = 0.0
        if part != "draw_scores":
            products = sum(cost.products for cost in own)
        return kind, products, on_processor

    @property
    def bytes_to_fetch(self) -> int:
        return sum(self.to_fetch.values())

    @property
    def seconds(self) -> float:
        return self.drawing + sum(cost.seconds for cost in self.left)

    @property
    def prompts(self) -> int:
        return sum(cost.task.left for cost in self.left)


def make_plan(
    profile: Profile,
    fresh: bool = False,
    parts: Collection[str] = (),
    notebooks: int = 0,
) -> Plan:
    """Return what a run of this profile takes.

    fresh: it starts over; parts: of EVERY_PART what it computes, all for none;
    notebooks: how many it draws.
    """
    machine = this_machine()
    problems, without_problems = _problems(profile)
    specs = profile.models
    weights = {spec: weights_of(spec) for spec in specs}
    shapes = {spec: known.shape for spec, known in weights.items() if known.shape}

    tasks = tasks_of(TaskInputs(profile, shapes, problems, fresh), parts)
    costs = [cost_of(task, shapes.get(task.model), machine) for task in tasks]
    left = [task for task in tasks if task.left]
    to_fetch = {spec: _to_fetch(weights[spec], left) for spec in specs}
    absent = [
        *(without_problems if left else []),
        *_of_weights(weights, to_fetch, left),
    ]
    unfit = [
        *of_disk(sum(to_fetch.values()), machine),
        *_of_memory(costs, machine),
        *_of_templates(profile, weights, left),
        *_of_solutions(profile, problems, left),
    ]
    return Plan(
        profile,
        machine,
        list(weights.values()),
        to_fetch,
        costs,
        absent,
        unfit,
        notebooks * NOTEBOOK_SECONDS * overhead_of("notebook")[0],
    )


def refuse(reasons: list[str]) -> None:
    """Raise InputError for all reasons at once, if there are any."""
    if reasons:
        raise InputError("; ".join(reasons))


def _problems(profile: Profile) -> tuple[dict[str, list[Problem]], list[str]]:
    """Return the problems by where they come from, and why some cannot be had."""
    problems = {}
    reasons = []
    for source in {section.problems: None for section in profile.sections}:
        try:
            problems[source] = load_problems(source)
        except InputError as error:
            reasons.append(str(error))
            problems[source] = _unseen()
    return problems, reasons


def _unseen() -> list[Problem]:
    """Return as many problems as MATH-500 has, as long as its are on average."""
    return [
        Problem.model_validate(
            {
                "unique_id": f"unseen/{number}",
                "problem": UNSEEN_PROBLEM,
                "solution": UNSEEN_SOLUTION,
                "answer": "",
            }
        )
        for number in range(MATH500_SIZE)
    ]


def _to_fetch(weights: ModelWeights, left: list[Task]) -> int:
    """Return how many bytes a run fetches of a model, in its own order: first layers
    before the whole.
    """
    depths = {task.layers for task in left if task.model == weights.spec}
    return sum(weights.to_fetch(layers) for layers in depths)


def _of_weights(
    weights: dict[str, ModelWeights], to_fetch: dict[str, int], left: list[Task]
) -> Iterator[str]:
    """Yield why models that are needed cannot be had."""
    needed = {task.model for task in left}
    names: dict[str, list[str]] = {}
    for spec, known in weights.items():
        is_missing = to_fetch[spec] > 0 or known.shape is None
        if spec in needed and known.refusal and is_missing:
            # What is refused of several models for one reason is said once.
            repo = resolve(spec).repo
            reason = known.refusal.removeprefix(repo)
            names.setdefault(reason, []).append(repo)
    for reason, repos in names.items():
        yield ", ".join(filter(None, repos)) + reason


def _of_memory(costs: list[Cost], machine: Machine) -> Iterator[str]:
    """Yield which models need more memory than is free."""
    largest: dict[str, int] = {}
    for cost in costs:
        spec = cost.task.model
        if cost.task.left:
            largest[spec] = max(largest.get(spec, 0), cost.memory)
    for spec, memory in largest.items():
        if memory > machine.memory:
            yield (
                f"{spec} needs {memory / GB:.0f} GB of memory,"
                f" {machine.memory / GB:.0f} GB are free"
            )


def of_disk(needed: int, machine: Machine) -> Iterator[str]:
    """Yield that so many bytes of weights do not fit on the disk, where they do not."""
    if needed > machine.disk:
        yield (
            f"weights need {needed / GB:.0f} GB of disk, {machine.disk / GB:.0f} GB are"
            " free: set HF_HOME to a larger one"
        )


def _of_templates(
    profile: Profile, weights: dict[str, ModelWeights], left: list[Task]
) -> Iterator[str]:
    """Yield which models have no chat template for prompts in chat form."""
    for spec, known in weights.items():
        formats = {_format_of(profile, task) for task in left if task.model == spec}
        if "chat" in formats and not known.templated:
            yield f"{spec} has no chat template: set format to plain"


def _format_of(profile: Profile, task: Task) -> str:
    """Return the form of a task's prompts.

    Likelihoods take the plain one where a model has no template.
    """
    if task.name == "draws" and profile.pass_rates:
        return profile.pass_rates.format
    if task.kind == "answers":
        return profile.accuracy.format
    return "plain" if task.kind == "likelihood" else profile.attention.format


def _of_solutions(
    profile: Profile, problems: dict[str, list[Problem]], left: list[Task]
) -> Iterator[str]:
    """Yield which problems have no solution that could be scored."""
    scored = any(task.name == "likelihood" for task in left)
    if profile.likelihood is None or not scored:
        return
    source = profile.likelihood.problems
    without = [item for item in problems[source] if not item.solution.strip()]
    if without:
        yield (
            f"{source}: {len(without)} problems have no solution, which likelihoods"
            f" need, such as problem {without[0].id}"
        )
