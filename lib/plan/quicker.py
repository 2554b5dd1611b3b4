"""What would make a run quicker or smaller, with what it is worth on this machine."""

from collections.abc import Iterator
from math import sqrt

from lib.plan.cost import DTYPE_BYTES, WORKING_MEMORY, Cost
from lib.plan.planning import Plan
from lib.plan.speed import overhead_of, speed_of
from lib.plan.units import duration, gigabytes
from lib.statistics import POINTS

# What is worth saying: so many times as fast, so many seconds saved, so many bytes.
FASTER = 1.3
SECONDS_SAVED = 300
BYTES_SAVED = 1e8
# Of the answers of a 1.5B so many change between right and wrong with the slashes: the
# half-width of a paired difference follows from it (data/families).
CHANGED = 0.11
Z95 = 1.96
ENOUGH_POINTS = 4.0


def quicker(plan: Plan) -> Iterator[str]:
    """Yield advice, each a sentence with its number."""
    # Answers that are weighted are drawn in the dtype and as many at once as they are.
    answers = [
        cost
        for cost in plan.left
        if cost.task.kind == "answers" and cost.task.name != "draws"
    ]
    yield from _bfloat16(plan, answers)
    yield from _larger_batch(plan, answers)
    yield from _fewer(plan, answers)
    yield from _fetch_first(plan)


def _bfloat16(plan: Plan, answers: list[Cost]) -> Iterator[str]:
    """Yield what answers in bfloat16 save where the processor computes in it."""
    single = [
        cost for cost in answers if plan.machine.dtype(cost.task.dtype) == "float32"
    ]
    if not single:
        return
    half = speed_of(plan.machine, "bfloat16")
    seconds = 0.0
    for cost in single:
        overhead, _ = overhead_of(cost.task.kind)
        seconds += overhead * half.seconds(cost.task.work)
    before = sum(cost.seconds for cost in single)
    if before > FASTER * seconds and before - seconds > SECONDS_SAVED:
        yield (
            f"--dtype bfloat16 answers in {duration(seconds)} instead of"
            f" {duration(before)} here"
        )


def _larger_batch(plan: Plan, answers: list[Cost]) -> Iterator[str]:
    """Yield how many answers a GPU has room for at once, if that is many more."""
    if plan.machine.device != "cuda":
        return
    sizes = []
    for cost in answers:
        shape = plan.shape_of(cost.task.model)
        if shape and cost.task.batch_size:
            number_bytes = DTYPE_BYTES[plan.machine.dtype(cost.task.dtype)]
            per_answer = cost.task.longest * shape.cache * number_bytes
            free = plan.machine.memory - WORKING_MEMORY
            free -= shape.parameters() * number_bytes
            sizes.append(int(free / per_answer))
    batch_size = plan.profile.accuracy.batch_size
    if batch_size and sizes and min(sizes) > FASTER * batch_size:
        yield f"batch_size {min(sizes)} fits, the profile has {batch_size}"


def half_width(problems: int) -> float:
    """Return the points to either side of a difference in accuracy on n problems."""
    return Z95 * POINTS * sqrt(CHANGED / problems)


def _fewer(plan: Plan, answers: list[Cost]) -> Iterator[str]:
    """Yield how many problems say the same to within ENOUGH_POINTS."""
    enough = int((Z95 * POINTS / ENOUGH_POINTS) ** 2 * CHANGED)
    accuracy = plan.profile.accuracy
    main = [cost.task for cost in answers if cost.task.name == "main"]
    if not main:
        return
    texts = len(accuracy.conditions) * accuracy.samples
    problems = main[0].prompts // texts
    if problems > enough:
        yield (
            f"--limit {enough} tells differences in accuracy to within"
            f" {ENOUGH_POINTS:.0f} points, all {problems} to within"
            f" {half_width(problems):.1f}"
        )


def _fetch_first(plan: Plan) -> Iterator[str]:
    """Yield what is fetched twice where first layers come before the whole model."""
    twice = 0
    for weights in plan.weights:
        depths = {
            cost.task.layers
            for cost in plan.costs
            if cost.task.model == weights.spec and cost.task.left
        }
        if None in depths:
            twice += sum(weights.to_fetch(layers) for layers in depths if layers)
    if twice > BYTES_SAVED:
        yield (
            f"`python -m lib fetch` first saves {gigabytes(twice)}: first layers are"
            " then read from the whole model"
        )
