"""What every token of the profile's example receives: curves of the drawn heads, and an explorer of all of them.

An explorer is a Dataset of one model with the dimensions condition (none first), layer, head and token:

    received         (condition, layer, head, token) float32, NaN for the last token and beyond the prompt
    even             (condition, token) what attention spread evenly over all earlier tokens would give
    text, part       (condition, token) the tokens, and which part of the prompt each is of; "" beyond the prompt
    ratio, low, high (condition, layer, head) λ with its 95 % interval over `n` problems, NaN for none
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import torch
import xarray as xr

from lib.attention.received import observe_uniform, received_attention
from lib.errors import InputError
from lib.measurement import networks
from lib.measurement.curves import Curves, attention_problems
from lib.measurement.dilution import measurement_settings
from lib.measurement.kept import kept
from lib.measurement.measured import Measured
from lib.measurement.networks import every_layer, first_layers
from lib.measurement.tables import estimates
from lib.models.loading import Loaded
from lib.profiles import Panel, Profile, check_panel
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

NAME = "explorer"  # how the files in a profile's folder of measurements begin


def measured_explorers(profile: Profile, folder: Path | None) -> dict[str, xr.Dataset]:
    """Return each model's explorer, by name; costs a forward per model and condition beside attention."""
    problem = attention_problems(profile)[profile.attention.example]
    measured = networks.attention(profile, folder)
    return {name: _of_model(one, problem, profile, folder) for name, one in measured.items()}


def _of_model(measured: Measured, problem: Problem, profile: Profile, folder: Path | None) -> xr.Dataset:
    """Return one model's explorer; its weights go with the call, so that memory holds one model's."""
    attention, spec = profile.attention, measured.model.spec
    whole = bool(measured.every)
    loaded = every_layer(spec, attention.dtype) if whole else first_layers(spec, attention.layers, attention.dtype)
    dilution = measured.every if whole else measured.first
    lambdas = estimates(dilution["lambda"])
    settings = measurement_settings(loaded, [problem], attention.format, profile.filler)
    settings |= {"lambda": float(lambdas["mean"].sum()), "seed": profile.seed}
    compute = functools.partial(explore, loaded, problem, lambdas, attention.format, profile.filler)
    return kept(folder, f"{NAME}-{loaded.name}", settings, compute)


def explore(loaded: Loaded, problem: Problem, lambdas: pd.DataFrame, format: str, filler: Filler) -> xr.Dataset:
    """Return the explorer of one model on one problem.

    lambdas: a row per condition, layer and head with mean, low, high and n; its conditions and layers are explored.
    """
    conditions, layers = ["none", *dict.fromkeys(lambdas.condition)], sorted(set(lambdas.layer))
    given = {"format": format, "filler": filler}
    prompts = {name: build_prompt(loaded.tokenizer, problem.problem, name, **given) for name in conditions}
    explorer = by_condition(prompts, functools.partial(_known, loaded, layers))
    explorer = explorer.assign_coords(layer=layers, head=range(1, loaded.heads + 1))
    explorer.attrs = {"model": loaded.name, "revision": loaded.revision, "dtype": loaded.dtype}
    explorer.attrs |= {"problem": problem.id, "n": int(lambdas.n.iloc[0])}
    ratios = lambdas.set_index(["condition", "layer", "head"])[["mean", "low", "high"]].to_xarray()
    return explorer.merge(ratios.rename(mean="ratio").reindex(condition=conditions))


def _known(loaded: Loaded, layers: Sequence[int], prompt: Prompt) -> dict[str, tuple]:
    even = observe_uniform(loaded.model, prompt.input_ids, [1], torch.tensor([len(prompt)])).received[0, 0, 0, 0]
    received = received_attention(loaded.model, prompt.input_ids, layers)[0]
    return {
        "received": (("layer", "head", "token"), received.cpu().numpy()),
        "even": ("token", even.cpu().numpy()),
        "text": ("token", [prompt.text[start:stop] for start, stop in prompt.offsets]),
    }


def measured_curves(profile: Profile, figure: str, conditions: Sequence[str]) -> list[Curves]:
    """Compute the panels of one figure on the profile's example problem.

    Raises InputError when the model lacks a head or the example is not among the problems.
    """
    attention, drawn = profile.attention, []
    problems = attention_problems(profile)
    if attention.example >= len(problems):
        raise InputError(f"example {attention.example} is beyond the {len(problems)} problems")
    for panel in getattr(attention.panels, figure):
        loaded = first_layers(panel.model, attention.layers, attention.dtype)
        check_panel(figure, panel, loaded.card)
        drawn.append(head_curves(loaded, panel, problems[attention.example], profile, conditions))
    return drawn


def head_curves(loaded: Loaded, panel: Panel, problem: Problem, profile: Profile, conditions: Sequence[str]) -> Curves:
    """Compute one panel on a problem."""
    given = {"format": profile.attention.format, "filler": profile.filler}
    prompts = {name: build_prompt(loaded.tokenizer, problem.problem, name, **given) for name in conditions}

    def known(prompt: Prompt) -> dict:
        received = received_attention(loaded.model, prompt.input_ids, [panel.layer])[0, 0, panel.head - 1]
        return {"received": ("token", received.cpu().numpy())}

    return Curves(panel, loaded.card, by_condition(prompts, known))


def by_condition(prompts: dict[str, Prompt], known: Callable[[Prompt], dict]) -> xr.Dataset:
    """Return what is known of each token and its part of the prompt (condition, ..., token), NaN or "" beyond it."""
    found = [
        xr.Dataset(known(prompt) | {"part": ("token", prompt.parts)}, {"token": range(len(prompt))})
        for prompt in prompts.values()
    ]
    joined = xr.concat(found, "condition", join="outer", fill_value={"text": "", "part": ""})
    return joined.drop_vars("token").assign_coords(condition=list(prompts))
