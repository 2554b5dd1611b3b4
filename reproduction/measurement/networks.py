"""Load the networks that are measured one after another, and run a step on one."""

import functools
import gc

import torch
import xarray as xr

from lib.models.loading import Loaded, load
from lib.models.sources import resolve
from lib.prompts.problems import Problem
from reproduction.measurement.activation_changes import measure_activations
from reproduction.measurement.affine_map import measure_affine
from reproduction.measurement.attention_changes import measure_attention, prompts_of
from reproduction.measurement.dataset import SEEDS, TRAINED, UNIFORM, PlannedStep
from reproduction.measurement.single_prompt import measure_tokens
from reproduction.profiles import Profile


@functools.lru_cache(maxsize=1)
def load_cached(spec: str, layers: int | None, dtype: str, seed: int | None) -> Loaded:
    """Return a model with its first `layers` layers (None: all), loaded or from memory.

    With a seed, the weights are random. Only the latest model is kept in memory, and is
    shared by several measurements.
    """
    # Released before loading, because two of these models may exceed a laptop's memory.
    release_cached()
    return load(spec, layers=layers, dtype=dtype, seed=seed)


def release_cached() -> None:
    """Release the memory of the model that `load_cached` keeps."""
    load_cached.cache_clear()
    gc.collect()  # hooks and configs refer to each other
    # torch keeps freed memory of a GPU, without which vLLM would not start.
    torch.cuda.empty_cache()


def provenance_of(spec: str, layers: int, dtype: str) -> dict[str, str]:
    """Return the model's name, revision, dtype and device, which are recorded with its
    measurements.
    """
    loaded = load_cached(spec, layers, dtype, None)
    return {
        "model": resolve(spec).name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
        "device": loaded.device,
    }


def run_step(
    profile: Profile, spec: str, step: PlannedStep, problems: list[Problem]
) -> xr.Dataset:
    """Measure a step, and return its Dataset; empty if the network lacks the layers.

    problems: those that the step measures.
    """
    attention = profile.attention
    depth = None if step.deep else attention.layers
    network = load_cached(spec, depth, attention.dtype, SEEDS[step.network])
    first = attention.layers + 1 if step.deep else 1
    if first > network.layers:
        return xr.Dataset()

    layers = range(first, network.layers + 1)
    prompts = prompts_of(
        network, problems, step.conditions, attention.format, profile.filler
    )
    if step.measure == "tokens":
        return measure_tokens(network, prompts, layers)
    if step.measure == "attention":
        is_uniform = step.network == UNIFORM
        measured = measure_attention(network, prompts, layers, is_uniform)
    elif step.measure == "affine":
        measured = measure_affine(network, prompts)
    else:
        arm = resolve(spec).arm
        if step.network != TRAINED:
            layers = layers[:1]  # no claim uses more of the control networks
        measured = measure_activations(network, prompts, layers, arm, profile.seed)
    return measured.expand_dims(network=[step.network])
