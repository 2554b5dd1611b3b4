"""What a run of a profile fetches, needs and takes on this machine, before anything
runs, and why it would be refused.

    plan = make_plan(load_profile("laptop"))
    print(as_text(plan))
    for line in fetch(plan):  # weights onto this disk, so that a run needs no network
        print(line)

What cannot be had is refused before torch is imported, within seconds.
"""

import contextlib
import functools
import json
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pandas as pd

from lib.errors import InputError
from lib.evaluation import of_profile
from lib.evaluation.pass_rates import is_divided
from lib.evaluation.rows import frame
from lib.evaluation.store import COMPLETIONS, read
from lib.measurement.plan import STEPS
from lib.measurement.store import load_measured
from lib.models.hub import first_layers, snapshot
from lib.models.memory import SHARE_OF_MEMORY, free_memory
from lib.models.names import known_models, resolve
from lib.models.sizes import Files, Shape, files_of, shape_of
from lib.profiles import HALVES, Accuracy, Likelihood, Profile, variation
from lib.prompts.problems import Problem, load_problems

GB = 1e9
HOUR = 3600
NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
TOKEN_CHARACTERS = 2.7  # of a token
PROMPT_TOKENS = 40  # beside the problem and what is inserted
SHARE_WRITTEN = 0.5  # of the tokens that an answer may have
# So many problems of the demo's stored answers are answered again by a run.
CHECKED = 32
# Parts that score: what their models lack of memory stays on disk.
SCORING = ("likelihood", "draw_scores")
WORKING_MEMORY = 2.5e9  # bytes of Python, logits, and answers that grow at once
# Seconds that go by for each second of matrix products, and those of a notebook.
OVERHEAD = 1.4
NOTEBOOK_SECONDS = 15
# The product that is timed is one of a 1.5B's MLP: rows x width times width x inner.
ROWS, WIDTH, INNER = 128, 1536, 8960
TRIAL_SECONDS = 2


class Task(NamedTuple):
    """What is computed on one model for one purpose."""

    part: str  # as a run asks for it
    model: str  # its spec
    prompts: int
    stored: int  # of these prompts
    tokens: float  # of a prompt with its answer
    dtype: str
    layers: int | None = None  # that are read; None: all


class Need(NamedTuple):
    """What a run needs of a model; sizes are in bytes."""

    model: str
    layers: int | None
    to_fetch: float
    here: float
    memory: float


class Plan(NamedTuple):
    """What a run takes, and what this machine has no room for."""

    tasks: list[Task]
    seconds: list[float]  # of each task
    needs: list[Need]  # of the models that something is left to do with
    free: int  # bytes of memory
    drawing: int  # seconds that notebooks take

    @property
    def refusals(self) -> list[str]:
        """Why this machine cannot run it."""
        free = gigabytes(self.free)
        return [
            f"{need.model} needs {gigabytes(need.memory)} of memory, {free} are free"
            for need in self.needs
            if need.memory > self.free
        ]


def make_plan(
    profile: Profile,
    fresh: bool = False,
    parts: Collection[str] = (),
    notebooks: int = 0,
) -> Plan:
    """Return what a run of this profile takes.

    fresh: it starts over; parts: what it computes, all for none; notebooks: how many it
    draws. Raises InputError, for all models at once, where one cannot be had.
    """
    tasks = []
    left: dict[str, list[Task]] = {}
    for task in _tasks(profile, fresh):
        if not parts or task.part in parts:
            tasks.append(task)
            if task.prompts > task.stored:
                left.setdefault(task.model, []).append(task)
    depths = {spec: _depth(left[spec]) for spec in left}
    files = _files(depths)

    # Now torch is imported, where anything is to be computed.
    device, free = _device_and_memory() if left else ("cpu", free_memory())
    shapes = {spec: shape_of(spec, files[spec].folder) for spec in left}
    needs = []
    for spec, layers in depths.items():
        shape = shapes[spec]
        missing = files[spec].missing
        if layers is not None:
            stored_bytes = shape.parameters(layers) * NUMBER_BYTES["bfloat16"]
            missing = min(missing, stored_bytes)
        memory = max(_memory(task, shape, device, free) for task in left[spec])
        needs.append(Need(spec, layers, missing, files[spec].here, memory))
    seconds = [_seconds(task, shapes.get(task.model), device) for task in tasks]
    return Plan(tasks, seconds, needs, free, notebooks * NOTEBOOK_SECONDS)


