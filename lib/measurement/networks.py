"""The networks that are measured, loaded one after another, and a step on one."""

import copy
import gc
from collections.abc import Iterator
from dataclasses import replace

import torch
import xarray as xr
from transformers import PreTrainedModel

from lib.attention.received import observe, observe_uniform
from lib.measurement.activations import measure_activations
from lib.measurement.attention import (
    measure_attention,
    measure_tokens,
    prompts_of,
)
from lib.measurement.causes import measure_causes
from lib.measurement.plan import OTHER_KEYS, TRAINED, UNIFORM, UNTRAINED, PlannedStep
from lib.models.loading import Loaded, load
from lib.models.names import arm_for, resolve
from lib.profiles import Profile
from lib.prompts.problems import Problem, drawn_problem, stratified_sample

_newest: dict[tuple, Loaded] = {}


def load_cached(
    spec: str, layers: int | None, dtype: str = "auto", seed: int | None = None
) -> Loaded:
    """Load the first layers of a model, None: all.

    Where a seed is given, the weights are fresh. Several measurements load a model
    once; only the newest is kept in memory.
    """
    key = (spec, layers, dtype, seed)
    if key not in _newest:
        # Before, not after: two of these models may be more than a laptop holds.
        free()
        _newest[key] = load(spec, layers=layers, dtype=dtype, seed=seed)
    return _newest[key]


def free() -> None:
    """Let go of the model that is kept, before something else is loaded."""
    _newest.clear()
    gc.collect()  # hooks and configs refer to each other
    # Torch keeps what it gave back, and vLLM would not start beside it.
    torch.cuda.empty_cache()


def provenance_of(spec: str, layers: int, dtype: str) -> dict[str, str]:
    """Return what the numbers of a model belong to: its name, weights and device."""
    loaded = load_cached(spec, layers, dtype)
    return {
        "model": resolve(spec).name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
        "device": loaded.device,
        "label": loaded.label,
    }


def run_step(
    profile: Profile, spec: str, step: PlannedStep, problems: list[Problem]
) -> Iterator[xr.Dataset]:
    """Yield what each piece of a step gives; of what a network lacks, nothing.

    problems: all that the profile's first layers are measured on.
    """
    attention = profile.attention
    network = _load_network(spec, step, profile)
    first = attention.layers + 1 if step.deep else 1
    if network is None or first > network.layers:  # there is nothing to measure
        yield from [xr.Dataset()] * len(step.pieces)
        return

    layers = range(first, network.layers + 1)
    problems = _problems_of(step, profile, problems)
    prompts = prompts_of(
        network, problems, step.conditions, attention.format, profile.filler
    )
    if step.measure == "tokens":
        yield measure_tokens(network, prompts, layers)
    elif step.measure == "attention":
        observing = observe_uniform if step.network == UNIFORM else observe
        for piece in measure_attention(network, prompts, layers, observing):
            yield piece.expand_dims(network=[step.network])
    elif step.measure == "causes":
        causes = measure_causes(network, prompts)
        yield causes.expand_dims(network=[step.network])
    else:
        activations = measure_activations(
            network,
            prompts,
            layers if step.network == TRAINED else [1],
            arm=arm_for(spec),
            seed=profile.seed,
        )
        yield activations.expand_dims(network=[step.network])


def _load_network(spec: str, step: PlannedStep, profile: Profile) -> Loaded | None:
    """Return the network of a step, None where a model cannot have it.

    Of evenly spread attention only the windows and heads count, whatever the weights.
    """
    seed = None
    if step.network in UNTRAINED:
        seed = UNTRAINED.index(step.network)
    elif step.network == UNIFORM:
        seed = 0
    layers = None if step.deep else profile.attention.layers
    loaded = load_cached(spec, layers, profile.attention.dtype, seed)
    if step.network not in (OTHER_KEYS, UNIFORM):
        return loaded

    model = loaded.model
    if step.network == OTHER_KEYS:
        model = with_other_keys(loaded.model)
    if model is None:
        return None
    return replace(loaded, model=model, name=f"{resolve(spec).name} {step.network}")


def _problems_of(
    step: PlannedStep, profile: Profile, problems: list[Problem]
) -> list[Problem]:
    """Return those of the problems that a step measures, or the one that is drawn."""
    attention = profile.attention
    if step.measure == "tokens":
        drawn = drawn_problem(
            attention.problems, attention.example, attention.limit, profile.seed
        )
        return [drawn]
    if step.deep:
        size = attention.map_problems or len(problems)
        return stratified_sample(problems, size, profile.seed)
    return problems


def with_other_keys(model: PreTrainedModel) -> PreTrainedModel | None:
    """Return a copy in which each head's queries meet another head's keys.

    They are those of the head before it that has keys of its own. Weights, positions
    and values are as they were: what changes is that queries and keys were not trained
    together. None where all heads share one or the family has no such module.
    """
    heads = model.config.get_text_config().num_key_value_heads
    modules = [name for name, _ in model.named_modules()]
    if heads == 1 or not any(name.endswith(".k_proj") for name in modules):
        return None
    changed = copy.deepcopy(model)
    for name, parameter in changed.named_parameters():
        if ".k_proj." in name:
            # The weights are (heads * width, hidden); some families have a bias too.
            width = len(parameter) // heads
            parameter.data = parameter.data.roll(width, 0)
    return changed
