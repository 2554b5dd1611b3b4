"""The networks that are measured, loaded one after another, and what each measure asks
of them.
"""

import copy
import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace

import xarray as xr
from transformers import PreTrainedModel

from lib.attention.received import observe, observe_uniform
from lib.measurement.activations import measure_activations
from lib.measurement.attention import (
    measure_attention,
    measure_causes,
    measure_tokens,
    prompts_of,
)
from lib.measurement.store import OTHER_KEYS, TRAINED, UNIFORM, UNTRAINED, Step
from lib.models.loading import Loaded, load
from lib.models.names import arm_for, resolve
from lib.profiles import Profile
from lib.prompts.problems import Problem, drawn_problem, stratified_sample

_newest: dict[tuple, Loaded] = {}


def load_cached(
    spec: str, layers: int | None, dtype: str = "auto", seed: int | None = None
) -> Loaded:
    """Load the first layers of a model, None: all, without output head; fresh weights
    where a seed is given.

    Several measurements load it once; only the newest is kept in memory.
    """
    wanted = spec, layers, dtype, seed
    if wanted not in _newest:
        # before, not after: two of these models may be more than a laptop holds
        free()
        _newest[wanted] = load(spec, layers=layers, dtype=dtype, seed=seed, head=False)
    return _newest[wanted]


def free() -> None:
    """Free what is kept, before something else is loaded."""
    _newest.clear()
    gc.collect()  # hooks and configs refer to each other


def run_step(
    profile: Profile, spec: str, step: Step, problems: list[Problem]
) -> Iterator[tuple[xr.Dataset, Sequence[str]]]:
    """Yield what a step gives, a Dataset at a time, each with the conditions that it
    ends.

    On all problems in the profile's first layers or, deep, on some of them in the
    layers after those.
    """
    asked, network, measure, conditions = (
        profile.attention,
        step.network,
        step.measure,
        step.conditions,
    )
    seed = (
        UNTRAINED.index(network)
        if network in UNTRAINED
        else 0
        if network == UNIFORM
        else None
    )
    loaded = load_cached(spec, None if step.deep else asked.layers, asked.dtype, seed)
    layers = range(asked.layers + 1 if step.deep else 1, loaded.layers + 1)
    model = with_other_keys(loaded.model) if network == OTHER_KEYS else loaded.model
    if not layers or model is None:  # nothing to measure
        yield xr.Dataset(), conditions
        return
    if network in (OTHER_KEYS, UNIFORM):
        loaded = replace(loaded, model=model, name=f"{resolve(spec).name} {network}")
    if measure == "tokens":
        problems = [
            drawn_problem(asked.problems, asked.example, asked.limit, profile.seed)
        ]
    elif step.deep:
        problems = stratified_sample(
            problems, asked.map_problems or len(problems), profile.seed
        )
    prompts = prompts_of(loaded, problems, conditions, asked.format, profile.filler)
    if measure == "attention":
        for found in measure_attention(
            loaded, prompts, layers, observe_uniform if network == UNIFORM else observe
        ):
            yield found.expand_dims(network=[network]), found.condition.values
    elif measure == "tokens":
        yield measure_tokens(loaded, prompts, layers), conditions
    elif measure == "causes":
        yield measure_causes(loaded, prompts).expand_dims(network=[network]), conditions
    else:
        given = {
            "arm": arm_for(loaded.spec, profile.accuracy.arm),
            "seed": profile.seed,
        }
        found = measure_activations(
            loaded, prompts, layers if network == TRAINED else [1], **given
        )
        yield found.expand_dims(network=[network]), conditions


def with_other_keys(model: PreTrainedModel) -> PreTrainedModel | None:
    """Return a copy in which each head's queries meet the keys of the head before it
    that has keys of its own.

    Weights, positions and values are as they were: what changes is that queries and
    keys were not trained together. None where all heads share one or the family has no
    such module.
    """
    heads = model.config.get_text_config().num_key_value_heads
    if heads == 1 or not any(
        name.endswith(".k_proj") for name, _ in model.named_modules()
    ):
        return None
    changed = copy.deepcopy(model)
    for name, part in changed.named_parameters():
        if ".k_proj." in name:
            part.data = part.data.roll(
                len(part) // heads, 0
            )  # (heads * width, hidden), and a bias in some families
    return changed