def refuse(reasons: Collection[str]) -> None:
    """Raise InputError for all reasons at once, if there are any."""
    if reasons:
        raise InputError("; ".join(reasons))


def fetch(plan: Plan) -> Iterator[str]:
    """Fetch what a run lacks, and yield a line for each model: whole where any task
    needs it whole, else the byte ranges of its first layers.
    """
    for need in plan.needs:
        if not need.to_fetch:
            continue
        source = resolve(need.model)
        if need.layers is None:
            folder = snapshot(source.repo, source.revision)
        else:
            folder = first_layers(source.repo, need.layers, source.revision)
        yield f"{source.name}: {gigabytes(need.to_fetch)} fetched, {folder}"


def as_text(plan: Plan) -> str:
    """Return a plan in full: refusals first, and at last its `summary`."""
    models = pd.DataFrame(plan.needs, columns=Need._fields)
    models["gated"] = [_gated(spec) for spec in models["model"]]
    tasks = pd.DataFrame(plan.tasks, columns=Task._fields)
    tasks["time"] = [duration(seconds) if seconds else "" for seconds in plan.seconds]
    shown = ["part", "model", "prompts", "stored", "time"]
    blocks = [f"refused: {reason}" for reason in plan.refusals]
    if plan.needs:
        for column in ("to_fetch", "here", "memory"):
            models[column] = models[column].map(gigabytes)
        models["layers"] = models["layers"].astype(object).fillna("all")
        blocks.append(models.to_string(index=False))
    blocks.append(tasks[shown].to_string(index=False))
    blocks.append(f"free here: {gigabytes(plan.free)} of memory")
    return "\n\n".join([*blocks, summary(plan)])


def _gated(spec: str) -> str:
    """Say whether a model's licence has to be accepted on the hub first."""
    return "yes" if known_models().get(spec, {}).get("gated") else "no"


def summary(plan: Plan) -> str:
    """Return what a run takes, in one line."""
    prompts = sum(task.prompts - task.stored for task in plan.tasks)
    if not prompts:
        return "Plan: nothing to fetch or compute, everything is stored"
    to_fetch = sum(need.to_fetch for need in plan.needs)
    time_taken = duration(plan.drawing + sum(plan.seconds))
    return (
        f"Plan: {gigabytes(to_fetch)} to fetch, {prompts:,} prompts, about"
        f" {time_taken} on this machine"
    )


