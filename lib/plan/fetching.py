"""Weights and problems onto this disk, so that a run needs no network.

    for line in fetch(load_profile("paper")):   # on a login node
        print(line)                             # then HF_HUB_OFFLINE=1 works

Of a model that a task needs whole all shards are fetched, else the byte ranges of its
first layers. A fetch that is interrupted goes on where it was.
"""

from collections.abc import Iterator

from lib.models.first_layers import first_layers
from lib.models.hub import snapshot
from lib.models.names import resolve
from lib.plan.planning import Plan, make_plan, of_disk, refuse
from lib.plan.units import gigabytes
from lib.profiles import Profile


def fetch(profile: Profile) -> Iterator[str]:
    """Fetch what a profile lacks, and yield a line for each model.

    Raises InputError at once for everything that cannot be had. That a model does not
    fit into this machine's memory is no reason: another one may compute.
    """
    plan = make_plan(profile)  # which fetches the problems
    needed = {cost.task.model for cost in plan.left}
    of_hub = [
        weights
        for weights in plan.weights
        if weights.spec in needed and resolve(weights.spec).repo
    ]
    # Less than a run would take: its first layers come before the whole models.
    sizes = [weights.to_fetch(_depth(plan, weights.spec)) for weights in of_hub]
    refuse([*plan.absent, *of_disk(sum(sizes), plan.machine)])

    for weights, size in zip(of_hub, sizes, strict=True):
        source = resolve(weights.spec)
        depth = _depth(plan, weights.spec)
        if depth is None:
            folder = snapshot(source.repo, source.revision)
        else:
            folder = first_layers(source.repo, depth, source.revision)
        yield f"{weights.name}: {gigabytes(size)} fetched, {folder}"


def _depth(plan: Plan, spec: str) -> int | None:
    """Return how many first layers of a model are needed, None for the whole model."""
    depths = [cost.task.layers for cost in plan.left if cost.task.model == spec]
    if None in depths:
        return None
    return max(depth for depth in depths if depth)
