"""A plan as text: what is fetched, what is computed, what comes out, and one last line
that says it all.
"""

from collections.abc import Iterator, Sequence

from lib.plan.cost import Cost
from lib.plan.decidable_claims import EVIDENCE, decidable, models_of_profile
from lib.plan.planning import Plan
from lib.plan.quicker import quicker
from lib.plan.units import MINUTE, duration, gigabytes

# How a person calls a task; others are called as they are in a profile.
STEP_TITLES = {
    "tokens": "tokens of one problem",
    "main": "answers",
    "check": "answers, checked",
    "draws": "sampled answers",
    "draw_scores": "their likelihood",
}


def as_text(plan: Plan) -> str:
    """Return a plan in full; its last line is `summary`."""
    profile = plan.profile
    blocks = [
        [f"{profile.name}: {profile.description}"],
        _weights_table(plan),
        _steps_table(plan),
        [*_machine(plan), *_outcome(plan)],
        [f"quicker: {advice}" for advice in quicker(plan)],
        [f"refused: {reason}" for reason in plan.refusals],
        [summary(plan)],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def summary(plan: Plan) -> str:
    """Return what a run takes, in one line."""
    if not plan.prompts:
        return "Plan: nothing to fetch or compute, everything is stored"
    learned = all(cost.learned for cost in plan.left)
    basis = "its last runs" if learned else "a trial of ten seconds"
    time = duration(plan.seconds)
    if plan.seconds >= MINUTE:
        time = f"about {time}"
    return (
        f"Plan: {gigabytes(plan.bytes_to_fetch)} to fetch, {plan.prompts:,} prompts,"
        f" {time} on this machine, by {basis}"
    )


def _weights_table(plan: Plan) -> list[str]:
    """Return a line per model that something is left to do with."""
    rows = [("model", "licence", "to fetch", "here", "memory", "read")]
    for weights in plan.weights:
        steps = [
            cost
            for cost in plan.costs
            if cost.task.model == weights.spec and cost.task.left
        ]
        if not steps:
            continue
        fetched = plan.to_fetch[weights.spec]
        rows.append(
            (
                weights.name,
                "gated" if weights.gated else "open",
                gigabytes(fetched),
                gigabytes(weights.here),
                gigabytes(max(cost.memory for cost in steps)),
                _how_read(steps),
            )
        )
    return _aligned(rows) if len(rows) > 1 else []


def _how_read(steps: list[Cost]) -> str:
    """Return in which ways a model's weights are held in memory."""
    ways = []
    for cost in steps:
        if cost.task.layers:
            ways.append(f"first {cost.task.layers} layers")
        else:
            ways.append("one layer at a time" if cost.streamed else "whole")
    return ", ".join(dict.fromkeys(ways))


def _steps_table(plan: Plan) -> list[str]:
    """Return a line per step and model."""
    rows = [("step", "model", "prompts", "stored", "tokens at most", "time")]
    names = {weights.spec: weights.name for weights in plan.weights}
    for cost in plan.costs:
        step = cost.task
        rows.append(
            (
                STEP_TITLES.get(step.name, step.name),
                names[step.model],
                f"{step.prompts:,}",
                f"{step.stored:,}",
                f"{step.tokens:,}",
                duration(cost.seconds) if step.left else "-",
            )
        )
    return _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose columns stand below each other."""
    columns = zip(*rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def _machine(plan: Plan) -> Iterator[str]:
    machine = plan.machine
    yield (
        f"this machine: {machine.device}, {gigabytes(machine.memory)} of memory and"
        f" {gigabytes(machine.disk)} of disk free"
    )


def _outcome(plan: Plan) -> Iterator[str]:
    """Yield which claims are decided, by what decides them."""
    claims = decidable(plan.profile)
    for evidence in EVIDENCE.values():
        names = ", ".join(claim.id for claim in claims[evidence])
        models = ", ".join(models_of_profile(plan.profile, evidence))
        if names:
            yield f"decides by {evidence}, on {models}: {names}"
        else:
            yield f"decides by {evidence}: nothing"
