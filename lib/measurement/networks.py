"""The networks that are measured, loaded one after another, and what each measure asks of them."""

import copy
import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import xarray as xr
from transformers import PreTrainedModel

from lib.attention.received import observe, observe_uniform
from lib.measurement.activations import measure_activations
from lib.measurement.attention import measure_attention, measure_causes, measure_tokens
from lib.measurement.store import OTHER_KEYS, SEEDS, TRAINED, UNIFORM, UNTRAINED
from lib.models.loading import Loaded, load
from lib.models.names import arm_for, resolve
from lib.profiles import Profile
from lib.prompts.problems import Problem, drawn_problem, stratified_sample

_newest: dict[tuple, Loaded] = {}


def some_layers(spec: str, layers: int | None, dtype: str = "auto", seed: int | None = None) -> Loaded:
    """Load the first layers of a model, None: all, without output head; fresh weights where a seed is given.

    Several measurements load it once; only the newest is kept in memory.
    """
    wanted = spec, layers, dtype, seed
    if wanted not in _newest:
        let_go()  # before, not after: two of these models may be more than a laptop holds
        _newest[wanted] = load(spec, layers=layers, dtype=dtype, seed=seed, head=False)
    return _newest[wanted]


def let_go() -> None:
    """Free what is kept, before something else is loaded."""
    _newest.clear()
    gc.collect()  # hooks and configs refer to each other


def pieces(
    profile: Profile,
    spec: str,
    step: tuple[str, bool, str, Sequence[str]],
    problems: list[Problem],
) -> Iterator[tuple[xr.Dataset, Sequence[str]]]:
    """Yield what a step of lib.measurement.run gives, a Dataset at a time, each with the conditions that it ends.

    On all problems in the profile's first layers or, deep, on some of them in the layers after those.
    """
    (network, deep, measure, conditions), asked = step, profile.attention
    given: dict[str, Any] = {"format": asked.format, "filler": profile.filler}
    loaded = _loaded(profile, spec, network, deep)
    layers = range(asked.layers + 1 if deep else 1, loaded.layers + 1)
    some = stratified_sample(problems, asked.map_problems or len(problems), profile.seed) if deep else problems
    if not layers or (network == OTHER_KEYS and not _key_heads(loaded.model)):
        yield xr.Dataset(), conditions
    elif measure == "tokens":
        drawn = drawn_problem(asked.problems, asked.example, asked.limit, profile.seed)
        yield measure_tokens(loaded, drawn.problem, conditions, layers, **given), conditions
    elif measure == "attention":
        observing = observe_uniform if network == UNIFORM else observe
        for found in measure_attention(loaded, some, conditions, layers, **given, observing=observing):
            yield found.expand_dims(network=[network]), found.condition.values
    elif measure == "causes":
        yield measure_causes(loaded, some, **given).expand_dims(network=[network]), conditions
    else:
        given |= {"arm": arm_for(loaded.spec, profile.accuracy.arm), "seed": profile.seed}
        layers = layers if network == TRAINED else [1]
        found = measure_activations(loaded, some, conditions[1:], layers, **given)
        yield found.expand_dims(network=[network]), conditions


def _loaded(profile: Profile, spec: str, network: str, deep: bool) -> Loaded:
    asked = profile.attention
    seed = UNTRAINED.index(network) if network in UNTRAINED else SEEDS[0] if network == UNIFORM else None
    loaded = some_layers(spec, None if deep else asked.layers, asked.dtype, seed)
    if network == OTHER_KEYS:
        loaded = replace(loaded, model=with_other_keys(loaded.model))
    return replace(loaded, name=f"{resolve(spec).name} {network}") if network in (OTHER_KEYS, UNIFORM) else loaded


def with_other_keys(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy in which each head's queries meet the keys of the next head that has keys of its own.

    Weights, positions and values are as they were: what changes is that queries and keys were not trained together.
    """
    changed = copy.deepcopy(model)
    heads = changed.config.get_text_config().num_key_value_heads
    for keys in _key_heads(changed):
        for part in keys.parameters():  # (heads * width, hidden), and a bias in some families
            part.data = part.data.roll(len(part) // heads, 0)
    return changed


def _key_heads(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return the key projections of all layers; none where all heads share one or the family has no such module."""
    config = model.config.get_text_config()
    found = [module for name, module in model.named_modules() if name.endswith(".k_proj")]
    return found if config.num_key_value_heads > 1 else []
