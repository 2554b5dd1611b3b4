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
from lib.plan.planning import Plan, make_plan, refuse
from lib.plan.words import gigabytes
from lib.profiles import Profile


def fetch(profile: Profile) -> Iterator[str]:
    """Fetch what a profile lacks, and yield a line for each model.

    Raises InputError at once for everything that cannot be had. That a model does not
    fit into this machine's memory is no reason: another one may compute.
    """
    plan = make_plan(profile)  # which fetches the problems
    refuse(plan.absent)
    for weights in plan.weights:
        depths = _depths(plan, weights.spec)
        source = resolve(weights.spec)
        if depths and source.repo:
            if None in depths:
                folder = snapshot(source.repo, source.revision)
            else:
                folder = first_layers(source.repo, max(depths), source.revision)
            size = gigabytes(weights.to_fetch(None if None in depths else max(depths)))
            yield f"{weights.name}: {size} fetched, {folder}"


def _depths(plan: Plan, spec: str) -> set:
    """Return how many first layers of a model are needed, None for the whole model."""
    return {one.task.layers for one in plan.left if one.task.model == spec}
