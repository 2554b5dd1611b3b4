"""All that a profile measures about MLP activations, and the tables of it: the numbers behind notebook 04.

As with attention, `measure_activations` keeps what it measures.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.arm.activations import MEASURES
from lib.measurement.curves import attention_problems, first_layers
from lib.measurement.redistribution import Redistribution, measure_redistribution
from lib.measurement.token_classes import NAMES, OTHERS
from lib.models.loading import load
from lib.models.names import arm_for
from lib.profiles import Profile
from lib.prompts.conditions import Filler
from lib.prompts.problems import stratified_sample
from lib.statistics import bootstrap_mean, holm, signed_rank

CHANGES = ("mless", "mful", "random", "arm")  # in the first layers; the first is what the others are compared with
DEEP_CHANGES = ("mless", "arm")  # in all layers
RESAMPLES = 2000  # of each of many intervals


@dataclass(frozen=True)
class MeasuredActivations:
    """What was measured on one model: its first layers on all problems, and all its layers on some."""

    first: Redistribution
    every: Redistribution | None  # None when the profile loads no more than the first layers


def measure_activations(
    profile: Profile,
    folder: Path | None = None,
    report: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, MeasuredActivations]:
    """Return the measurements of each of the profile's models by name; `report` gets what, done and total."""
    attention, problems = profile.attention, attention_problems(profile)
    options = {"format": attention.format, "filler": Filler(**profile.filler.model_dump())}
    options |= {"seed": profile.seed, "folder": folder}
    measured = {}
    for spec in attention.models:
        loaded, arm = first_layers(spec, attention.layers), arm_for(spec, profile.accuracy.arm_settings())

        def progress(what: str, name: str = loaded.name) -> dict:
            return options | {"report": lambda done, total: report(f"{name}: {what}", done, total)}

        layers, every = list(range(1, loaded.layers + 1)), None
        text = f"activations of layers 1 to {len(layers)}"
        first = measure_redistribution(loaded, problems, CHANGES, layers, arm=arm, **progress(text))
        if attention.map_problems:
            whole, some = load(spec), stratified_sample(problems, attention.map_problems, profile.seed)
            layers = list(range(1, whole.layers + 1))
            text = f"activations of all {len(layers)} layers"
            every = measure_redistribution(whole, some, DEEP_CHANGES, layers, arm=arm, **progress(text))
        measured[loaded.name] = MeasuredActivations(first, every)
    return measured


def changes_table(measured: dict[str, MeasuredActivations], seed: int, *, every: bool = False) -> pd.DataFrame:
    """Return a row per model, condition, layer and measure: how many times as large as under none (geometric mean over
    problems) with its interval, and Holm's p of the signed-rank test over problems, corrected for a model's rows.

    The problem is the unit: tests over single activations, such as Levene's, would take elements for independent.
    """
    tables = []
    for name, model in measured.items():
        found = model.every if every else model.first
        parts = [_changes(found, condition, seed) for condition in found.measures if condition != "none"]
        table = pd.concat(parts, ignore_index=True)
        table["p"] = holm(table["p"])
        table.insert(0, "model", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def log_changes(found: Redistribution, condition: str) -> np.ndarray:
    """Return log(measure under condition / under none), (N, L, 6); a share of nothing counts as half an element."""
    before, after = found.measures["none"], found.measures[condition]
    smallest = np.min(before[before > 0]) / 2 if (before > 0).any() else 1.0
    return np.log(np.maximum(after, smallest) / np.maximum(before, smallest))


def _changes(found: Redistribution, condition: str, seed: int) -> pd.DataFrame:
    logs = log_changes(found, condition)
    flat = logs.reshape(len(logs), -1)  # (N, L * 6)
    mean = bootstrap_mean(flat, seed, RESAMPLES)
    columns = {
        "condition": condition,
        "layer": np.repeat(found.layers, len(MEASURES)),
        "measure": np.tile(MEASURES, len(found.layers)),
        "ratio": np.exp(mean.estimate),
        "low": np.exp(mean.low),
        "high": np.exp(mean.high),
        "p": signed_rank(flat),
    }
    return pd.DataFrame(columns | {"n": mean.n})


def likeness_table(measured: dict[str, MeasuredActivations], seed: int) -> pd.DataFrame:
    """Return a row per model, condition and layer: the cosine between its change and that of the slashes, of the
    histogram (`shape`) and of single activations (`elements`), with intervals over problems.
    """
    rows = []
    for name, model in measured.items():
        for condition in CHANGES[1:]:
            for index, layer in enumerate(model.first.layers):
                row = {"model": name, "condition": condition, "layer": layer}
                for part in ("shape", "elements"):
                    mean = bootstrap_mean(getattr(model.first, part)[condition][:, index], seed, RESAMPLES)
                    row |= {part: mean.estimate, f"{part} low": mean.low, f"{part} high": mean.high, "n": mean.n}
                rows.append(row)
    return pd.DataFrame(rows)


def classes_table(measured: dict[str, MeasuredActivations], seed: int) -> pd.DataFrame:
    """Return a row per model, condition and class of tokens in layer 1: share near zero in %, its interval, and the
    paired difference to the class `others`; n counts the problems that have such tokens.
    """
    rows = []
    for name, model in measured.items():
        for condition, shares in model.first.classes.items():
            others = shares[:, 0, NAMES.index(OTHERS)]
            for index, label in enumerate(NAMES):
                values = 100 * shares[:, 0, index]
                both = np.isfinite(values) & np.isfinite(others)
                if not both.any():
                    continue
                share = bootstrap_mean(values[both], seed)
                apart = bootstrap_mean(values[both] - 100 * others[both], seed)
                row = {"model": name, "condition": condition, "class": label, "near zero": share.estimate}
                row |= {"low": share.low, "high": share.high, "against others": apart.estimate}
                rows.append(row | {"against low": apart.low, "against high": apart.high, "n": share.n})
    return pd.DataFrame(rows)