def duration(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds >= 2 * HOUR:
        return f"{seconds / HOUR:.1f} hours"
    minutes = max(1, round(seconds / 60))
    return f"{minutes} minute{'s' if minutes > 1 else ''}"


def gigabytes(size: float) -> str:
    """Return a size in 10^9 bytes."""
    return f"{size / GB:.1f} GB"


def _files(depths: dict[str, int | None]) -> dict[str, Files]:
    """Return the files of each model, of which so many first layers are needed.

    Raises InputError for all that cannot be had; a reason of several is said once.
    """

    def look(spec: str) -> Files | InputError:
        try:
            return files_of(spec, depths[spec])
        except InputError as error:
            return error

    files = {}
    repos_by_reason: dict[str, list[str]] = {}
    with ThreadPoolExecutor() as pool:
        for spec, found in zip(depths, pool.map(look, depths), strict=True):
            if isinstance(found, InputError):
                repo = resolve(spec).repo
                reason = str(found).removeprefix(repo)
                repos_by_reason.setdefault(reason, []).append(repo)
            else:
                files[spec] = found
    refuse([", ".join(repos) + why for why, repos in repos_by_reason.items()])
    return files


def _depth(tasks: list[Task]) -> int | None:
    """Return how many first layers of a model its tasks need, None for all."""
    depths = [task.layers for task in tasks if task.layers is not None]
    return max(depths) if len(depths) == len(tasks) else None


def _device_and_memory() -> tuple[str, int]:
    """Return what computes here, and the bytes that are free for weights."""
    import torch

    if torch.cuda.is_available():
        return "cuda", torch.cuda.mem_get_info()[0]
    return "cpu", free_memory()


def _dtype(task: Task, device: str) -> str:
    """Return the dtype that a task computes in."""
    auto = "float32" if device == "cpu" else "bfloat16"
    return auto if task.dtype == "auto" else task.dtype


def _memory(task: Task, shape: Shape, device: str, free: int) -> float:
    """Return how many bytes of memory a task needs."""
    needed = shape.parameters(task.layers) * NUMBER_BYTES[_dtype(task, device)]
    if task.part in SCORING:
        needed = min(needed, SHARE_OF_MEMORY * free)
    return needed + WORKING_MEMORY


def _seconds(task: Task, shape: Shape | None, device: str) -> float:
    """Return how long it takes to compute what is left of a task."""
    prompts = task.prompts - task.stored
    if shape is None or not prompts:
        return 0.0
    operations = 2 * prompts * task.tokens * shape.multiplied(task.layers)
    return OVERHEAD * operations / _speed(device, _dtype(task, device))


@functools.cache
def _speed(device: str, dtype: str) -> float:
    """Return how many operations a second products in this dtype do.

    On a CPU the processor's time counts, so that what else runs meanwhile does not.
    """
    import torch

    form: Any = {"device": device, "dtype": getattr(torch, dtype)}
    weights = torch.ones(INNER, WIDTH, **form)
    inputs = torch.ones(ROWS, WIDTH, **form)
    clock = time.process_time if device == "cpu" else time.monotonic
    threads = torch.get_num_threads() if device == "cpu" else 1
    products = 0
    begun = clock()
    while clock() < begun + TRIAL_SECONDS * threads:
        # Reading a number waits for a GPU to be done.
        torch.nn.functional.linear(inputs, weights)[0, 0].item()
        products += 1
    return products * 2 * ROWS * WIDTH * INNER * threads / (clock() - begun)


def _tasks(profile: Profile, fresh: bool) -> Iterator[Task]:
    """Yield what a run of a profile computes."""
    for part, deep in dict.fromkeys((step.part, step.deep) for step in STEPS):
        for spec in profile.attention.models:
            if profile.attention.map_problems or not deep:
                yield from _measured(profile, part, deep, spec, fresh)
    for part, section in _sections(profile).items():
        rows = _rows(profile, part)
        for spec in section.models:
            if of_profile.is_stored(profile, part):
                # However little it is: nothing is added to it.
                own = rows[rows["model"] == resolve(spec).name]
                yield Task(part, spec, len(own), len(own), 0, section.dtype)
            else:
                yield _asked(profile, part, section, spec, rows, fresh)
    if profile.name == "demo":
        again = profile.accuracy if fresh else checked(profile.accuracy)
        rows = frame(read(*(profile.results / "check").glob(COMPLETIONS)))
        yield _asked(profile, "main", again, "demo", rows, fresh)


def _sections(profile: Profile) -> dict[str, Any]:
    """Return by part what is answered and scored, but for the demo's main part, of
    which stored answers are checked.
    """
    sections: dict[str, Any] = {}
    if profile.name != "demo":
        sections["main"] = profile.accuracy
    for part in profile.accuracy.variations:
        sections[part] = variation(profile.accuracy, part)
    if profile.likelihood:
        sections["likelihood"] = profile.likelihood
    if profile.pass_rates:
        sections["draws"] = profile.pass_rates.drawing
        sections["draw_scores"] = profile.pass_rates
    return sections


def checked(accuracy: Accuracy) -> Accuracy:
    """Return those of the demo's stored answers that a run gives anew, to compare."""
    return accuracy.model_copy(update={"limit": CHECKED})


def _rows(profile: Profile, part: str) -> pd.DataFrame:
    """Return the rows of a part that are stored."""
    if part == "likelihood":
        return of_profile.stored_scores(profile)
    if part == "draw_scores":
        return of_profile.stored_draw_scores(profile)
    return of_profile.stored_answers(profile, part)


def _measured(
    profile: Profile, part: str, deep: bool, spec: str, fresh: bool
) -> Iterator[Task]:
    """Yield a part of the measurements, if anything of it is left: a step reads each
    of its prompts once.
    """
    attention = profile.attention
    done: set[str] = set()
    if not fresh:
        # What the repository has may be measured under other settings.
        with contextlib.suppress(InputError):
            done = set(json.loads(load_measured(profile, spec).done))
    steps = [step for step in STEPS if (step.part, step.deep) == (part, deep)]
    labels = {}
    for step in steps:
        labels |= {step.label(name): step.measure for name in step.conditions}
    if done.issuperset(labels):
        return
    problems = load_problems(attention.problems, attention.limit, profile.seed)
    if deep:
        problems = problems[: attention.map_problems]
    prompts = stored = 0
    for label, measure in labels.items():
        count = 1 if measure == "tokens" else len(problems)
        prompts += count
        stored += count * (label in done)
    tokens = _prompt_tokens(profile, problems)
    layers = None if deep else attention.layers
    yield Task(part, spec, prompts, stored, tokens, attention.dtype, layers)


def _asked(
    profile: Profile,
    part: str,
    section: Any,
    spec: str,
    rows: pd.DataFrame,
    fresh: bool,
) -> Task:
    """Return what a part of the answers or scores asks of a model."""
    levels = section.levels if isinstance(section, Accuracy) else None
    problems = load_problems(section.problems, section.limit, profile.seed, levels)
    if isinstance(section, Likelihood):
        longest = section.max_solution_tokens * TOKEN_CHARACTERS
        problems = [item for item in problems if len(item.solution) <= longest]
        conditions = [*section.conditions, *section.at_once]
        tokens = sum(len(problem.solution) for problem in problems)
        tokens /= TOKEN_CHARACTERS * max(1, len(problems))
        texts = len(problems)
    else:
        conditions = section.conditions
        tokens = section.max_new_tokens * SHARE_WRITTEN
        texts = len(problems) * section.samples
    if part == "draw_scores":
        # Which of them need no score is known once they are drawn.
        drawn = of_profile.stored_answers(profile, "draws")
        drawn = _of_these(drawn, spec, HALVES, problems)
        needless = 0 if fresh else (~is_divided(drawn)).sum()
        texts = len(HALVES) * texts - int(needless)
    own = _of_these(rows, spec, conditions, problems)
    return Task(
        part,
        spec,
        prompts=texts * len(conditions),
        stored=0 if fresh else len(own),
        tokens=tokens + _prompt_tokens(profile, problems),
        dtype=section.dtype,
    )


def _of_these(
    rows: pd.DataFrame,
    spec: str,
    conditions: Collection[object],
    problems: list[Problem],
) -> pd.DataFrame:
    """Return the rows of a model under these conditions that are of these problems."""
    own = rows[rows["model"] == resolve(spec).name]
    own = own[own["condition"].isin([str(condition) for condition in conditions])]
    return own[own["problem_id"].isin([problem.id for problem in problems])]


def _prompt_tokens(profile: Profile, problems: list[Problem]) -> float:
    """Return the mean tokens of a prompt, from characters: that needs no tokenizer."""
    characters = sum(len(problem.problem) for problem in problems)
    of_problem = characters / TOKEN_CHARACTERS / max(1, len(problems))
    return PROMPT_TOKENS + of_problem + profile.filler.length
