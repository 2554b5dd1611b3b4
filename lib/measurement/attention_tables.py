"""All that a profile measures about attention, and the tables of it: the numbers behind notebook 02.

`measure_attention` keeps what it measures, so that `reproduce` can do it with a progress bar and the notebook
finds it done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.measurement.causes import CAUSES, Causes, measure_causes
from lib.measurement.curves import attention_problems, first_layers
from lib.measurement.dilution import Dilution, measure_dilution
from lib.models.loading import load
from lib.profiles import Profile
from lib.prompts.conditions import Filler
from lib.prompts.problems import stratified_sample
from lib.statistics import bootstrap_mean, bootstrap_ratio, holm, signed_rank

INSERTIONS = ("mless", "mful", "random")
RESAMPLES = 2000  # of each of many intervals
LEVEL = 0.05  # of Holm's corrected tests
AFFINE_TEXT = {
    "affine": "R2 of lambda * old + sigma",
    "shifted": "R2 of old + sigma",
    "direction": "sigma: share of squares along one line",
    "component": "sigma: share of variance in first component",
}


@dataclass(frozen=True)
class Measured:
    """What was measured on one model: its first layers on all problems, all its layers on some, and why."""

    first: Dilution
    every: Dilution | None  # None when the profile loads no more than the first layers
    causes: Causes


def measure_attention(
    profile: Profile,
    folder: Path | None = None,
    report: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Measured]:
    """Return the measurements of each of the profile's models by name; `report` gets what, done and total."""
    attention, problems = profile.attention, attention_problems(profile)
    options = {"format": attention.format, "filler": Filler(**profile.filler.model_dump()), "folder": folder}
    measured = {}
    for spec in attention.models:
        loaded = first_layers(spec, attention.layers)

        def progress(what: str, name: str = loaded.name) -> dict:
            return options | {"report": lambda done, total: report(f"{name}: {what}", done, total)}

        layers = list(range(1, loaded.layers + 1))
        first = measure_dilution(loaded, problems, INSERTIONS, layers, **progress(f"layers 1 to {len(layers)}"))
        causes = measure_causes(loaded, problems, **progress("causes in layer 1"))
        every = None
        if attention.map_problems:
            whole = load(spec)
            layers, some = (
                list(range(1, whole.layers + 1)),
                stratified_sample(problems, attention.map_problems, profile.seed),
            )
            every = measure_dilution(whole, some, INSERTIONS, layers, **progress(f"all {len(layers)} layers"))
        measured[loaded.name] = Measured(first, every, causes)
    return measured


def heads_table(measured: dict[str, Measured], seed: int, *, every: bool = False) -> pd.DataFrame:
    """Return a row per model, condition, layer and head: lambda with interval, the share of problems below 1,
    Holm's p of the signed-rank test of log lambda (over a model's heads, layers and conditions), and means of
    mass, flatness and dispersion. `every` takes all layers of some problems instead of the first of all.
    """
    tables = []
    for name, model in measured.items():
        dilution = model.every if every else model.first
        parts = [_heads(dilution, condition, seed) for condition in dilution.ratio]
        table = pd.concat(parts, ignore_index=True)
        table["p"] = holm(table["p"])
        table.insert(0, "model", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _heads(dilution: Dilution, condition: str, seed: int) -> pd.DataFrame:
    ratio = dilution.ratio[condition]
    flat = ratio.reshape(len(ratio), -1)  # (N, L * H)
    lam = bootstrap_mean(flat, seed, RESAMPLES)
    columns = {
        "condition": condition,
        "layer": np.repeat(dilution.layers, ratio.shape[2]),
        "head": np.tile(np.arange(1, ratio.shape[2] + 1), ratio.shape[1]),
        "lambda": lam.estimate,
        "low": lam.low,
        "high": lam.high,
        "problems < 1": (flat < 1).mean(0),
        "p": signed_rank(np.log(flat)),
    }
    columns |= {m: getattr(dilution, m)[condition].mean(0).ravel() for m in ("mass", "flatness", "dispersion")}
    return pd.DataFrame(columns | {"n": lam.n})


def layers_table(measured: dict[str, Measured], seed: int, *, every: bool = False) -> pd.DataFrame:
    """Return a row per model, condition, layer and measure (lambda, mass, flatness, dispersion): its mean over
    heads with an interval over problems.
    """
    rows = []
    for name, model in measured.items():
        dilution = model.every if every else model.first
        measures = {"lambda": dilution.ratio} | {m: getattr(dilution, m) for m in ("mass", "flatness", "dispersion")}
        for measure, by_condition in measures.items():
            for condition, values in by_condition.items():
                mean = bootstrap_mean(values.mean(2), seed, RESAMPLES)  # (L,) each
                ends = zip(dilution.layers, mean.estimate, mean.low, mean.high, strict=True)
                rows += [(name, measure, condition, *row, mean.n) for row in ends]
    return pd.DataFrame(rows, columns=["model", "measure", "condition", "layer", "mean", "low", "high", "n"])


def count_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and layer of `heads_table`: how many of the heads lie below and above 1
    with p < LEVEL after Holm's correction.
    """
    sure = heads.p < LEVEL
    counted = heads.assign(below=sure & (heads["lambda"] < 1), above=sure & (heads["lambda"] > 1), heads=1)
    return counted.groupby(["model", "condition", "layer"], sort=False)[["below", "above", "heads"]].sum().reset_index()


def causes_by_head(measured: dict[str, Measured], seed: int) -> pd.DataFrame:
    """Return a row per model, cause and head of layer 1: lambda with its interval over problems."""
    rows = []
    for name, model in measured.items():
        for cause in CAUSES:
            lam = bootstrap_mean(model.causes.ratio[cause], seed, RESAMPLES)
            ends = zip(lam.estimate, lam.low, lam.high, strict=True)
            rows += [(name, cause, head, *row, lam.n) for head, row in enumerate(ends, 1)]
    return pd.DataFrame(rows, columns=["model", "cause", "head", "lambda", "low", "high", "n"])


def causes_table(measured: dict[str, Measured], seed: int) -> pd.DataFrame:
    """Return a row per model and cause: lambda over the heads of layer 1 and its share of log lambda of `both`."""
    rows = []
    for name, model in measured.items():
        ratio = model.causes.ratio
        logs = {cause: np.log(ratio[cause]).mean(1) for cause in CAUSES}  # (N,)
        for cause in CAUSES:
            lam = bootstrap_mean(ratio[cause].mean(1), seed)
            share = bootstrap_ratio(logs[cause], logs["both"], seed)
            rows.append((name, cause, lam.estimate, lam.low, lam.high, share.estimate, share.low, share.high, lam.n))
    columns = ["lambda", "low", "high", "share", "share low", "share high", "n"]
    return pd.DataFrame(rows, columns=["model", "cause", *columns])


def affine_table(measured: dict[str, Measured], seed: int) -> pd.DataFrame:
    """Return a row per model and measure of new = lambda * old + sigma in layer 1, with intervals over problems."""
    rows = []
    for name, model in measured.items():
        for label, text in AFFINE_TEXT.items():
            values = getattr(model.causes, label)  # (N, H)
            mean, heads = bootstrap_mean(values.mean(1), seed), values.mean(0)
            rows.append((name, text, mean.estimate, mean.low, mean.high, heads.min(), heads.max(), mean.n))
    return pd.DataFrame(rows, columns=["model", "measure", "mean", "low", "high", "lowest head", "highest head", "n"])
